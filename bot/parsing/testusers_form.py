"""The form of `/testusers`: what was typed to a request, or what is wrong at which input."""

from dataclasses import dataclass

from bot.model.testusers import identities_problem, parse_duration
from bot.parsing.testusers import ChangeKind, ChangeRequest, duration_problem, reason_problem


@dataclass(frozen=True, slots=True)
class TypedForm:
    """What stands in the inputs, as it was typed."""

    flow: str
    kind: str
    identities: str
    duration: str
    reason: str


@dataclass(frozen=True, slots=True)
class FormProblems:
    """What is wrong, by input; empty where all is right."""

    flow: str = ""
    identities: str = ""
    duration: str = ""
    reason: str = ""


def parse_form(form: TypedForm) -> ChangeRequest | FormProblems:
    """The request that a form makes, or what is wrong at which of its inputs.

    A line is an identity, exactly as it stands; white space around it is not part of it.
    """
    lines = [line.strip() for line in form.identities.split("\n")]
    identities = tuple(line for line in lines if line)
    typed, reason = form.duration.strip(), " ".join(form.reason.split())
    problems = FormProblems(
        flow="" if form.flow else "Choose a flow.",
        identities=identities_problem(identities) or "",
        duration=_duration_problem(form.kind, typed),
        reason=reason_problem(reason) or "",
    )
    if problems != FormProblems():
        return problems
    kind: ChangeKind = "remove" if form.kind == "remove" else "add"
    duration = parse_duration(typed) if typed else None
    return ChangeRequest(kind, form.flow, identities, duration, now=False, reason=reason)


def _duration_problem(kind: str, typed: str) -> str:
    if not typed:
        return ""
    if kind == "remove":
        return "Only who is added can be added for a time."
    return "" if parse_duration(typed) else duration_problem(typed)
