"""The parser for the `/testusers` form, and the values that buttons fill in."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from bot.approvals.times import parse_duration
from bot.flows.rules.identities import identities_problem
from bot.slack.messages.block_kit import ButtonValue
from bot.slack.parse import escaped, read_words
from bot.spelling import DOUBLE_QUOTES, folded
from bot.testusers.parse.command import ChangeKind, ChangeRequest, end_problem, reason_problem
from bot.testusers.parse.identities import OddWord, read_identities, unclear

# The number of characters of a line that an error names.
LINE_CHARACTERS = 80


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
        more_seconds: The number of seconds that a button adds without opening the form.
        lines: The lines of the identities input, as typed. Buttons don't store them.
    """

    flow: str = ""
    kind: ChangeKind = "add"
    identities: tuple[str, ...] = ()
    duration: str = ""
    until: datetime | None = None
    reason: str = ""
    more_seconds: int = 0
    lines: Annotated[tuple[str, ...], Field(exclude=True)] = ()


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


def parse_form(form: Prefilled) -> ChangeRequest | dict[str, str]:
    """Return the change requested in a form, or a dictionary of problems keyed by input name.

    Each line is an identity.
    """
    # Messages say “for 2h”, so that can be typed here, too.
    typed = folded(form.duration).removeprefix("for ")
    seconds = parse_duration(typed)
    reason = " ".join(form.reason.split())
    identities, problem = read_lines(form.lines)
    wrong = {
        "flow": "" if form.flow else "Choose a flow.",
        "lines": problem or identities_problem(identities),
        "reason": reason_problem(reason),
    }
    if typed and form.until:
        wrong["duration"] = "Fill in “For” or “Until”, not both."
    elif typed and not seconds:
        wrong["duration"] = end_problem("for", typed)
    if form.kind == "remove":
        wrong["duration"] = "A duration only works with Add." if typed else ""
        wrong["until"] = "An end date only works with Add." if form.until else ""
    if found := {name: problem for name, problem in wrong.items() if problem}:
        return found
    return ChangeRequest(form.kind, form.flow, identities, seconds, reason=reason, until=form.until)


def read_lines(lines: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the identities on these lines, and a sentence about lines that can't be read, if any.

    Each line is one identity, typed as in the command.
    """
    identities = list[str]()
    odd = list[OddWord]()
    problems = list[str]()
    for line in lines:
        typed = escaped(line)
        found, others = read_identities(read_words(typed, commas=True), typed)
        identities += found
        if len(others) > 1 and not found:
            others = (OddWord(line.strip()),)
        odd += others
        if found and len(found) + len(others) > 1 and not problems:
            shown = line.strip()[:LINE_CHARACTERS]
            problems.append(f"Each identity needs a line of its own: “{shown}”.")
    if odd:
        problems.append(unclear(odd))
    return tuple(identities), " ".join(problems)


def as_line(identity: str) -> str:
    """Return a form line for exactly this identity, in quotation marks if necessary."""
    return identity if read_lines([identity]) == ((identity,), "") else quoted(identity)


def quoted(identity: str) -> str:
    """Put an identity in single or double quotation marks, whichever it doesn't contain."""
    mark = "'" if any(mark in identity for mark in DOUBLE_QUOTES) else '"'
    return f"{mark}{identity}{mark}"


def moment(seconds: str) -> datetime | None:
    """Return the time from a date picker (seconds since 1970), or None if it's empty."""
    return datetime.fromtimestamp(int(seconds), UTC) if seconds.isdecimal() else None
