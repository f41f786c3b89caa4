"""The parser for `/testusers`, which raises usage errors with a correct example.

An identity is a phone number, an email address, a `scheme:value`, or anything in quotes. Any
other word is refused, in the command and in the form.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise, takewhile
from typing import Literal

from bot.approvals.times import (
    MOST_PARTS,
    When,
    moment_of,
    parse_duration,
    parse_when,
    zone_of,
)
from bot.commands import FORM, HELP, TESTUSERS
from bot.errors import UsageError
from bot.slack.parse import (
    Word,
    asks_for_help,
    read_words,
    refuse_endless,
    rest_of_line,
    unknown,
)
from bot.spelling import (
    DOUBLE_QUOTES,
    LONG_DASHES,
    SINGLE_QUOTES,
    closest,
    folded,
    tidy_identity,
)
from bot.testusers.rules.changes import (
    MAX_IDENTITY_BYTES,
    MAX_REASON_CHARS,
    identities_problem,
    is_sendable,
)

KEYWORDS = frozenset({"for", "from", "until", "now", "because"})
MOST_DIGITS = 15
_LETTER = r"[^\W_]"
# The local part is an RFC 5322 dot-atom that begins with a letter or a digit, without the marks
# that Slack uses for formatting (`*`, `~` and backticks). An address can contain non-ASCII letters.
_ATOM = r"[\w!#$%&'+/=?^-]+"
_LABEL = rf"{_LETTER}(?:[\w-]*{_LETTER})?"
EMAIL = rf"{_LETTER}(?:{_ATOM})?(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})+"
_IDENTITY = re.compile(
    rf"\+[0-9]{{1,{MOST_DIGITS}}}"
    rf"|(?!(?:{'|'.join(sorted(KEYWORDS))}):)[a-z][a-z0-9+.-]*:\S+"
    rf"|{EMAIL}",
    re.IGNORECASE,
)
_EMAIL = re.compile(EMAIL)
_NUMBER = re.compile(r"(?:\+|00|\(\+)[0-9()./\s-]+")
_DASH = re.compile(f"[{LONG_DASHES}]")
_PUNCTUATION = ".,;:!?"
_AROUND = frozenset({"**", "__", "~~", "``", "()", "[]", "{}", "<>"})
_DECORATION = f"*_~`{_PUNCTUATION}()[]{{}}<>{DOUBLE_QUOTES}{SINGLE_QUOTES}"
PRESET = re.compile(r"@([A-Za-z0-9][A-Za-z0-9._-]{0,39})")
TIME_EXAMPLES = "18:00, friday, tomorrow 9:00 or 2026-12-01 09:00"
NO_START = "A change is applied once it's approved, so “from” isn't possible. Ask later instead."
# Keywords that only work with `add`, and the fields of `ChangeRequest` that they set.
TERMS = {"for": "duration_seconds", "until": "until"}
# The first and later parts of a phone number that was pasted with spaces.
_FIRST_PART = re.compile(rf"\+?[0-9(][0-9()./{LONG_DASHES}-]*")
_NEXT_PART = re.compile(rf"[0-9()./{LONG_DASHES}-]*[0-9][0-9()./{LONG_DASHES}-]*")
FLOWS_OFFERED = 5
# The number of words, and of characters of each word, that an error names.
WORDS_NAMED = 10
NAME_CHARACTERS = 80
PRESET_ACTIONS = ("save", "delete")

ChangeKind = Literal["add", "remove"]


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Unclear:
    """A change with words that can't be read. `understood` is the change without these words."""

    understood: ChangeRequest
    problem: str

    @property
    def form(self) -> str:
        """The form of the command, which determines the required permission."""
        return self.understood.form


def parse_change(kind: ChangeKind, words: Sequence[Word], text: str) -> ChangeRequest | Unclear:
    """Return the change requested by the words after `add` or `remove` in the command `text`."""
    if not words:
        raise misuse(kind, "Which flow, and who? Put the flow first, then phone numbers or IDs.")
    first = words[0]
    if first.keyword in KEYWORDS or (not first.is_quoted and is_identity(first.text)):
        raise misuse(kind, f"Which flow? Put it first, e.g. {kind} welcome …")
    change = ChangeRequest(kind, first.text, ())
    named = list[Word]()
    left = list(words[1:])
    while left:
        word = left.pop(0)
        if word.keyword == "from":
            raise misuse(kind, NO_START)
        if word.keyword in KEYWORDS:
            change = _with_option(change, word, left, text)
        elif not word.is_quoted and (preset := PRESET.fullmatch(folded(word.text))):
            change = replace(change, presets=(*change.presets, preset.group(1)))
        else:
            named.append(word)
    identities, odd = read_identities(named, text)
    presets = tuple(dict.fromkeys(change.presets))
    change = replace(change, identities=identities, presets=presets)
    if odd:
        return Unclear(change, unclear(odd))
    _check(change)
    return change


def _check(change: ChangeRequest) -> None:
    if change.identities or not change.presets:
        _require_identities(change.kind, change.identities)
    if change.now and not change.reason:
        raise misuse("now", "“now” needs a reason. Add “because …” at the end.")
    if change.duration_seconds and change.until:
        raise misuse(change.kind, "Use “for” or “until”, not both.")


def _require_identities(action: str, identities: Sequence[str]) -> None:
    if problem := identities_problem(identities):
        raise misuse(action, problem, has_right_form=bool(identities))


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
        raise misuse(kind, f"“{keyword}” only works with “add”.")
    if getattr(change, TERMS[keyword]) is not None:
        raise misuse(kind, f"You used “{keyword}” twice.")
    typed = [folded(word.text) for word in takewhile(_is_plain, left)]
    if keyword == "for":
        seconds, count = _duration_at(typed)
        if count:
            del left[:count]
            return replace(change, duration_seconds=seconds)
        raise misuse(kind, duration_problem(" ".join(typed[:2])))
    found = parse_when(typed)
    if found is None:
        unread = f"I can't read “{' '.join(typed[:2])[:80]}” as a time. Try"
        raise misuse(kind, f"{unread if typed else 'Add a time, e.g.'} {TIME_EXAMPLES}.")
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


def _duration_at(typed: Sequence[str]) -> tuple[int, int]:
    """Return the duration at the start of `typed`, and how many words it spans (0 for none)."""
    for count in range(min(len(typed), 2 * MOST_PARTS), 0, -1):
        if (seconds := parse_duration(" ".join(typed[:count]))) is not None:
            return seconds, count
    return 0, 0


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
        if not count:
            count = _parts_of_number(ahead, text)
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


def _time_at(words: Sequence[Word]) -> tuple[str, int]:
    """Return the keyword for a duration or time at the start, and how many words it spans."""
    typed = [folded(word.text) for word in takewhile(_is_plain, words)]
    _, count = _duration_at(typed)
    if count:
        return "for", count
    if found := parse_when(typed):
        return "until", found[1]
    return "", 0


def _parts_of_number(words: Sequence[Word], text: str) -> int:
    """Return how many words at the start are one phone number that was typed with spaces."""
    count = 1
    if words[0].is_quoted or not _FIRST_PART.fullmatch(words[0].text):
        return count
    for before, word in pairwise(words):
        is_apart = text[before.end : word.start].isspace()
        if not is_apart or word.is_quoted or not _NEXT_PART.fullmatch(word.text):
            break
        if _time_at(words[count:])[1]:
            break
        count += 1
    return count


def _meant(typed: str) -> str:
    """Return the identity or keyword that was probably meant, or an empty string."""
    if len(typed) > MAX_IDENTITY_BYTES:
        return ""
    plain = unicodedata.normalize("NFKC", typed)
    if number := phone_in(plain.strip(_DECORATION)):
        return number
    # Only what wraps all of it can't belong to it: `chat:ada_` in backticks isn't chat:ada.
    bare = plain.rstrip(_PUNCTUATION)
    while bare[:1] + bare[-1:] in _AROUND and not is_identity(bare):
        bare = bare[1:-1]
    if is_identity(bare):
        return bare
    if address := _EMAIL.search(plain):
        return address.group()
    near = [keyword for keyword in closest(typed, sorted(KEYWORDS)) if keyword != folded(typed)]
    return next(iter(near), "")


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


def end_of(time_zone: str, requested: ChangeRequest, now: datetime) -> datetime | None:
    """Return the fixed end of the requested access, if any. Typed times are in `time_zone`."""
    if requested.until is None:
        return None
    zone = zone_of(time_zone)
    if zone is None:
        problem = f"I don't know your time zone ({time_zone}), so I don't know when that is."
        raise misuse("add", problem, has_right_form=True)
    ends_at = moment_of(requested.until, now, zone)
    if ends_at is None:
        far = "has passed, or is more than ten years away"
        raise misuse("add", f"“{requested.until}” {far}.", has_right_form=True)
    return ends_at


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


@dataclass(frozen=True)
class Subcommand:
    """A parsed subcommand other than `add` and `remove`. `form` is its name in `bot/commands.py`.

    `text` is the search text for a list, or the name of a preset that contains `identities`.
    """

    form: str
    flow: str = ""
    text: str = ""
    identities: tuple[str, ...] = ()


TestusersRequest = ChangeRequest | Unclear | Subcommand


def parse_testusers(text: str, aliases: Collection[str] = ()) -> TestusersRequest:
    """Parse the text of a `/testusers` command. `aliases` are the short names of flows.

    Raises:
        UsageError: The text can't be parsed.
    """
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
        case "list" | "history" | "review" if rest or action != "review":
            if not rest:
                flows = {f"{action} {flow}": flow for flow in sorted(aliases)[:FLOWS_OFFERED]}
                error = misuse(action, "Which flow?", has_right_form=bool(flows))
                raise error.suggesting(text.strip(), flows)
            if action != "list" and rest[1:]:
                raise misuse(action, f"Unexpected word: “{rest[1].text[:80]}”.")
            return Subcommand(action, rest[0].text, " ".join(word.text for word in rest[1:]))
        case "preset":
            return _parse_preset(rest, text)
        case "requests" | "mine" | "presets" | "review":
            if rest:
                raise misuse(action, f"Use /testusers {action} alone, with nothing after it.")
            return Subcommand(action)
    raise unknown(TESTUSERS, words)


def _parse_preset(words: Sequence[Word], text: str) -> Subcommand:
    place = words[0] if words else None
    if place is None or place.keyword not in PRESET_ACTIONS:
        error = misuse("save_preset", "Choose “preset save” or “preset delete”.")
        near = closest(place.keyword, PRESET_ACTIONS) if place else []
        raise error.suggesting(place.text if place else "", dict.fromkeys(near, ""))
    if len(words) == 1:
        raise misuse("save_preset", "Which preset? Add its name, e.g. demo-team.")
    name, more = folded(words[1].text).removeprefix("@"), words[2:]
    if not PRESET.fullmatch(f"@{name}"):
        problem = "Use up to 40 characters: a to z, digits, dots and dashes, e.g. demo-team."
        raise misuse("save_preset", problem)
    if words[0].keyword == "delete":
        if more:
            raise misuse("save_preset", f"Unexpected word: “{more[0].text[:80]}”.")
        return Subcommand("delete_preset", text=name)
    identities, odd = read_identities(more, text)
    if odd:
        raise misuse("save_preset", unclear(odd), has_right_form=True)
    _require_identities("save_preset", identities)
    return Subcommand("save_preset", text=name, identities=identities)
