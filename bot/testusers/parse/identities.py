"""Identities as typed in commands and forms.

An identity is a phone number, an email address, a `scheme:value`, or anything in quotes. Any
other word is refused, in the command and in the form.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from bot.approvals.times import MOST_PARTS, LocalTime, parse_duration, parse_when
from bot.flows.rules.identities import MAX_IDENTITY_BYTES
from bot.slack.parse import Word
from bot.spelling import (
    LONG_DASHES,
    closest,
    folded,
    tidy_identity,
)

KEYWORDS = frozenset({"for", "from", "until", "now", "because"})
MOST_DIGITS = 15
# The fewest characters of a phone number that is found in a word: a `+` and seven digits.
FEWEST_CHARACTERS = 8
# The number of words, and of characters of each word, that an error names.
WORDS_NAMED = 10
NAME_CHARACTERS = 80
_LETTER = r"[^\W_]"
# The local part is an RFC 5322 dot-atom that begins with a letter or a digit, without the marks
# that Slack uses for formatting (`*`, `~` and backticks). An address can contain non-ASCII letters.
_ATOM = r"[\w!#$%&'+/=?^-]+"
_LABEL = rf"{_LETTER}(?:[\w-]*{_LETTER})?"
_EMAIL = rf"{_LETTER}(?:{_ATOM})?(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})+"
_IDENTITY = re.compile(
    rf"\+[0-9]{{1,{MOST_DIGITS}}}"
    rf"|(?!(?:{'|'.join(sorted(KEYWORDS))}):)[a-z][a-z0-9+.-]*:\S+"
    rf"|{_EMAIL}",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:\+|00|\(\+)[0-9()./\s-]+")
_DASH = re.compile(f"[{LONG_DASHES}]")
_DATE = r"\d{4}-\d{2}-\d{2}"
_GAP = rf"[ \u00a0().{LONG_DASHES}/-]{{0,2}}"
# A date or a time after a number isn't part of it.
_PHONE = rf"\+?\(?\d(?:{_GAP}(?!{_DATE})\d)*(?!\w|:\d)"
# In a command, any white space can stand between the parts of a number.
_SPACED_NUMBER = re.compile(_PHONE.replace(_GAP, rf"[\s().{LONG_DASHES}/-]*"))
_LINK = r"(?:https?|ftp|file|slack)://\S+"
# The local part has at most 64 characters (RFC 5321), which also limits the time to find it.
_MAIL = rf"(?=[^@]{{1,64}}@){_EMAIL}"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,30}:[^\s,;<>\"'()]+"
_CANDIDATE = re.compile(
    rf"(?P<link>{_LINK})|(?<![\w.:+-])(?:mailto:)?(?P<mail>{_MAIL})|(?P<date>{_DATE})"
    rf"|(?<![^\W_])(?<!\w_)(?P<scheme>{_SCHEME})|(?<![\w.:+])(?P<phone>{_PHONE})"
)
_ENDS = ".,;:!?)]}"
_MARKS = "*_~`"


def is_identity(text: str) -> bool:
    """Return True for `+` followed by up to 15 digits, a `scheme:value`, or an email address.

    >>> [is_identity(typed) for typed in ("+15550142", "+1 555 0142", "ada", "ada@example.com")]
    [True, False, False, True]
    """
    return _IDENTITY.fullmatch(text) is not None


def phone_in(text: str) -> str:
    """Return the phone number without separators, or an empty string if the text isn't one.

    >>> phone_in("+49 (0) 170 555-0142")
    '+491705550142'
    """
    plain = _DASH.sub("-", text)
    if not _NUMBER.fullmatch(plain):
        return ""
    digits = re.sub("[^0-9]", "", plain.replace("(0)", ""))
    digits = digits if "+" in plain else digits.removeprefix("00")
    return f"+{digits}" if 0 < len(digits) <= MOST_DIGITS else ""


def _identities_in(text: str) -> Iterator[str]:
    for match in _CANDIDATE.finditer(text):
        kind = match.lastgroup or ""
        found = match[kind]
        before = text[match.start() - 1 : match.start()]
        # Formatting ends at the mark with which it began.
        while found[-1:] in {*_ENDS} or (found[-1:] in {*_MARKS} and found[-1:] == before):
            found = found[:-1]
        scheme, _, value = found.partition(":")
        if kind == "mail":
            yield found
        elif kind == "phone" or scheme.casefold() == "tel":
            number = phone_in(value or found)
            if len(number) >= FEWEST_CHARACTERS:
                yield number
        # Accept `whatsapp:+1555`, but not `Note:this`.
        elif kind == "scheme" and (scheme.islower() or re.search(r"[\d@]", value)):
            yield from filter(is_identity, [found])


@dataclass(frozen=True)
class OddWord:
    """A word that isn't an identity, or the words of a duration, a time or a phone number.

    `meant` is the identity or keyword that was probably meant, if any. `keyword` is the keyword
    that must precede a duration or a time.
    """

    typed: str
    meant: str = ""
    keyword: str = ""


def read_identities(
    words: Sequence[Word], text: str
) -> tuple[tuple[str, ...], tuple[OddWord, ...]]:
    """Return the identities among these words of `text`, and the words that aren't identities.

    Characters that phones add are removed, except in quotation marks.
    """
    identities = list[str]()
    odd = list[OddWord]()
    at = 0
    while at < len(words):
        ahead = words[at : at + 2 * MOST_PARTS]
        keyword, count = _time_at(ahead)
        count = count or _words_of_number(ahead, text)
        typed = " ".join(word.text for word in ahead[:count])
        tidied = tidy_identity(typed) or typed
        if ahead[0].is_quoted:
            identities.append(typed)
        elif is_identity(tidied):
            identities.append(tidied)
        else:
            odd.append(OddWord(tidied, "" if keyword else _meant(tidied), keyword))
        at += count
    return tuple(identities), tuple(odd)


def plain_words(words: Sequence[Word]) -> list[str]:
    """Return the words up to the next keyword or quoted word, in a form for comparing them."""
    is_plain = takewhile(lambda word: not word.is_quoted and word.keyword not in KEYWORDS, words)
    return [folded(word.text) for word in is_plain]


def duration_at(typed: Sequence[str]) -> tuple[int, int] | None:
    """Return the duration at the start in seconds, and how many words it spans, if there's one."""
    for count in range(min(len(typed), 2 * MOST_PARTS), 0, -1):
        if (seconds := parse_duration(" ".join(typed[:count]))) is not None:
            return seconds, count
    return None


# The reader of the words after each of these keywords.
ENDS: Mapping[str, Callable[[Sequence[str]], tuple[int | LocalTime, int] | None]] = {
    "for": duration_at,
    "until": parse_when,
}


def _time_at(words: Sequence[Word]) -> tuple[str, int]:
    """Return the keyword for a duration or time at the start, and how many words it spans."""
    typed = plain_words(words)
    for keyword, read in ENDS.items():
        if found := read(typed):
            return keyword, found[1]
    return "", 0


def _words_of_number(words: Sequence[Word], text: str) -> int:
    """Return how many words at the start are one phone number that was typed with spaces."""
    number = _SPACED_NUMBER.match(text, words[0].start, words[-1].end)
    count = 1
    while number and count < len(words) and words[count].end <= number.end():
        if _time_at(words[count:])[1]:
            break
        count += 1
    return count


def _meant(typed: str) -> str:
    """Return the identity or keyword that was probably meant, or an empty string."""
    if len(typed) > MAX_IDENTITY_BYTES:
        return ""
    plain = unicodedata.normalize("NFKC", typed)
    found = [phone_in(plain), *_identities_in(plain)]
    near = [keyword for keyword in closest(typed, sorted(KEYWORDS)) if keyword != folded(typed)]
    return next(filter(None, [*found, *near]), "")


def unclear(odd: Sequence[OddWord]) -> str:
    """Return the error text for words that aren't identities, with what was probably meant."""
    names = [f"“{word.typed[:NAME_CHARACTERS]}”" for word in odd]
    if len(names) > WORDS_NAMED:
        names[WORDS_NAMED:] = [f"{len(names) - WORDS_NAMED} more words"]
    looks = "don't look" if len(names) > 1 else "doesn't look"
    known = "a phone number (+ and digits), an email address or a chat address (whatsapp:+15550100)"
    sentences = [f"{_joined(names)} {looks} like {known}."]
    sentences += [f"Write “{word.keyword} {word.typed}”." for word in odd if word.keyword]
    if meant := [f"“{word.meant}”" for word in odd[:WORDS_NAMED] if word.meant]:
        sentences.append(f"Did you mean {_joined(meant)}?")
    sentences.append("To use a word as typed, put it in quotes.")
    return " ".join(sentences)


def _joined(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
