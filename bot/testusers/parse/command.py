"""The parser for `/testusers`, which raises usage errors with a correct example.

An identity is a phone number, an email address, a `scheme:value`, or anything in quotes. For
any other word, the command and the form ask what the person meant.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise, takewhile
from typing import Literal

from bot.approvals.parse import (
    MOST_PARTS,
    When,
    moment_of,
    parse_duration,
    parse_when,
    spell_duration,
    spell_when,
    zone_of,
)
from bot.commands import FORM, HELP, TESTUSERS
from bot.errors import Meant, UsageError
from bot.slack.parse import (
    Word,
    asks_for_help,
    escaped,
    read_words,
    refuse_endless,
    rest_of_line,
    unknown,
)
from bot.spelling import DOUBLE_QUOTES, closest, folded, skeleton, tidy_identity
from bot.testusers.rules.changes import (
    MAX_REASON_CHARS,
    identities_problem,
    is_flow_sid,
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
PRESET = re.compile(r"@([A-Za-z0-9][A-Za-z0-9._-]{0,39})")
LABEL_CHARACTERS = 50
TIME_EXAMPLES = "18:00, friday, tomorrow 9:00 or 2026-12-01 09:00"
NO_START = "A change is applied once it's approved, so “from” isn't possible. Ask later instead."
# Keywords that only work with `add`, and the fields of `ChangeRequest` that they set.
TERMS = {"for": "duration_seconds", "until": "until"}
# The first and later parts of a phone number that was pasted with spaces.
_FIRST_PART = re.compile(r"\+?[0-9(][0-9()./-]*")
_NEXT_PART = re.compile(r"[0-9()./-]*[0-9][0-9()./-]*")
FLOWS_OFFERED = 5
PRESET_ACTIONS = ("save", "delete")

ChangeKind = Literal["add", "remove"]


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A change, as typed. Access ends at `until`, after `duration_seconds`, or never."""

    kind: ChangeKind
    flow: str
    identities: tuple[str, ...]
    duration_seconds: int | None = None
    now: bool = False
    reason: str = ""
    presets: tuple[str, ...] = ()
    until: When | None = None

    @property
    def form(self) -> str:
        """The form of the command, which determines the required permission."""
        return "now" if self.now else self.kind


def misuse(action: str, sentence: str, *, has_right_form: bool = False) -> UsageError:
    """Return an error for a mistake in `/testusers <action>`. The error shows the correct usage."""
    return TESTUSERS.misuse(sentence, action, has_right_form=has_right_form)


def parse_change(kind: ChangeKind, words: Sequence[Word], text: str) -> ChangeRequest:
    """Return the change requested by the words after `add` or `remove` in the command `text`."""
    if not words:
        raise misuse(kind, "Which flow, and who? Put the flow first, then phone numbers or IDs.")
    first = words[0]
    if first.keyword in KEYWORDS or (not first.is_quoted and is_identity(first.text)):
        raise misuse(kind, f"Which flow? Put it first, e.g. {kind} welcome …")
    change, named, left = ChangeRequest(kind, words[0].text, ()), list[Word](), list(words[1:])
    while left:
        word = left.pop(0)
        if word.keyword == "from":
            raise misuse(kind, NO_START)
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
    if change.duration_seconds and change.until:
        raise misuse(kind, "Use “for” or “until”, not both.")
    return replace(change, presets=tuple(dict.fromkeys(change.presets)))


def _with_option(change: ChangeRequest, word: Word, left: list[Word], text: str) -> ChangeRequest:
    """Return the change with a keyword's option, and remove the option's words from `left`."""
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
    typed = [_tidied(word) for word in takewhile(_is_plain, left)]
    if keyword == "for":
        for count in range(min(len(typed), 2 * MOST_PARTS), 0, -1):
            if (seconds := parse_duration(" ".join(typed[:count]))) is not None:
                del left[:count]
                return replace(change, duration_seconds=seconds)
        # Quote a number with its unit, or a single word, in the error.
        unread = " ".join(typed[: 2 if typed and typed[0].isdigit() else 1])
        raise misuse(kind, duration_problem(unread or (left[0].text if left else "")))
    found = parse_when(typed)
    if found is None:
        problem = f"I can't read “{' '.join(typed[:2])[:80]}” as a time. Try"
        missing = f"Add a time after “{keyword}”, e.g."
        raise misuse(kind, f"{problem if typed else missing} {TIME_EXAMPLES}.")
    when, count = found
    del left[:count]
    return replace(change, until=when)


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
        return f"The reason is too long ({len(reason)} characters, limit {MAX_REASON_CHARS})."
    if reason and not is_sendable(reason):
        return "The reason contains a character I can't store. Please retype it."
    return None


def people(action: str, words: Sequence[Word], text: str) -> tuple[str, ...]:
    """Return the identities in these words, without extra characters added by phones.

    Raises:
        UsageError: A word isn't a valid identity. If possible, the error suggests a correction.
    """
    tidied = [word if word.is_quoted else replace(word, text=_tidied(word)) for word in words]
    if unclosed := next((word for word in tidied if word.opens_quote), None):
        raise misuse(action, f"The quote before “{unclosed.text[1:81]}” isn't closed.")
    named = _with_whole_numbers(tidied, text)
    if odd := [word for word in named if not (word.is_quoted or is_identity(word.text))]:
        first, end, kept, sent = odd[0].text, odd[0].end, text, text.strip()
        guesses = closest(first, sorted(KEYWORDS), 2)
        if number := phone_in(first):
            guesses = [number]
        elif duration := _duration_at(odd[0], text):
            guesses, end = [f"for {duration}"], odd[0].start + len(duration)
        before, after = text[: odd[0].start], text[end:]
        meant = [
            Meant(sent, f"{before}{guess}{after}".strip(), f"Yes, {guess}") for guess in guesses
        ]
        for word in reversed(odd):
            kept = f"{text[: word.start]}{quoted(text[word.start : word.end])}{kept[word.end :]}"
        names = ", ".join(f"“{word.text}”" for word in odd)
        label = f"Keep {names} as typed" if len(names) <= LABEL_CHARACTERS else "Keep them as typed"
        error = misuse(action, question(first, "” or “".join(guesses)), has_right_form=True)
        raise error.or_rather(*meant, Meant(sent, kept.strip(), label))
    identities = tuple(word.text for word in named)
    if problem := identities_problem(identities):
        raise misuse(action, problem, has_right_form=bool(identities))
    return identities


def _tidied(word: Word) -> str:
    return tidy_identity(word.text) or word.text


def _duration_at(word: Word, text: str) -> str:
    """Return the duration that starts at this word, such as `2 hours`, or an empty string."""
    unit = re.match(r"\s+[A-Za-z]+", text[word.end :])
    found = [text[word.start : word.end + unit.end()]] if unit else []
    found.append(text[word.start : word.end])
    return next((typed for typed in found if parse_duration(typed) is not None), "")


def _with_whole_numbers(words: Sequence[Word], text: str) -> list[Word]:
    """Join the parts of phone numbers that were typed with spaces."""
    joined, is_number = list[Word](), False
    for word in words:
        is_next = is_number and not word.is_quoted and _NEXT_PART.fullmatch(word.text)
        is_apart = is_next and text[joined[-1].end : word.start].isspace()
        if is_apart and not _duration_at(word, text):
            first = joined.pop()
            joined.append(Word(f"{first.text} {word.text}", False, first.start, word.end))
            continue
        is_number = not word.is_quoted and _FIRST_PART.fullmatch(word.text) is not None
        joined.append(word)
    return joined


def quoted(word: str) -> str:
    """Put a word in single or double quotation marks, whichever it doesn't contain."""
    mark = "'" if any(mark in word for mark in DOUBLE_QUOTES) else '"'
    return f"{mark}{word}{mark}"


@dataclass(frozen=True, slots=True)
class Term:
    """The end of access in UTC, or None if there's no fixed end."""

    ends_at: datetime | None = None

    def seconds(self, requested: ChangeRequest, now: datetime) -> float | None:
        """Return how many seconds the access lasts, or None if it has no end."""
        if self.ends_at is None:
            return requested.duration_seconds
        return (self.ends_at - now).total_seconds()


def term_of(time_zone: str, requested: ChangeRequest, now: datetime) -> Term:
    """Return the end of the requested access. Typed times are in `time_zone`."""
    if requested.until is None:
        return Term()
    zone = zone_of(time_zone)
    if zone is None:
        problem = f"I don't know your time zone ({time_zone}), so I don't know when that is."
        raise misuse("add", problem, has_right_form=True)
    ends_at = moment_of(requested.until, now, zone)
    if ends_at is None:
        far = "has passed, or is more than ten years away"
        raise misuse("add", f"“{spell_when(requested.until)}” {far}.", has_right_form=True)
    return Term(ends_at)


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
    if not _NUMBER.fullmatch(text):
        return ""
    digits = re.sub("[^0-9]", "", text.replace("(0)", ""))
    digits = digits if "+" in text else digits.removeprefix("00")
    return f"+{digits}" if 0 < len(digits) <= MOST_DIGITS else ""


def question(typed: str, meant: str = "") -> str:
    """Return the error text for a word or line that doesn't look like an identity."""
    guess = f" Did you mean “{meant}”?" if meant else ""
    return (
        f"“{typed[:80]}” doesn't look like a phone number (+ and digits), an email address or a"
        f" chat address (whatsapp:+15550100).{guess} To use it as typed, put it in quotes."
    )


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A parsed subcommand other than `add` and `remove`. `form` is its name in `bot/commands.py`.

    `text` is the search text for a list, or the name of a preset that contains `identities`.
    """

    form: str
    flow: str = ""
    text: str = ""
    identities: tuple[str, ...] = ()


TestusersRequest = ChangeRequest | Subcommand


def parse_testusers(text: str, aliases: Collection[str] = ()) -> TestusersRequest:
    """Parse the text of a `/testusers` command. `aliases` are the short names of flows.

    Raises:
        UsageError: The text can't be parsed. The error suggests only commands that can be parsed.
    """

    def is_understood(meant: Meant) -> bool:
        try:
            return bool(_parse(meant.words, aliases))
        except UsageError:
            return False

    try:
        return _parse(text, aliases)
    except UsageError as error:
        error.meant = tuple(filter(is_understood, error.meant))
        raise


def _parse(text: str, aliases: Collection[str]) -> TestusersRequest:
    refuse_endless(text, TESTUSERS, "add")
    words = [word for word in read_words(text, commas=True) if not word.is_dash]
    if not words:
        return Subcommand(FORM)
    if asks_for_help(words[:1]):
        return Subcommand(HELP)
    action, rest = words[0].keyword, words[1:]
    match action:
        case "add" | "remove":
            return parse_change(action, rest, text)
        case "list" | "history":
            if not rest:
                flows = sorted(aliases)[:FLOWS_OFFERED]
                meant = [Meant(text.strip(), f"{action} {flow}", flow) for flow in flows]
                raise misuse(action, "Which flow?", has_right_form=bool(flows)).or_rather(*meant)
            if action == "history" and rest[1:]:
                raise misuse(action, f"Unexpected word: “{rest[1].text[:80]}”.")
            return Subcommand(action, rest[0].text, " ".join(word.text for word in rest[1:]))
        case "preset" | "presets" if action == "preset" or (
            rest and rest[0].keyword in PRESET_ACTIONS
        ):
            return _parse_preset(rest, text)
        case "requests" | "mine" | "presets":
            if rest:
                raise misuse(action, f"Use /testusers {action} alone, with nothing after it.")
            return Subcommand(action)
    raise unknown(TESTUSERS, words)


def as_typed(text: str, aliases: Collection[str]) -> str:
    """Reorder text such as `add +1 to welcome for 2h` as a command: `add welcome +1 for 2h`.

    The flow is recognized if its name or SID follows `to`, `on` or `from`.
    """
    words = [word for word in read_words(text, commas=True) if not word.is_dash]
    names = set(map(skeleton, aliases))
    for before, word in pairwise(words[1:]):
        is_flow = is_flow_sid(word.text) or skeleton(word.text) in names
        if before.keyword in ("to", "on", "from") and is_flow:
            people, rest = text[words[0].end : before.start], text[word.end :]
            return f"{words[0].text} {word.text}{people}{rest}".strip()
    return text


def _parse_preset(words: Sequence[Word], text: str) -> Subcommand:
    place = words[0] if words else None
    if place is None or place.keyword not in PRESET_ACTIONS:
        meant = [
            Meant(text.strip(), f"{text[: place.start]}{action}{text[place.end :]}".strip())
            for action in closest(place.keyword if place else "", PRESET_ACTIONS)
            if place
        ]
        raise misuse("save_preset", "Choose “preset save” or “preset delete”.").or_rather(*meant)
    if len(words) == 1:
        raise misuse("save_preset", "Which preset? Add its name, e.g. demo-team.")
    name, more = folded(words[1].text).removeprefix("@"), words[2:]
    if words[1].keyword in KEYWORDS:
        problem = f"“{name}” can't be a preset name, because “add” uses it as a keyword."
        raise misuse("save_preset", problem)
    if not PRESET.fullmatch(f"@{name}"):
        problem = "Use up to 40 characters: a to z, digits, dots and dashes, e.g. demo-team."
        raise misuse("save_preset", problem)
    if words[0].keyword == "delete":
        if more:
            raise misuse("save_preset", f"Unexpected word: “{more[0].text[:80]}”.")
        return Subcommand("delete_preset", text=name)
    if taken := next((word for word in more if word.keyword in KEYWORDS), None):
        raise misuse(
            "save_preset",
            f"“{taken.keyword}” only works with “add”. A preset is only a list of people."
            f" If “{taken.text}” is a test user, put it in quotes.",
        )
    return Subcommand("save_preset", text=name, identities=people("save_preset", more, text))


def as_command(change: ChangeRequest) -> str:
    """Return a command that makes the same request, or an empty string if no command can."""
    options = (
        *(f"@{name}" for name in change.presets),
        f"for {spell_duration(change.duration_seconds)}" if change.duration_seconds else "",
        f"until {spell_when(change.until)}" if change.until else "",
        "now" if change.now else "",
        f"because {change.reason}" if change.reason else "",
    )
    exact = [quoted(word) for word in (change.flow, *change.identities)]
    plain = [word if is_identity(word) else quoted(word) for word in change.identities]
    for named in ((change.flow, *plain), exact):
        text = " ".join(filter(None, (change.kind, *named, *options)))
        try:
            if _parse(escaped(text), ()) == change:
                return f"{TESTUSERS.name} {text}"
        except UsageError:
            continue
    return ""
