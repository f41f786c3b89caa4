"""The buttons of a request: what can be done with it now."""

import json
from collections.abc import Sequence

from bot.dataclass import dataclass
from bot.model.durations import spell_duration
from bot.model.testusers.approval import State
from bot.model.testusers.changes import Flow
from bot.model.testusers.requests import Request
from bot.ui import block_kit, ids
from bot.ui.message import SlackBlock


def request_buttons(request: Request) -> list[SlackBlock]:
    """A row with all that the card offers now; empty when that is nothing."""
    undo = undo_button(request)
    buttons = {
        State.PENDING: decision_buttons(request),
        State.SCHEDULED: decision_buttons(request, decides=False),
        State.FAILED: [_retry_button(request)],
    }.get(request.state, [])
    if request.progress.undone_by:
        return []
    shown = [*buttons, *([undo] if undo else [])]
    return [block_kit.actions(*shown)] if shown else []


def undo_button(request: Request) -> SlackBlock | None:
    """`Undo`; None where nothing took effect, or the inverse would change nothing any more."""
    if not _can_be_undone(request):
        return None
    sure = block_kit.confirm(
        "Undo this change?", "The approvers are asked to take it back.", "Undo"
    )
    return _button(request, "Undo", ids.TESTUSERS_UNDO, sure=sure)


def _can_be_undone(request: Request) -> bool:
    """Whether the inverse would change anything, as far as the request knows."""
    part = request.progress.part
    took_effect = request.state is State.APPLIED or request.has_failed_in_part
    if request.progress.undone_by or not took_effect:
        return False
    change = request.requested.change if part is None else part.change
    return bool(change.removals) or not request.is_over


def decision_buttons(
    request: Request, *, decides: bool = True, cancels: bool = True
) -> list[SlackBlock]:
    """`Approve` and `Deny` for approvers, `Cancel` for the requester."""
    deciding = [
        _button(request, "Approve", ids.TESTUSERS_APPROVE, "primary"),
        _button(request, "Deny", ids.TESTUSERS_DENY, "danger"),
    ]
    return [*(deciding if decides else []), *([_cancel_button(request)] if cancels else [])]


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
    """What a button fills into the form: a flow's SID, whether to add or remove, who, how long."""

    flow: str = ""
    kind: str = "add"
    identities: tuple[str, ...] = ()
    duration: str = ""

    def value(self) -> str:
        """Return it as a button's value."""
        fields = {"f": self.flow, "k": self.kind, "i": self.identities, "d": self.duration}
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def of(cls, value: str) -> "Prefilled":
        """Read a button's value; anything unreadable is an empty form."""
        try:
            data = json.loads(value)
            identities = tuple(str(one) for one in data["i"])
            return cls(str(data["f"]), str(data["k"]), identities, str(data["d"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return cls()


def extend_button(
    flow: Flow,
    identities: Sequence[str],
    duration_seconds: int | None = None,
    label: str = "Extend",
    kind: str = "add",
) -> SlackBlock | None:
    """Opens the form with the flow and the people filled in; None where it cannot."""
    duration = spell_duration(duration_seconds) if duration_seconds else ""
    value = Prefilled(flow.sid, kind, tuple(identities), duration).value()
    if len(value) > block_kit.VALUE_CHARACTERS:
        return None
    spoken = f"{label}: {flow.name}"
    return block_kit.button(label, ids.TESTUSERS_EXTEND, value, spoken=spoken)


def again_button(request: Request) -> SlackBlock | None:
    """`Ask again`: opens the form with what was asked for; None where it cannot say the same."""
    change, label = request.requested.change, "Ask again"
    if request.requested.undo_of or (change.additions and change.removals):
        return None
    if change.removals:
        return extend_button(request.flow, change.removals, label=label, kind="remove")
    seconds = request.requested.duration_seconds
    return extend_button(request.flow, change.additions, seconds, label)


def change_button(flow: Flow, label: str = "Change…") -> SlackBlock:
    """Opens the form with the flow filled in."""
    return block_kit.button(label, ids.TESTUSERS_CHANGE_LIST, Prefilled(flow.sid).value())


def person_menu(flow: Flow, identity: str, *, has_end: bool) -> SlackBlock | None:
    """`Extend` and `Remove` for one person of a list; None where they are too long for a menu."""
    options = [
        (
            "Extend" if has_end else "Set an end date",
            Prefilled(flow.sid, "add", (identity,)).value(),
        ),
        ("Remove", Prefilled(flow.sid, "remove", (identity,)).value()),
    ]
    if any(len(value) > block_kit.OPTION_VALUE_CHARACTERS for _, value in options):
        return None
    return block_kit.overflow(ids.TESTUSERS_PERSON, options)
