"""Words that stand where people are named and are probably none: asked about, never taken.

Whoever really means such a word puts it in quotes.
"""

import re
from collections.abc import Iterable, Sequence

from bot.model.durations import parse_duration
from bot.model.edit_distance import edit_distance
from bot.model.start_times import parse_start
from bot.parsing.testusers_requests import KEYWORDS
from bot.parsing.words import Word

# What people type for a keyword.
MEANT = {
    "until": "for",
    "till": "for",
    "during": "for",
    "reason": "because",
    "cause": "because",
    "cuz": "because",
    "bc": "because",
    "since": "because",
    "start": "from",
    "starting": "from",
    "at": "from",
}
NEAR_LETTERS = 2
# A word with a digit in it is rather a person: only one character of it may be wrong.
NEAR_WITH_DIGITS = 1
LONG_WORD = 5
# A keyword and what belongs to it, without the space between them: "for2h", "from9:00".
_GLUED = re.compile(rf"-*({'|'.join(sorted(KEYWORDS))})[^a-z@]", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T.*)?")


def doubt(words: Sequence[Word]) -> str | None:
    """Why one of these words is probably no person, as a question; None when all may be."""
    unquoted = [word.text for word in words if not word.is_quoted]
    durations = [word for word in unquoted if parse_duration(word) is not None]
    others = {word.text for word in words} - {*durations}
    plain = [word for word in unquoted if not _is_like_an_identity(word)]
    times = [word for word in unquoted if parse_start([word]) or _DATE.fullmatch(word)]
    questions = (
        *(_instead(near_keyword(word), word) for word in unquoted),
        *(f"Did you mean “for {word}”? {_in_quotes(word)}" for word in durations),
        *(f"Did you mean “from {word}”? {_in_quotes(word)}" for word in times),
        *(_instead("because", word) for word in plain if any(map(_is_like_an_identity, others))),
    )
    return next(filter(None, questions), None)


def _instead(keyword: str | None, word: str) -> str:
    question = f"Did you mean “{keyword}” instead of “{word[:80]}”?"
    return f"{question} {_in_quotes(word)}" if keyword else ""


def _in_quotes(word: str) -> str:
    return f"If “{word[:80]}” is a test user, put it in quotes."


def _is_like_an_identity(word: str) -> bool:
    """Whether it has what identities have and words have not."""
    return any(character.isdigit() or character in "@:" for character in word)


def near_keyword(word: str) -> str | None:
    """The keyword that was probably meant, or None."""
    typed = word.casefold()
    if typed in MEANT:
        return MEANT[typed]
    if glued := _GLUED.match(typed):
        return glued.group(1)
    near = NEAR_WITH_DIGITS if _is_like_an_identity(typed) else NEAR_LETTERS
    found = _nearest(typed, sorted(KEYWORDS), near)
    meant = _nearest(typed, [one for one in MEANT if len(one) >= LONG_WORD], 1)
    return found or (MEANT[meant] if meant else None)


def _nearest(word: str, known: Iterable[str], most: int) -> str | None:
    # Of two that are as near, the one that is as long: "form" is "from" rather than "for".
    distances = [(edit_distance(word, one, most), len(one) != len(word), one) for one in known]
    nearest = min(distances, default=(most + 1, True, ""))
    return nearest[2] if nearest[0] <= most else None
