"""The buttons for a request in its current state."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from bot.approvals.parse import spell_duration
from bot.approvals.rules import State
from bot.slack.messages import block_kit, ids
from bot.slack.messages.message import SlackBlock
from bot.testusers.messages.phrases import change_in_plain
from bot.testusers.rules.changes import Flow
from bot.testusers.rules.requests import Request

EXTENSIONS = {"+2 h": 2 * 3600, "+1 day": 24 * 3600}


def request_buttons(request: Request) -> list[SlackBlock]:
    """Return the row of buttons on the card, or an empty list if there are no buttons."""
    undo = undo_button(request)
    again = ("Try again?", "Sends the approved change again without a new approval", "Retry")
    buttons = {
        State.PENDING: decision_buttons(request),
        State.SCHEDULED: [deny_button(request), cancel_button(request)],
        State.FAILED: [_button(request, "Retry", ids.TESTUSERS_RETRY, sure=again)],
    }.get(request.state, [])
    if request.progress.undone_by:
        return []
    shown = [*buttons, *([undo] if undo else [])]
    return [block_kit.actions(*shown)] if shown else []


def undo_button(request: Request) -> SlackBlock | None:
    """Return `Undo`; None if the request had no effect, or if an undo would have none."""
    part = request.progress.part
    took_effect = request.state is State.APPLIED or request.has_failed_in_part
    if request.progress.undone_by or not took_effect:
        return None
    change = request.requested.change if part is None else part.change
    if request.is_over and not change.removals:
        return None
    sure = ("Ask to undo this?", "Asks an approver to take this back", "Ask to undo")
    return _button(request, "Undo", ids.TESTUSERS_UNDO, sure=sure)


def decision_buttons(
    request: Request, *, decides: bool = True, cancels: bool = True
) -> list[SlackBlock]:
    """Return `Approve` and `Deny` for approvers, `Cancel` for the requester."""
    approve = _button(request, "Approve", ids.TESTUSERS_APPROVE, style="primary")
    deciding = [approve, deny_button(request)] if decides else []
    return [*deciding, *([cancel_button(request)] if cancels else [])]


def deny_button(request: Request) -> SlackBlock:
    """Return `Deny`, which asks for a reason."""
    return _button(request, "Deny", ids.TESTUSERS_DENY, style="danger")


def cancel_button(request: Request) -> SlackBlock:
    """Return `Cancel`, which asks for confirmation."""
    sure = (
        "Cancel this request?",
        "It will be withdrawn and can't be approved anymore",
        "Cancel it",
    )
    return _button(request, "Cancel", ids.TESTUSERS_CANCEL, sure=sure)


def _button(
    request: Request,
    label: str,
    action_id: str,
    *,
    style: str | None = None,
    sure: tuple[str, str, str] | None = None,
) -> SlackBlock:
    """Return a button with the request's id; `sure` is the dialog's title, sentence and label."""
    dialog = None
    if sure is not None:
        title, sentence, proceed = sure
        dialog = block_kit.confirm(title, f"{sentence}: {change_in_plain(request)}.", proceed)
    spoken = f"{label} the request of {request.requester.name} on {request.flow.name}"
    return block_kit.button(label, action_id, request.id, style=style, spoken=spoken, sure=dialog)


@dataclass(frozen=True)
class Prefilled:
    """The values that a button fills into the form. The button stores them under short names.

    Attributes:
        flow: A flow's alias or SID.
        kind: `add` or `remove`.
        identities: The people.
        duration: The duration as typed.
        start, until: The start and the end of access.
        reason: The reason.
        more_seconds: The extension of access in seconds, if no form is opened.
        unsure: Lines of the form that may not be identities, as typed.
        ends_at: The current end of access. Not stored in buttons, because it may change.
    """

    flow: Annotated[str, Field(alias="f")] = ""
    kind: Annotated[str, Field(alias="k")] = "add"
    identities: Annotated[tuple[str, ...], Field(alias="i")] = ()
    duration: Annotated[str, Field(alias="d")] = ""
    start: Annotated[datetime | None, Field(alias="s")] = None
    until: Annotated[datetime | None, Field(alias="u")] = None
    reason: Annotated[str, Field(alias="r")] = ""
    more_seconds: Annotated[int, Field(alias="m")] = 0
    unsure: Annotated[tuple[str, ...], Field(exclude=True)] = ()
    ends_at: Annotated[datetime | None, Field(exclude=True)] = None

    def value(self) -> str:
        """Return the values in the button's format."""
        return _PREFILLED.dump_json(self, by_alias=True, exclude_defaults=True).decode()

    @classmethod
    def of(cls, value: str) -> "Prefilled":
        """Return the values from a button; an unreadable button gives an empty form."""
        try:
            return _PREFILLED.validate_json(value)
        except ValidationError:
            return cls()


_PREFILLED = TypeAdapter(Prefilled)
NOTHING = Prefilled()


def extend_buttons(flow: Flow, identities: Sequence[str]) -> list[SlackBlock]:
    """Return `Extend`, `+2 h` and `+1 day`; an empty list if the people don't fit into a button."""
    filled = Prefilled(flow.sid, "add", tuple(identities))
    values = [replace(filled, more_seconds=seconds).value() for seconds in EXTENSIONS.values()]
    if any(len(value) > block_kit.VALUE_CHARACTERS for value in values):
        return []
    more = [
        block_kit.button(label, f"{ids.TESTUSERS_MORE}.{number}", value, spoken=f"Extend {label}")
        for number, (label, value) in enumerate(zip(EXTENSIONS, values, strict=True))
    ]
    form = block_kit.button("Extend", ids.TESTUSERS_EXTEND, filled.value())
    return [form, *more]


def form_button(
    flow: Flow,
    identities: Sequence[str],
    label: str,
    duration_seconds: int | None = None,
    kind: str = "add",
    start: datetime | None = None,
    until: datetime | None = None,
) -> SlackBlock | None:
    """Return the button that opens the form with these people; None if they don't fit."""
    duration = spell_duration(duration_seconds) if duration_seconds else ""
    value = Prefilled(flow.sid, kind, tuple(identities), duration, start, until).value()
    if len(value) > block_kit.VALUE_CHARACTERS:
        return None
    return block_kit.button(label, ids.TESTUSERS_EXTEND, value, spoken=f"{label}: {flow.name}")


def again_button(request: Request) -> SlackBlock | None:
    """Return `Ask again`, which opens the form with the same request; None if that doesn't fit."""
    requested, change = request.requested, request.requested.change
    if requested.undo_of or (change.additions and change.removals):
        return None
    kind = "remove" if change.removals else "add"
    # A duration takes precedence. A fixed end is the same for everybody.
    until = None if requested.duration_seconds else max(requested.ends.values(), default=None)
    return form_button(
        request.flow,
        change.identities,
        "Ask again",
        requested.duration_seconds,
        kind,
        requested.starts_at,
        until,
    )


def change_button(flow: Flow, label: str = "Change…") -> SlackBlock:
    """Return the button that opens the form with the flow filled in."""
    return block_kit.button(label, ids.TESTUSERS_CHANGE_LIST, Prefilled(flow.sid).value())


def person_menu(flow: Flow, identity: str, *, has_end: bool) -> SlackBlock | None:
    """Return a menu with `Extend` and `Remove` for a listed person; a button if they don't fit."""
    person = Prefilled(flow.sid, identities=(identity,))
    more = [
        (label, replace(person, more_seconds=seconds).value())
        for label, seconds in EXTENSIONS.items()
    ]
    options = [
        ("Extend" if has_end else "Set an end date", person.value()),
        *(more if has_end else []),
        ("Remove", replace(person, kind="remove").value()),
    ]
    if any(len(value) > block_kit.OPTION_VALUE_CHARACTERS for _, value in options):
        return form_button(flow, [identity], "Change…")
    return block_kit.overflow(ids.TESTUSERS_PERSON, options)
