"""The parser for `/testusers`, which raises usage errors with a correct example."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from bot.approvals.times import When, moment_of, zone_of
from bot.commands import FORM, HELP, TESTUSERS
from bot.errors import UsageError
from bot.flows.rules.identities import identities_problem, is_sendable
from bot.slack.parse import (
    Word,
    asks_for_help,
    read_words,
    refuse_endless,
    rest_of_line,
    unknown,
)
from bot.spelling import closest, folded
from bot.testusers.parse.identities import (
    ENDS,
    KEYWORDS,
    is_identity,
    plain_words,
    read_identities,
    unclear,
)
from bot.testusers.rules.requests import MAX_REASON_CHARS

PRESET = re.compile(r"@([A-Za-z0-9][A-Za-z0-9._-]{0,39})")
PRESET_ACTIONS = ("save", "delete")
NO_START = (
    "Changes are applied as soon as they're approved, so you can't use “from”. Ask later instead."
)
# The noun and the examples for each keyword that only works with `add`.
EXAMPLES = {
    "for": ("a duration", "30m, 2h or 3d"),
    "until": ("a time", "18:00, friday, tomorrow 9:00 or 2026-12-01 09:00"),
}

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


def misuse(action: str, sentence: str) -> UsageError:
    """Return an error for a mistake in `/testusers <action>`. The error shows the correct usage."""
    return TESTUSERS.misuse(sentence, action)


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
    first = words[0] if words else None
    if first is None or first.keyword in KEYWORDS or is_identity(first.keyword):
        raise misuse(kind, f"Which flow? Put the flow first, e.g. {kind} welcome …")
    change = ChangeRequest(kind, first.text, ())
    named = list[Word]()
    left = list(words[1:])
    while left:
        word = left.pop(0)
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
    if change.identities or not change.presets:
        _require_identities(kind, change.identities)
    if change.now and not change.reason:
        raise misuse("now", "“now” needs a reason. Add “because …” at the end.")
    return change


def _require_identities(action: str, identities: Sequence[str]) -> None:
    if problem := identities_problem(identities):
        raise misuse(action, problem)


def _with_option(change: ChangeRequest, word: Word, left: list[Word], text: str) -> ChangeRequest:
    """Return the change with a keyword's option, and remove the option's words from `left`."""
    kind, keyword = change.kind, word.keyword
    if keyword == "now":
        return replace(change, now=True)
    if keyword == "from":
        raise misuse(kind, NO_START)
    if keyword == "because":
        left.clear()
        reason = rest_of_line(text, word.end)
        if problem := reason_problem(reason) if reason else "Add a reason after “because”.":
            raise misuse(kind, problem)
        return replace(change, reason=reason)
    if kind == "remove":
        raise misuse(kind, f"“{keyword}” only works with “add”.")
    if change.duration_seconds or change.until:
        raise misuse(kind, "Use either “for” or “until”, and use it only once.")
    typed = plain_words(left)
    found = ENDS[keyword](typed)
    if found is None:
        raise misuse(kind, end_problem(keyword, " ".join(typed[:2])))
    end, count = found
    del left[:count]
    if isinstance(end, int):
        return replace(change, duration_seconds=end)
    return replace(change, until=end)


def end_problem(keyword: str, typed: str) -> str:
    """Return a sentence that explains what to type after `for` or `until`."""
    noun, examples = EXAMPLES[keyword]
    if not typed:
        return f"Add {noun} after “{keyword}”, e.g. {examples}."
    return f"I can't read “{typed[:80]}” as {noun}. Try {examples}."


def reason_problem(reason: str) -> str | None:
    """Return a sentence that explains why the reason isn't accepted, or None if it is."""
    if len(reason) > MAX_REASON_CHARS:
        return (
            f"The reason is too long: it has {len(reason):,} characters. A reason can have at most"
            f" {MAX_REASON_CHARS} characters."
        )
    if reason and not is_sendable(reason):
        return "The reason contains a character I can't store. Please retype it."
    return None


def end_of(time_zone: str, requested: ChangeRequest, now: datetime) -> datetime | None:
    """Return the fixed end of the requested access, if any. Typed times are in `time_zone`."""
    if requested.until is None:
        return None
    zone = zone_of(time_zone)
    if zone is None:
        problem = f"I don't recognize your time zone ({time_zone}), so I can't tell when that is."
        raise misuse("add", problem)
    ends_at = moment_of(requested.until, now, zone)
    if ends_at is None:
        raise misuse("add", "That time has already passed, or it's more than ten years away.")
    return ends_at


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


def parse_testusers(text: str) -> TestusersRequest:
    """Parse the text of a `/testusers` command.

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
        case "requests" | "mine" | "presets" | "review" if not rest:
            return Subcommand(action)
        case "list" | "history" | "review":
            if not rest:
                raise misuse(action, "Which flow?")
            if action != "list" and rest[1:]:
                raise misuse(action, f"Unexpected word: “{rest[1].text[:80]}”.")
            return Subcommand(action, rest[0].text, " ".join(word.text for word in rest[1:]))
        case "preset":
            return _parse_preset(rest, text)
    raise unknown(TESTUSERS, words)


def _parse_preset(words: Sequence[Word], text: str) -> Subcommand:
    action = words[0].keyword if words else ""
    if action not in PRESET_ACTIONS:
        error = misuse("save_preset", "Choose “preset save” or “preset delete”.")
        raise error.suggesting(action, dict.fromkeys(closest(action, PRESET_ACTIONS), ""))
    name = folded(words[1].text).removeprefix("@") if words[1:] else ""
    more = words[2:]
    if not PRESET.fullmatch(f"@{name}"):
        problem = "Use up to 40 characters: a to z, digits, dots and dashes, e.g. demo-team."
        raise misuse("save_preset", f"Which preset? {problem}")
    if action == "delete":
        if more:
            raise misuse("save_preset", f"Unexpected word: “{more[0].text[:80]}”.")
        return Subcommand("delete_preset", text=name)
    identities, odd = read_identities(more, text)
    if odd:
        raise misuse("save_preset", unclear(odd))
    _require_identities("save_preset", identities)
    return Subcommand("save_preset", text=name, identities=identities)
