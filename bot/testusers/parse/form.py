"""The form of `/testusers`: the request in it, or the problems with its inputs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.approvals.rules.durations import parse_duration
from bot.spelling import DOUBLE_QUOTES, tidy_identity
from bot.testusers.parse.change import duration_problem, reason_problem
from bot.testusers.parse.identities import is_identity, phone_in, question
from bot.testusers.parse.requests import ChangeKind, ChangeRequest
from bot.testusers.rules.changes import identities_problem


@dataclass(frozen=True, slots=True)
class TypedForm:
    """The inputs of the form; `start` and `until` are seconds since 1970, or ""."""

    flow: str
    kind: str
    identities: str
    duration: str
    start: str
    until: str
    reason: str


@dataclass(frozen=True, slots=True)
class FormProblems:
    """The error at each input; "" where there is no error."""

    flow: str = ""
    identities: str = ""
    duration: str = ""
    start: str = ""
    until: str = ""
    reason: str = ""


def parse_form(form: TypedForm, now: datetime) -> ChangeRequest | FormProblems:
    """Return the request in a form, or the errors at its inputs.

    A line is an identity, without the characters that phones add; in quotation marks it is exact.
    """
    lines = [line.strip() for line in form.identities.split("\n") if line.strip()]
    identities = tuple(filter(None, map(_identity, lines)))
    typed, reason = form.duration.strip(), " ".join(form.reason.split())
    _, _, preset = form.kind.partition("@")
    start, until = _moment(form.start), _moment(form.until)
    odd = next(_odd_lines(lines), "")
    nobody = not (preset and not identities)
    problems = FormProblems(
        flow="" if form.flow else "Choose a flow.",
        identities=odd or (nobody and identities_problem(identities)) or "",
        duration=_duration_problem(form, typed),
        start=_start_problem(form.kind, start, now),
        until=_until_problem(form.kind, until, start or now),
        reason=reason_problem(reason) or "",
    )
    if problems != FormProblems():
        return problems
    kind: ChangeKind = "remove" if form.kind == "remove" else "add"
    return ChangeRequest(
        kind,
        form.flow,
        identities,
        parse_duration(typed) if typed else None,
        reason=reason,
        presets=(preset,) if preset else (),
        start=start,
        until=until,
    )


def as_line(identity: str) -> str:
    """Return the line that is read as exactly this identity."""
    is_plain = is_identity(identity) and _identity(identity) == identity
    return identity if is_plain else f'"{identity}"'


def _is_quoted(line: str) -> bool:
    return len(line) > len('""') and {*DOUBLE_QUOTES}.issuperset((line[0], line[-1]))


def _identity(line: str) -> str:
    bare = line.strip()
    return bare[1:-1] if _is_quoted(bare) else tidy_identity(line)


def _odd_lines(lines: list[str]) -> Iterator[str]:
    """Yield an error for each line that is neither quoted nor looks like an identity."""
    for line in lines:
        tidied = tidy_identity(line)
        if tidied and not (_is_quoted(line) or is_identity(tidied)):
            yield question(tidied, phone_in(tidied))


def _moment(seconds: str) -> datetime | None:
    return datetime.fromtimestamp(int(seconds), UTC) if seconds.isdecimal() else None


def _start_problem(kind: str, start: datetime | None, now: datetime) -> str:
    if start and kind == "remove":
        return "A start only works with Add."
    return "This time has passed." if start and start <= now else ""


def _until_problem(kind: str, until: datetime | None, after: datetime) -> str:
    if until and kind == "remove":
        return "An end only works with Add."
    return "The end has passed, or is before the start." if until and until <= after else ""


def _duration_problem(form: TypedForm, typed: str) -> str:
    if not typed:
        return ""
    if form.kind == "remove":
        return "A duration only works with Add."
    if form.until:
        return "Fill in “For” or “Until”, not both."
    return "" if parse_duration(typed) else duration_problem(typed)
