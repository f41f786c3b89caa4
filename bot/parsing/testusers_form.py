"""The form of `/testusers`: what was typed to a request, or what is wrong at which input."""

from bot.dataclass import dataclass
from bot.model.durations import parse_duration
from bot.model.spelling import DOUBLE_QUOTES, tidy_identity
from bot.model.start_times import parse_start
from bot.model.testusers.changes import identities_problem
from bot.parsing.testusers_change import duration_problem, reason_problem, start_problem
from bot.parsing.testusers_requests import ChangeKind, ChangeRequest


@dataclass(frozen=True, slots=True)
class TypedForm:
    """What stands in the inputs, as it was typed."""

    flow: str
    kind: str
    identities: str
    duration: str
    start: str
    reason: str


@dataclass(frozen=True, slots=True)
class FormProblems:
    """What is wrong, by input; empty where all is right."""

    flow: str = ""
    identities: str = ""
    duration: str = ""
    start: str = ""
    reason: str = ""


def parse_form(form: TypedForm) -> ChangeRequest | FormProblems:
    """The request that a form makes, or what is wrong at which of its inputs.

    A line is an identity, without what phones put around it; in quotation marks it is exact.
    """
    lines = [_identity(line) for line in form.identities.split("\n")]
    identities = tuple(line for line in lines if line)
    typed, reason = form.duration.strip(), " ".join(form.reason.split())
    _, _, preset = form.kind.partition("@")
    start = parse_start(form.start.split())
    problems = FormProblems(
        flow="" if form.flow else "Choose a flow.",
        identities="" if preset and not identities else identities_problem(identities) or "",
        duration=_duration_problem(form.kind, typed),
        start=_start_problem(form.kind, form.start.strip()),
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
        start=start[0] if start else None,
    )


def as_line(identity: str) -> str:
    """The line that is read as just this identity."""
    return identity if _identity(identity) == identity else f'"{identity}"'


def _identity(line: str) -> str:
    bare = line.strip()
    is_quoted = len(bare) > len('""') and {*DOUBLE_QUOTES}.issuperset((bare[0], bare[-1]))
    return bare[1:-1] if is_quoted else tidy_identity(line)


def _start_problem(kind: str, typed: str) -> str:
    if not typed:
        return ""
    if kind == "remove":
        return "A start time only works with Add."
    found = parse_start(typed.split())
    return "" if found and found[1] == len(typed.split()) else start_problem(typed)


def _duration_problem(kind: str, typed: str) -> str:
    if not typed:
        return ""
    if kind == "remove":
        return "A duration only works with Add."
    return "" if parse_duration(typed) else duration_problem(typed)
