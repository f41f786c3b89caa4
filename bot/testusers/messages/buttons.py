"""The buttons of a request in its current state."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bot.approvals.rules.approval import State
from bot.approvals.rules.durations import spell_duration
from bot.slack.messages import block_kit, ids
from bot.slack.messages.message import SlackBlock
from bot.testusers.rules.changes import Flow
from bot.testusers.rules.requests import Request

EXTENSIONS = {"+2 h": 2 * 3600, "+1 day": 24 * 3600}


def request_buttons(request: Request) -> list[SlackBlock]:
    """Return the row of buttons on the card, or nothing if there are none."""
    undo = undo_button(request)
    buttons = {
        State.PENDING: decision_buttons(request),
        State.SCHEDULED: [deny_button(request), *decision_buttons(request, decides=False)],
        State.FAILED: [_retry_button(request)],
    }.get(request.state, [])
    if request.progress.undone_by:
        return []
    shown = [*buttons, *([undo] if undo else [])]
    return [block_kit.actions(*shown)] if shown else []


def undo_button(request: Request) -> SlackBlock | None:
    """Return `Undo`; None if nothing took effect, or the undo would change nothing."""
    if not _can_be_undone(request):
        return None
    sure = block_kit.confirm(
        "Undo this change?", "The approvers are asked to take it back.", "Undo"
    )
    return _button(request, "Undo", ids.TESTUSERS_UNDO, sure=sure)


def _can_be_undone(request: Request) -> bool:
    """Return True if the stored request suggests that its undo would change something."""
    part = request.progress.part
    took_effect = request.state is State.APPLIED or request.has_failed_in_part
    if request.progress.undone_by or not took_effect:
        return False
    change = request.requested.change if part is None else part.change
    return bool(change.removals) or not request.is_over


def decision_buttons(
    request: Request, *, decides: bool = True, cancels: bool = True
) -> list[SlackBlock]:
    """Return `Approve` and `Deny` for approvers, `Cancel` for the requester."""
    approve = _button(request, "Approve", ids.TESTUSERS_APPROVE, "primary")
    deciding = [approve, deny_button(request)] if decides else []
    return [*deciding, *([_cancel_button(request)] if cancels else [])]


def deny_button(request: Request) -> SlackBlock:
    """Return `Deny`, which asks for a reason."""
    return _button(request, "Deny", ids.TESTUSERS_DENY, "danger")


def _cancel_button(request: Request) -> SlackBlock:
    sure = block_kit.confirm("Cancel this request?", "Nobody can approve it then.", "Cancel it")
    return _button(request, "Cancel", ids.TESTUSERS_CANCEL, sure=sure)


def _retry_button(request: Request) -> SlackBlock:
    sure = block_kit.confirm("Try again?", "The approved change is sent once more.", "Retry")
    return _button(request, "Retry", ids.TESTUSERS_RETRY, sure=sure)


def _button(
    request: Request,
    label: str,
    action_id: str,
    style: str | None = None,
    sure: SlackBlock | None = None,
) -> SlackBlock:
    spoken = f"{label} the request of {request.requester.name} on {request.flow.name}"
    return block_kit.button(label, action_id, request.id, style=style, spoken=spoken, sure=sure)


@dataclass(frozen=True)
class Prefilled:
    """The values that a button fills into the form.

    Attributes:
        flow: A flow's alias or SID.
        kind: `add` or `remove`.
        identities: The people.
        duration: The duration, as it is typed.
        start, until: The start and the end of access.
        reason: The reason.
        more_seconds: The extension of access, without the form.
        unsure: Lines that may not be identities, which the form asks about.
        ends_at: The current end of access. Not stored in buttons, because it may change.
    """

    flow: str = ""
    kind: str = "add"
    identities: tuple[str, ...] = ()
    duration: str = ""
    start: datetime | None = None
    until: datetime | None = None
    reason: str = ""
    more_seconds: int = 0
    unsure: tuple[str, ...] = ()
    ends_at: datetime | None = None

    def value(self) -> str:
        """Return the values as a button holds them."""
        fields = {
            "f": self.flow,
            "k": self.kind if self.kind != "add" else "",
            "i": self.identities,
            "d": self.duration,
            "s": self.start and int(self.start.timestamp()),
            "u": self.until and int(self.until.timestamp()),
            "r": self.reason,
            "m": self.more_seconds,
        }
        known = {name: value for name, value in fields.items() if value}
        # Twenty rows of a list with four of these each have to fit into a message.
        return json.dumps(known, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def of(cls, value: str) -> "Prefilled":
        """Return the values in a button; an unreadable button is an empty form."""
        try:
            data = json.loads(value)
            return cls(
                str(data.get("f", "")),
                str(data.get("k", "add")),
                tuple(str(identity) for identity in data.get("i", ())),
                str(data.get("d", "")),
                _moment(data.get("s")),
                _moment(data.get("u")),
                str(data.get("r", "")),
                int(data.get("m", 0)),
            )
        except (ValueError, AttributeError, TypeError, RecursionError, OverflowError, OSError):
            return cls()


NOTHING = Prefilled()


def _moment(seconds: object) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int) else None


def extend_buttons(flow: Flow, identities: Sequence[str]) -> list[SlackBlock]:
    """Return `Extend`, `+2 h` and `+1 day`; nothing if the people don't fit into a button."""
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
) -> SlackBlock | None:
    """Return the button that opens the form with these people; None if they don't fit."""
    duration = spell_duration(duration_seconds) if duration_seconds else ""
    value = Prefilled(flow.sid, kind, tuple(identities), duration).value()
    if len(value) > block_kit.VALUE_CHARACTERS:
        return None
    return block_kit.button(label, ids.TESTUSERS_EXTEND, value, spoken=f"{label}: {flow.name}")


def again_button(request: Request) -> SlackBlock | None:
    """Return `Ask again`, which opens the form with the same request; None if it doesn't fit."""
    change, label = request.requested.change, "Ask again"
    if request.requested.undo_of or (change.additions and change.removals):
        return None
    if change.removals:
        return form_button(request.flow, change.removals, label, kind="remove")
    seconds = request.requested.duration_seconds
    return form_button(request.flow, change.additions, label, seconds)


def change_button(flow: Flow, label: str = "Change…") -> SlackBlock:
    """Return the button that opens the form with the flow filled in."""
    return block_kit.button(label, ids.TESTUSERS_CHANGE_LIST, Prefilled(flow.sid).value())


def person_menu(flow: Flow, identity: str, *, has_end: bool) -> SlackBlock | None:
    """Return `Extend` and `Remove` for one person of a list; None if they don't fit into a menu."""
    person = Prefilled(flow.sid, "add", (identity,))
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
        return None
    return block_kit.overflow(ids.TESTUSERS_PERSON, options)
