"""Words that stand where people are named and are probably none: asked about, never taken.

Whoever really means such a word puts it in quotes.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise

from bot.dataclass import dataclass
from bot.model.durations import is_like_a_duration, is_like_a_unit, parse_duration
from bot.model.edit_distance import edit_distance
from bot.model.spelling import skeleton
from bot.model.start_times import is_like_a_start
from bot.model.testusers.changes import MAX_REQUEST_CHARS
from bot.parsing.testusers_requests import KEYWORDS, SUBCOMMANDS
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
# Those of them that are asked about with a character wrong, too: no name is like them.
MISTYPED = ("until", "reason", "cause", "since")
NEAR_LETTERS = 2
LONG_WORD = 5
# So many characters of a flow's name may be wrong, by its length: of "qa" none, of "demo" one.
NEAR_FLOW_LETTERS = {1: 0, 2: 0, 3: 1, 4: 1}
# No request takes more people than this; nor are more names compared with those of flows.
MOST_WORDS, MOST_COMPARED = MAX_REQUEST_CHARS // 9, 50
# A keyword and what belongs to it, without the space between them: "for2h", "from9:00".
_GLUED = re.compile(rf"-*({'|'.join(sorted(KEYWORDS))})[^a-z@]")
_SID = re.compile(r"fw[0-9a-z]{26,40}")
_NUMBER = re.compile(r"[0-9]{1,4}")
_PHONE = re.compile(r"[0-9]{5}")
# A word, and how it looks.
Seen = tuple[Word, str]


@dataclass(frozen=True)
class Known:
    """What else is known of a command when its people are read.

    Attributes:
        text: The command as it was typed.
        aliases: The short names of flows.
        flow: What stands in the place of the flow; None where there is no such place.
        has_presets: Whether a preset names people too.
        late: Where words start that follow a preset, or an option that followed other people.
    """

    text: str
    aliases: Collection[str] = ()
    flow: Word | None = None
    has_presets: bool = False
    late: Collection[int] = ()

    @property
    def flow_sentence(self) -> str:
        """What is wrong with a flow among the people."""
        if self.flow is None:
            return "A preset only names people."
        return "One request changes one flow." if self._has_flow else "Put the flow first."

    def flow_first(self, word: Word, alias: str) -> tuple[Word, str]:
        """From where to where the flow is brought to its place, and what stands there then."""
        if self.flow is None or self._has_flow:
            return word, ""
        return self.flow, f"{alias} {self.text[self.flow.start : word.start].strip()}"

    @cached_property
    def _has_flow(self) -> bool:
        seen = skeleton(self.flow.text) if self.flow else ""
        return bool(_SID.fullmatch(seen) or seen in map(skeleton, self.aliases))


@dataclass(frozen=True, slots=True)
class Doubt:
    """A question about words that are probably no people; `instead` is what was meant, if known."""

    first: Word
    last: Word
    question: str
    instead: str = ""

    def mended(self, text: str) -> str:
        """Return the command with what was meant; "" where that is not known."""
        before, after = text[: self.first.start], text[self.last.end :]
        return f"{before}{self.instead}{after}" if self.instead else ""


def doubt(words: Sequence[Word], known: Known) -> Doubt | None:
    """The first question about these words; None when all of them may be people."""
    unquoted = [word for word in words[:MOST_WORDS] if not word.is_quoted]
    seen = [(word, skeleton(word.text)) for word in unquoted]
    keywords = min(_keywords(seen), key=_place, default=None)
    if keywords:
        return keywords
    odd = [*_flows(seen, known), *_times(seen), *_commands(seen), *_near_flows(seen, known)]
    doubted = {word.start for one in odd for word in (one.first, one.last)}
    people = [word for word in words if word.start not in doubted]
    return min(chain(odd, _plain_words(people, known)), key=_place, default=None)


def _place(one: Doubt) -> int:
    return one.first.start


def _flows(seen: Iterable[Seen], known: Known) -> Iterator[Doubt]:
    by_name = {skeleton(alias): alias for alias in known.aliases}
    for word, text in seen:
        if text in by_name or _SID.fullmatch(text):
            first, instead = known.flow_first(word, by_name.get(text, word.text))
            question = f"“{_cut(word)}” is a flow. {known.flow_sentence}"
            yield Doubt(first, word, f"{question} {_in_quotes(word)}", instead)


def _near_flows(seen: Sequence[Seen], known: Known) -> Iterator[Doubt]:
    for word, text in seen[:MOST_COMPARED]:
        alias = None if _PHONE.search(text) else near_flow(text, known.aliases)
        if alias:
            first, instead = known.flow_first(word, alias)
            question = f"Did you mean the flow “{alias}”? {known.flow_sentence}"
            yield Doubt(first, word, f"{question} {_in_quotes(word)}", instead)


def _keywords(seen: Sequence[Seen]) -> Iterator[Doubt]:
    for (word, text), (following, rest) in _neighbours(seen):
        if edit_distance(text + rest, "because", 1) <= 1:
            typed = f"{word.text} {following.text}"
            yield Doubt(word, following, f"Did you mean “because” instead of “{typed}”?", "because")
    for word, text in seen:
        if keyword := near_keyword(text):
            glued = _GLUED.match(text)
            instead = f"{keyword} {word.text[glued.end(1) :]}" if glued else keyword
            question = f"Did you mean “{keyword}” instead of “{_cut(word)}”? {_in_quotes(word)}"
            yield Doubt(word, word, question, instead)


def _times(seen: Sequence[Seen]) -> Iterator[Doubt]:
    for (word, text), (following, rest) in _neighbours(seen):
        if _NUMBER.fullmatch(text) and is_like_a_unit(rest):
            yield _option("for", word, following)
    for word, text in seen:
        if parse_duration(text) is not None:
            yield _option("for", word, word)
        elif is_like_a_start(text):
            yield _option("from", word, word)
        elif is_like_a_duration(text):
            question = f"Is “{_cut(word)}” a duration? Write it like “for 2h”. {_in_quotes(word)}"
            yield Doubt(word, word, question)


def _option(keyword: str, first: Word, last: Word) -> Doubt:
    typed = first.text if first is last else f"{first.text} {last.text}"
    question = f"Did you mean “{keyword} {typed}”? {_in_quotes(first)}"
    return Doubt(first, last, question, f"{keyword} {typed}")


def _commands(seen: Iterable[Seen]) -> Iterator[Doubt]:
    for word, text in seen:
        near = [one for one in SUBCOMMANDS if len(one) > LONG_WORD]
        if text in SUBCOMMANDS or _nearest(text, near, 1):
            question = f"“{_cut(word)}” is a command of its own. Send it separately."
            yield Doubt(word, word, f"{question} {_in_quotes(word)}")


def _plain_words(people: Sequence[Word], known: Known) -> Iterator[Doubt]:
    sure = [word.text for word in people if parse_duration(word.text) is None]
    are_identities = any(map(_is_like_an_identity, sure))
    for word in people:
        is_late, is_plain = word.start in known.late, not _is_like_an_identity(word.text)
        is_odd = (is_plain and are_identities) or (is_late and _is_plain_or_short(word.text))
        if is_odd and not word.is_quoted:
            question = f"Did you mean “because” before “{_cut(word)}”? {_in_quotes(word)}"
            yield Doubt(word, word, question, f"because {word.text}")


def _is_plain_or_short(word: str) -> bool:
    return not _is_like_an_identity(word) or _NUMBER.fullmatch(word) is not None


def _neighbours(seen: Sequence[Seen]) -> list[tuple[Seen, Seen]]:
    """Those with only a space between them; options may have stood between others."""
    return [(one, other) for one, other in pairwise(seen) if other[0].start - one[0].end == 1]


def _cut(word: Word) -> str:
    return word.text[:80]


def _in_quotes(word: Word) -> str:
    return f"If “{_cut(word)}” is a test user, put it in quotes."


def _is_like_an_identity(word: str) -> bool:
    """Whether it has what identities have and words have not."""
    return any(character.isdigit() or character in "@:" for character in word)


def near_keyword(typed: str) -> str | None:
    """The keyword that was probably meant, or None."""
    if typed in MEANT:
        return MEANT[typed]
    if glued := _GLUED.match(typed):
        return glued.group(1)
    if "because" in typed:
        return "because"
    found = _nearest(typed, sorted(KEYWORDS), NEAR_LETTERS)
    meant = _nearest(typed, MISTYPED, 1)
    return found or (MEANT[meant] if meant else None)


def near_flow(typed: str, aliases: Iterable[str]) -> str | None:
    """The flow that was probably meant, or None."""
    for alias in aliases:
        name = skeleton(alias)
        most = NEAR_FLOW_LETTERS.get(len(name), NEAR_LETTERS)
        if edit_distance(typed, name, most) <= most:
            return alias
    return None


def _nearest(word: str, known: Iterable[str], most: int) -> str | None:
    # Of two that are as near, the one that is as long: "form" is "from" rather than "for".
    distances = [(edit_distance(word, one, most), len(one) != len(word), one) for one in known]
    nearest = min(distances)
    return nearest[2] if nearest[0] <= most else None
