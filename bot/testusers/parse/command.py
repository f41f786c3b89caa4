"""The parsers for `/testusers` and its form, which name what is wrong, and what buttons store.

A command is sorted into the inputs of the form, so that both are checked by the same function.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Literal

from bot.approvals.times import (
    LocalTime,
    When,
    duration_at,
    moment_of,
    parse_duration,
    parse_when,
    zone_of,
)
from bot.commands import FORM, HELP, TESTUSERS
from bot.errors import Unsent, UsageError
from bot.slack.messages.block_kit import OPTION_CHARACTERS, VALUE_CHARACTERS, ButtonValue
from bot.slack.parse import Word, asks_for_help, rest_of_line, unknown, words_of
from bot.spelling import closest, folded, one_line
from bot.testusers.parse.identities import (
    KEYWORDS,
    LOST,
    PRESET,
    REPLACEMENT,
    is_person,
    lines_of,
    read_lines,
)
from bot.testusers.rules.requests import MAX_REASON_CHARS

ChangeKind = Literal["add", "remove"]

FOR_CHARACTERS = 80
# In the year 5138. Nothing can be added to a time at the end of the calendar.
LAST_MOMENT = 99_999_999_999
# The most characters of these inputs.
LIMITS = {
    "flow": OPTION_CHARACTERS,
    "duration": FOR_CHARACTERS,
    "reason": MAX_REASON_CHARS,
}
PRESET_ACTIONS = ("save", "delete")
# The most words of an end in a reason, with its keyword.
MOST_END_WORDS = 12
# Marks around a word, other than quotation marks.
_MARKS = re.compile(r"^(?:[^\w\"']|_)+|(?:[^\w\"']|_)+$")
ONE_END = "Use either “for” or “until”, and use it only once."
# The readers of the words after these keywords.
ENDS: Mapping[str, Callable[[Sequence[str]], tuple[int | LocalTime, int] | None]] = {
    "for": duration_at,
    "until": parse_when,
}
# The noun and the examples for each of them.
EXAMPLES = {
    "for": ("a duration", "30m, 2h or 3d"),
    "until": ("a time", "18:00, friday, tomorrow 9:00 or 2026-12-01 09:00"),
}


@dataclass(frozen=True)
class Prefilled(ButtonValue):
    """The values of the form's inputs, which buttons store.

    Attributes:
        flow: A flow's alias or SID.
        kind: `add` or `remove`.
        identities: The identities that a button fills in.
        duration: The duration as typed.
        until: The end of access.
        reason: The reason as typed.
        lines: More lines of the identities input, as typed.
    """

    flow: str = ""
    kind: ChangeKind = "add"
    identities: tuple[str, ...] = ()
    duration: str = ""
    until: When | None = None
    reason: str = ""
    lines: tuple[str, ...] = ()

    def unsent(self) -> Unsent:
        """Return the value of a button that opens the form, and the texts that don't fit."""
        fitting, texts = self, list[str]()
        for name, limit in LIMITS.items():
            if len(typed := getattr(self, name)) > limit:
                empty: Any = {name: ""}
                fitting = replace(fitting, **empty)
                texts.append(typed)
        if len(fitting.value()) > VALUE_CHARACTERS:
            fitting = replace(fitting, identities=(), lines=())
            texts.append("\n".join((*map(as_line, self.identities), *self.lines)))
        return Unsent(fitting.value(), tuple(texts))


@dataclass(frozen=True)
class ShownRequest:
    """The value of a button on a card: the request, and the version of what the card says.

    `version` is 0 for a button from before version 0.4.0.
    """

    request_id: str
    version: int = 0

    def value(self) -> str:
        """Return the button's value."""
        return f"{self.request_id}:{self.version}"

    @classmethod
    def of(cls, value: str) -> "ShownRequest":
        """Read a button's value."""
        request_id, _, version = value.partition(":")
        return cls(request_id, int(version) if version.isdecimal() else 0)


def as_line(identity: str) -> str:
    """Return a form line for exactly this identity, in quotation marks if necessary.

    An identity with both kinds of quotation marks might be refused in the form.
    """
    for line in (identity, f'"{identity}"', f"'{identity}'"):
        if read_lines([line])[:2] == ((identity,), ()):
            return line
    return identity


def moment(seconds: str) -> datetime | None:
    """Return the time from a date picker (seconds since 1970), or None if it's empty.

    Times that can't be read are in 1970, so that they're refused and don't mean access forever.
    Times after the year 5138 are in that year.
    """
    if not seconds:
        return None
    # A number with thousands of digits can't be read at all.
    number = int(seconds[:20]) if seconds.isdecimal() else 0
    return datetime.fromtimestamp(min(number, LAST_MOMENT), UTC)


@dataclass(frozen=True)
class ChangeRequest:
    """A change, as typed. Access ends at `until`, after `duration_seconds`, or never.

    `filled` is the form with everything as it was typed.
    """

    kind: ChangeKind
    flow: str
    identities: tuple[str, ...]
    duration_seconds: int | None = None
    now: bool = False
    reason: str = ""
    presets: tuple[str, ...] = ()
    until: When | None = None
    filled: Prefilled = field(default=Prefilled(), compare=False)

    @property
    def form(self) -> str:
        """The form of the command, which determines the required permission."""
        return "now" if self.now else self.kind


def misuse(action: str, sentence: str) -> UsageError:
    """Return an error for a mistake in `/testusers <action>`. The error shows the correct usage."""
    return TESTUSERS.misuse(sentence, action)


def parse_change(kind: ChangeKind, words: Sequence[Word], text: str) -> ChangeRequest:
    """Return the change requested by the words after `add` or `remove` in the command `text`.

    Raises:
        UsageError: The change can't be made as it was typed. A form can correct it.
    """
    filled, is_now, problems = Prefilled(kind=kind), False, dict[str, str]()
    left, people = list(words), list[Word]()
    if left and left[0].keyword not in KEYWORDS and (left[0].is_quoted or not is_person(left[0])):
        filled = replace(filled, flow=left.pop(0).text)
    else:
        problems["flow"] = f"Which flow? Put the flow first, e.g. {kind} welcome …"
    while left:
        word = left.pop(0)
        if word.keyword in ENDS:
            filled = _with_end(filled, word.keyword, left, text, problems)
        elif word.keyword == "because":
            left.clear()
            filled = replace(filled, reason=rest_of_line(text, word.end))
            if not filled.reason:
                problems["reason"] = "Add a reason after “because”."
        elif word.keyword == "now":
            is_now = True
        else:
            people.append(word)
    filled = replace(filled, lines=lines_of(people, text))
    if is_now and not filled.reason:
        problems.setdefault("reason", "“now” needs a reason. Add “because …” at the end.")
    parsed = parse_form(filled)
    if isinstance(parsed, ChangeRequest) and not problems:
        return replace(parsed, now=is_now)
    # What is wrong with the command explains more than what is wrong with the form.
    wrong = problems if isinstance(parsed, ChangeRequest) else parsed | problems
    if is_now:
        wrong |= {"now": "The form asks for approval, so repeat the command to use “now”."}
    error = misuse("now" if is_now else kind, " ".join(dict.fromkeys(wrong.values())))
    error.unsent = filled.unsent()
    raise error


def _with_end(
    filled: Prefilled, keyword: str, left: list[Word], text: str, problems: dict[str, str]
) -> Prefilled:
    """Return the form with a duration or time as typed, whose words are removed from `left`."""
    plain = takewhile(lambda word: not word.is_quoted and word.keyword not in KEYWORDS, left)
    typed = [folded(word.text) for word in plain]
    end, count = ENDS[keyword](typed) or (None, 0)
    if end is None:
        # The next words seem to be one duration or time that can't be read.
        for word in left[: len(typed)]:
            if is_person(word) or word.end - left[0].start > FOR_CHARACTERS:
                break
            count += 1
    said = rest_of_line(text[: left[count - 1].end], left[0].start) if count else ""
    del left[:count]
    if filled.kind == "remove":
        problem = f"“{keyword}” only works with “add”."
    elif filled.duration or filled.until:
        problem = ONE_END
    elif end is None:
        problem = end_problem(keyword, said)
    elif isinstance(end, int):
        # Its words can stand behind commas, which the form's input doesn't allow.
        return replace(filled, duration=" ".join(typed[:count]))
    else:
        return replace(filled, until=end)
    problems.setdefault("duration", problem)
    # The form can't be sent until somebody corrects this.
    return replace(filled, duration=f"{filled.duration} {keyword} {said}".strip())


def parse_form(form: Prefilled) -> ChangeRequest | dict[str, str]:
    """Return the change requested in a form, or a dictionary of problems keyed by input name."""
    # Messages say “for 2h”, so that can be typed here, too.
    typed = folded(form.duration).removeprefix("for ")
    seconds, reason = parse_duration(typed), one_line(form.reason)
    identities, presets, problem = read_lines(form.lines)
    wrong = {
        "flow": "" if form.flow else "Choose a flow.",
        "lines": problem,
        "reason": reason_problem(reason) or _end_in_reason(form),
    }
    if form.kind == "remove":
        wrong["duration"] = "A duration only works with Add." if typed else ""
        wrong["until"] = "An end date only works with Add." if form.until else ""
    elif typed and form.until:
        wrong["duration"] = "Fill in “For” or “Until”, not both."
    elif typed and not seconds:
        wrong["duration"] = end_problem("for", typed)
    return {name: problem for name, problem in wrong.items() if problem} or ChangeRequest(
        form.kind,
        form.flow,
        identities,
        seconds,
        reason=reason,
        presets=presets,
        until=form.until,
        filled=form,
    )


def reason_problem(reason: str) -> str | None:
    """Return a sentence that explains why the reason isn't accepted, or None if it is."""
    if len(reason) > MAX_REASON_CHARS:
        return (
            f"The reason is too long: it has {len(reason):,} characters. A reason can have at most"
            f" {MAX_REASON_CHARS} characters."
        )
    return LOST if REPLACEMENT in reason else None


def _end_in_reason(form: Prefilled) -> str:
    """Return a question if an addition has no end, but its reason ends in one (`… for 2h`)."""
    if form.kind == "remove" or form.duration or form.until:
        return ""
    words = [word for word in form.reason.split() if any(map(str.isalnum, word))][-MOST_END_WORDS:]
    plain = [_MARKS.sub("", folded(word)) for word in words]
    for at, word in enumerate(plain):
        rest = plain[at + 1 :]
        if word in ENDS and (end := ENDS[word](rest)) and end[1] == len(rest):
            return (
                f"The reason ends in “{' '.join(words[at:])}”, but there's no end date. Should"
                " access end then? If so, move these words out of the reason. Otherwise, put them"
                " in quotes."
            )
    return ""


def end_problem(keyword: str, typed: str) -> str:
    """Return a sentence that explains what to type after `for` or `until`."""
    noun, examples = EXAMPLES[keyword]
    if not typed:
        return f"Add {noun} after “{keyword}”, e.g. {examples}."
    return f"I can't read “{typed}” as {noun}. Try {examples}."


def end_of(time_zone: str, requested: ChangeRequest, now: datetime) -> datetime | None:
    """Return the fixed end of the requested access, if any. Typed times are in `time_zone`."""
    if requested.until is None:
        return None
    # The form's date picker says exactly when, whatever the zone.
    zone = zone_of(time_zone if isinstance(requested.until, LocalTime) else "UTC")
    if zone is None:
        problem = f"I don't recognize your time zone ({time_zone}), so I can't tell when that is."
        raise misuse("add", problem)
    ends_at = moment_of(requested.until, now, zone)
    if ends_at is None:
        typed = f"“{requested.until}”" if isinstance(requested.until, LocalTime) else "That time"
        raise misuse("add", f"{typed} has already passed, or it's more than ten years away.")
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


TestusersRequest = ChangeRequest | Subcommand


def parse_testusers(text: str) -> TestusersRequest:
    """Parse the text of a `/testusers` command.

    Raises:
        UsageError: The text can't be parsed.
    """
    words = words_of(text, TESTUSERS, "add", commas=True)
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
    name, more = folded(words[1].text).removeprefix("@") if words[1:] else "", words[2:]
    if not PRESET.fullmatch(f"@{name}"):
        problem = "Use up to 40 characters: a to z, digits, dots and dashes, e.g. demo-team."
        raise misuse("save_preset", f"Which preset? {problem}")
    if action == "delete":
        if more:
            raise misuse("save_preset", f"Unexpected word: “{more[0].text[:80]}”.")
        return Subcommand("delete_preset", text=name)
    identities, presets, wrong = read_lines(lines_of(more, text))
    if presets or wrong:
        raise misuse("save_preset", wrong or "A preset can't contain other presets.")
    return Subcommand("save_preset", text=name, identities=identities)
