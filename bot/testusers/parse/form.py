"""The `/testusers` form: the request in it, or the problems with its inputs."""

from dataclasses import dataclass
from datetime import UTC, datetime

from bot.approvals.parse import parse_duration
from bot.spelling import DOUBLE_QUOTES, tidy_identity
from bot.testusers.parse.change import ChangeRequest, duration_problem, reason_problem
from bot.testusers.parse.identities import is_identity, phone_in, question
from bot.testusers.rules.changes import identities_problem


@dataclass(frozen=True, slots=True)
class TypedForm:
    """The form's inputs; `start` and `until` are seconds since 1970, or ""."""

    flow: str
    kind: str
    identities: str
    duration: str
    start: str
    until: str
    reason: str


def parse_form(form: TypedForm, now: datetime) -> ChangeRequest | dict[str, str]:
    """Return the request in a form, or the problems by input name.

    Each line is an identity, without characters that phones add; text in quotation marks is taken
    exactly.
    """
    lines = [line.strip() for line in form.identities.split("\n") if line.strip()]
    identities = tuple(filter(None, map(_identity, lines)))
    typed, reason = form.duration.strip(), " ".join(form.reason.split())
    odd = odd_line(form.identities)
    preset = form.kind.partition("@")[2]
    start, until = moment(form.start), moment(form.until)
    needs_people = bool(identities) or not preset
    problems = {
        "flow": "" if form.flow else "Choose a flow.",
        "identities": question(odd, phone_in(odd))
        if odd
        else needs_people and identities_problem(identities),
        "duration": _duration_problem(typed, has_end=bool(until)),
        "start": "This time has passed." if start and start <= now else "",
        "until": (
            "The end must be in the future, and after the start."
            if until and until <= (start or now)
            else ""
        ),
        "reason": reason_problem(reason),
    }
    if form.kind == "remove":
        only_add = {"duration": "A duration", "start": "A start", "until": "An end"}
        for name, what in only_add.items():
            problems[name] = f"{what} only works with Add." if getattr(form, name).strip() else ""
    found = {name: problem for name, problem in problems.items() if problem}
    if found:
        return found
    return ChangeRequest(
        "remove" if form.kind == "remove" else "add",
        form.flow,
        identities,
        parse_duration(typed) if typed else None,
        reason=reason,
        presets=(preset,) if preset else (),
        start=start,
        until=until,
    )


def as_line(identity: str) -> str:
    """Return the line that the parser reads as exactly this identity."""
    is_plain = is_identity(identity) and _identity(identity) == identity
    return identity if is_plain else f'"{identity}"'


def _is_quoted(line: str) -> bool:
    return len(line) > len('""') and {*DOUBLE_QUOTES}.issuperset((line[0], line[-1]))


def _identity(line: str) -> str:
    bare = line.strip()
    return bare[1:-1] if _is_quoted(bare) else tidy_identity(line)


def odd_line(identities: str) -> str:
    """Return the first unquoted line that doesn't look like an identity, or ""."""
    for line in identities.split("\n"):
        tidied = tidy_identity(line)
        if tidied and not (_is_quoted(line.strip()) or is_identity(tidied)):
            return tidied
    return ""


def with_line(identities: str, odd: str, line: str) -> str:
    """Return the input's text with each line that equals `odd`, once tidied, replaced by `line`."""
    lines = identities.split("\n")
    return "\n".join(line if tidy_identity(typed) == odd else typed for typed in lines)


def moment(seconds: str) -> datetime | None:
    """Return the time in a picker; None if it is empty."""
    return datetime.fromtimestamp(int(seconds), UTC) if seconds.isdecimal() else None


def _duration_problem(typed: str, *, has_end: bool) -> str:
    if typed and has_end:
        return "Fill in “For” or “Until”, not both."
    return duration_problem(typed) if typed and not parse_duration(typed) else ""
