"""The parser of `/testusers add` and `remove`, and of identities.

An identity is a phone number, an email address, a `scheme:value`, or anything in quotes. The
command and the form ask about any other word.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Literal

from bot.approvals.parse import (
    MOST_PARTS,
    When,
    moment_of,
    parse_duration,
    parse_when,
    spell_when,
    zone_of,
)
from bot.commands import TESTUSERS
from bot.errors import Meant, UsageError
from bot.slack.parse import Word, recover, rest_of_line
from bot.spelling import (
    DOUBLE_QUOTES,
    LONG_DASHES,
    UNSEEN,
    closest,
    folded,
    tidy_identity,
)
from bot.testusers.rules.changes import (
    MAX_REASON_CHARS,
    identities_problem,
    is_sendable,
)

KEYWORDS = frozenset({"for", "from", "until", "now", "because"})
MOST_DIGITS = 15
_IDENTITY = re.compile(
    rf"\+[0-9]{{1,{MOST_DIGITS}}}"
    rf"|(?!(?:{'|'.join(sorted(KEYWORDS))}):)[a-z][a-z0-9+.-]*:\S+"
    r"|[^\s@:,;]+@[^\s@,;]+\.[^\s@,;]+",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:\+|00|\(\+)[0-9()./\s-]+")

MOST_CHARACTERS = 40_000
_LINK = r"(?:https?|ftp|file|slack)://\S+"
_MAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,30}:[^\s,;<>\"'()]+"
_DATE = r"\d{4}-\d{2}-\d{2}"
_PHONE = r"\+?\(?\d(?:[ ().\-/\u00a0]{0,2}\d){6,}"
_CANDIDATE = re.compile(
    # An address can't start in the middle of another one, so each character is only read once.
    rf"(?P<link>{_LINK})|(?<![\w.+-])(?P<mail>(?:mailto:)?{_MAIL})|(?P<date>{_DATE})"
    rf"|(?<!\w)(?P<scheme>{_SCHEME})|(?<![\w.:+])(?P<phone>{_PHONE})(?!\w)"
)
_ENDS = ".,;:!?)]}*_~`"
# Numbers without a `+` may not be phone numbers, so the form asks about them.
DIGITS, DIGITS_WITHOUT_PLUS = range(7, 16), range(9, 16)
_DASHES = re.compile(f"[{LONG_DASHES}]")
PRESET = re.compile(r"@([A-Za-z0-9][A-Za-z0-9._-]{0,39})")
LABEL_CHARACTERS = 50
TIME_EXAMPLES = "18:00, friday, tomorrow 9:00 or 2026-12-01 09:00"
# Keywords that only work with `add`, and the fields of `ChangeRequest` that they set.
TERMS = {"for": "duration_seconds", "from": "start", "until": "until"}
# The first part and the later parts of a phone number with spaces, as phones paste it.
_FIRST_PART = re.compile(r"\+?[0-9(][0-9()./-]*")
_NEXT_PART = re.compile(r"[0-9()./-]*[0-9][0-9()./-]*")

ChangeKind = Literal["add", "remove"]


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A change as typed. Access ends at `until`, after `duration_seconds`, or never."""

    kind: ChangeKind
    flow: str
    identities: tuple[str, ...]
    duration_seconds: int | None = None
    now: bool = False
    reason: str = ""
    presets: tuple[str, ...] = ()
    start: When | None = None
    until: When | None = None

    @property
    def form(self) -> str:
        """The form of the command, which decides what permission it requires."""
        return "now" if self.now else self.kind


def misuse(action: str, sentence: str, *, has_right_form: bool = False) -> UsageError:
    """Return the error for a mistake in `/testusers <action>`, which shows the right usage."""
    return TESTUSERS.misuse(sentence, action, has_right_form=has_right_form)


def parse_change(kind: ChangeKind, words: Sequence[Word], text: str) -> ChangeRequest:
    """Return the change that the words after `add` or `remove` ask for; `text` is the command."""
    if not words:
        raise misuse(kind, "Which flow, and who? Put the flow first, then phone numbers or IDs.")
    first = words[0]
    if first.keyword in KEYWORDS or (not first.is_quoted and is_identity(first.text)):
        raise misuse(kind, f"Which flow? Put it first, e.g. {kind} welcome …")
    change, named, left = ChangeRequest(kind, words[0].text, ()), list[Word](), list(words[1:])
    while left:
        word = left.pop(0)
        if word.keyword in KEYWORDS:
            change = _with_option(change, word, left, text)
        elif not word.is_quoted and (preset := PRESET.fullmatch(folded(_tidied(word)))):
            change = replace(change, presets=(*change.presets, preset.group(1)))
        else:
            named.append(word)
    if named or not change.presets:
        change = replace(change, identities=people(kind, named, text))
    if change.now and not change.reason:
        raise misuse("now", "“now” needs a reason. Add “because …” at the end.")
    if change.now and change.start:
        raise misuse(kind, "Use “now” or “from”, not both.")
    if change.duration_seconds and change.until:
        raise misuse(kind, "Use “for” or “until”, not both.")
    return replace(change, presets=tuple(dict.fromkeys(change.presets)))


def _with_option(change: ChangeRequest, word: Word, left: list[Word], text: str) -> ChangeRequest:
    """Return the change with a keyword's option, after removing the option's words from `left`."""
    kind, keyword = change.kind, word.keyword
    if keyword == "now":
        return replace(change, now=True)
    if keyword == "because":
        left.clear()
        reason = rest_of_line(text, word.end)
        if problem := reason_problem(reason) if reason else "Add a reason after “because”.":
            raise misuse(kind, problem, has_right_form=bool(reason))
        return replace(change, reason=reason)
    if kind == "remove":
        way_out = f"If “{keyword}” is really someone's ID, put it in quotes."
        raise misuse(kind, f"“{keyword}” only works with “add”. {way_out}")
    if getattr(change, TERMS[keyword]) is not None:
        raise misuse(kind, f"You used “{keyword}” twice.")
    if keyword == "for":
        return replace(change, duration_seconds=_duration(left))
    when = _when(keyword, left)
    return replace(change, start=when) if keyword == "from" else replace(change, until=when)


def _duration(words: list[Word]) -> int:
    typed = [_tidied(word) for word in takewhile(_is_plain, words[: 2 * MOST_PARTS])]
    for count in range(len(typed), 0, -1):
        seconds = parse_duration(" ".join(typed[:count]))
        if seconds is not None:
            del words[:count]
            return seconds
    # The error quotes a number with its unit, or one word.
    unread = " ".join(typed[: 2 if typed and typed[0].isdigit() else 1])
    raise misuse("add", duration_problem(unread or (words[0].text if words else "")))


def _when(keyword: str, words: list[Word]) -> When:
    typed = [_tidied(word) for word in takewhile(_is_plain, words)]
    found = parse_when(typed)
    if found is None:
        problem = f"I can't read “{' '.join(typed[:2])[:80]}” as a time. Try"
        raise misuse(
            "add", f"{problem if typed else f'Add a time after “{keyword}”, e.g.'} {TIME_EXAMPLES}."
        )
    del words[: found[1]]
    return found[0]


def _is_plain(word: Word) -> bool:
    return not word.is_quoted and word.keyword not in KEYWORDS


def duration_problem(typed: str) -> str:
    """Return a sentence that explains how to type a duration."""
    if not typed:
        return "Add a duration after “for”, e.g. 30m, 2h or 3d."
    return f"I can't read “{typed[:80]}” as a duration. Try 30m, 2h or 3d."


def reason_problem(reason: str) -> str | None:
    """Return a sentence that explains why the reason isn't accepted, or None if it is."""
    if len(reason) > MAX_REASON_CHARS:
        return f"The reason is too long ({len(reason)} of {MAX_REASON_CHARS} characters)."
    if reason and not is_sendable(reason):
        return "The reason contains a character I can't store. Please retype it."
    return None


def people(action: str, words: Sequence[Word], text: str) -> tuple[str, ...]:
    """Return the identities in these words, without the characters that phones add.

    Raises:
        UsageError: It asks about words that don't look like identities.
    """
    tidied = [word if word.is_quoted else replace(word, text=_tidied(word)) for word in words]
    if unclosed := next((word for word in tidied if word.opens_quote), None):
        raise misuse(action, f"The quote before “{unclosed.text[1:81]}” isn't closed.")
    named = _with_whole_numbers(tidied, text)
    if odd := [word for word in named if not (word.is_quoted or is_identity(word.text))]:
        guesses, first, kept = _guesses(odd[0].text), odd[0], text
        for word in reversed(odd):
            kept = f"{text[: word.start]}{quoted(text[word.start : word.end])}{kept[word.end :]}"
        names = ", ".join(f"“{word.text}”" for word in odd)
        label = f"Keep {names} as typed" if len(names) <= LABEL_CHARACTERS else "Keep them as typed"
        raise misuse(
            action, question(first.text, "” or “".join(guesses)), has_right_form=True
        ).or_rather(
            *(
                Meant(
                    text.strip(),
                    f"{text[: first.start]}{guess}{text[first.end :]}".strip(),
                    f"Yes, {guess}",
                )
                for guess in guesses
            ),
            Meant(text.strip(), kept.strip(), label),
        )
    identities = tuple(word.text for word in named)
    if problem := identities_problem(identities):
        raise misuse(action, problem, has_right_form=bool(identities))
    return identities


def _tidied(word: Word) -> str:
    return tidy_identity(word.text) or word.text


def _with_whole_numbers(words: Sequence[Word], text: str) -> list[Word]:
    """Join the parts of phone numbers that were typed with spaces."""
    joined, is_number = list[Word](), False
    for word in words:
        is_next = is_number and not word.is_quoted and _NEXT_PART.fullmatch(word.text)
        if is_next and text[joined[-1].end : word.start].isspace():
            first = joined.pop()
            joined.append(Word(f"{first.text} {word.text}", False, first.start, word.end))
            continue
        is_number = not word.is_quoted and _FIRST_PART.fullmatch(word.text) is not None
        joined.append(word)
    return joined


def _guesses(word: str) -> list[str]:
    """Return what may have been meant by a word that doesn't look like an identity."""
    if number := phone_in(word):
        return [number]
    if parse_duration(word) is not None:
        return [f"for {word}"]
    return closest(word, sorted(KEYWORDS), 2)


def quoted(word: str) -> str:
    """Put a word in single or double quotation marks, whichever it doesn't contain."""
    mark = "'" if any(mark in word for mark in DOUBLE_QUOTES) else '"'
    return f"{mark}{word}{mark}"


@dataclass(frozen=True, slots=True)
class Term:
    """The start and end of access in UTC, or None to start immediately or without a fixed end."""

    starts_at: datetime | None = None
    ends_at: datetime | None = None

    def seconds(self, requested: ChangeRequest, now: datetime) -> float | None:
        """Return how long the access lasts from its start, or None if it has no end."""
        if self.ends_at is None:
            return requested.duration_seconds
        return (self.ends_at - (self.starts_at or now)).total_seconds()


def term_of(time_zone: str, requested: ChangeRequest, now: datetime) -> Term:
    """Return the start and end of the requested access; typed times are in this time zone."""
    if requested.start is None and requested.until is None:
        return Term()
    zone = zone_of(time_zone)
    if zone is None:
        problem = f"I don't know your time zone ({time_zone}), so I don't know when that is."
        raise misuse("add", problem, has_right_form=True)
    starts_at = ends_at = None
    if requested.start is not None:
        starts_at = moment_of(requested.start, now, zone)
        if starts_at is None:
            far = "has passed, or is more than a year away"
            raise misuse("add", f"“{spell_when(requested.start)}” {far}.", has_right_form=True)
    if requested.until is not None:
        ends_at = moment_of(requested.until, now, zone, after=starts_at, ends=True)
        if ends_at is None:
            far = "isn't after the start" if starts_at else "has passed"
            problem = f"“{spell_when(requested.until)}” {far}, or is more than ten years away."
            raise misuse("add", problem, has_right_form=True)
    return Term(starts_at, ends_at)


def is_identity(text: str) -> bool:
    """Return True for `+` and up to 15 digits, a `scheme:value`, or an email address.

    >>> [is_identity(typed) for typed in ("+15550142", "+1 555 0142", "ada", "ada@example.com")]
    [True, False, False, True]
    """
    return _IDENTITY.fullmatch(text) is not None


def phone_in(text: str) -> str:
    """Return a phone number without separators, or "" if the text isn't a phone number.

    >>> phone_in("+49 (0) 170 555-0142")
    '+491705550142'
    """
    if not _NUMBER.fullmatch(text):
        return ""
    digits = re.sub("[^0-9]", "", text.replace("(0)", ""))
    digits = digits if "+" in text else digits.removeprefix("00")
    return f"+{digits}" if 0 < len(digits) <= MOST_DIGITS else ""


def question(typed: str, meant: str = "") -> str:
    """Return the error for a word or line that doesn't look like an identity."""
    guess = f" Did you mean “{meant}”?" if meant else ""
    return (
        f"“{typed[:80]}” doesn't look like a phone number (+ and digits), an email address or a"
        f" chat address (whatsapp:+15550100).{guess} To use it as typed, put it in quotes."
    )


def mentioned_identities(text: str) -> tuple[str, ...]:
    """Return the identities in the text of a Slack message, in order and without duplicates.

    >>> mentioned_identities("Call +1 555 0100 or write to ada@example.com")
    ('+15550100', 'ada@example.com')
    """
    plain = _DASHES.sub("-", UNSEEN.sub(" ", recover(text[:MOST_CHARACTERS])))
    return tuple(dict.fromkeys(_mentioned(plain)))


def _mentioned(text: str) -> Iterator[str]:
    for match in _CANDIDATE.finditer(text):
        kind, found = match.lastgroup, match.group().rstrip(_ENDS)
        scheme, _, value = found.partition(":")
        if kind == "mail":
            yield found.removeprefix("mailto:")
        elif kind == "phone":
            yield from _phone(found)
        elif kind == "scheme" and scheme.casefold() == "tel":
            yield from _phone(value)
        # `whatsapp:+1555`, but not `Note:this`.
        elif kind == "scheme" and (scheme.islower() or re.search(r"[\d@]", value)):
            yield from [found] if is_identity(found) else []


def _phone(found: str) -> Iterator[str]:
    if number := phone_in(found):
        if len(number) > DIGITS.start:
            yield number
    elif len(digits := re.sub(r"\D", "", found)) in DIGITS_WITHOUT_PLUS:
        yield digits
