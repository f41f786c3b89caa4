"""The life of a request, as a pure state machine, and what a click moves.

    pending ──approve──> applying ──────────────> applied
       │                  │    ^                    ^
       │                  v    │ retry              │ found on the list later
       │                  failed ───────────────────┘
       ├──approve──> scheduled ──start──> applying
       │                  └──cancel──> cancelled
       ├──deny────> denied
       ├──cancel──> cancelled
       └──time────> expired

Each transition is one conditional write from the state it starts in; `decide` says beforehand
whether a click may try it, and why not. With a quorum the last approval moves the request, and the
earlier ones are counted only as long as who gave them may still give them.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum

from bot.dataclass import dataclass


class State(StrEnum):
    """Where a request stands."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    APPLYING = "applying"
    APPLIED = "applied"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.PENDING: frozenset(
        {State.SCHEDULED, State.APPLYING, State.DENIED, State.CANCELLED, State.EXPIRED}
    ),
    State.SCHEDULED: frozenset({State.APPLYING, State.CANCELLED}),
    State.APPLYING: frozenset({State.APPLIED, State.FAILED}),
    # Applied when the list shows that a POST arrived whose outcome was not known.
    State.FAILED: frozenset({State.APPLYING, State.APPLIED}),
    State.APPLIED: frozenset(),
    State.DENIED: frozenset(),
    State.CANCELLED: frozenset(),
    State.EXPIRED: frozenset(),
}


OVER = tuple(state for state, ends in TRANSITIONS.items() if not ends)
"""Where a request stays: nothing is decided on it, or applied, any more."""


class Act(StrEnum):
    """What somebody can do to a request."""

    APPROVE = "approve"
    DENY = "deny"
    CANCEL = "cancel"
    RETRY = "retry"
    UNDO = "undo"


_STARTS_IN: Mapping[Act, frozenset[State]] = {
    Act.APPROVE: frozenset({State.PENDING}),
    Act.DENY: frozenset({State.PENDING}),
    Act.CANCEL: frozenset({State.PENDING, State.SCHEDULED}),
    Act.RETRY: frozenset({State.FAILED}),
}


class Reason(StrEnum):
    """Why a click is followed or not; messages and the audit both speak from it."""

    ALLOWED = "allowed"
    QUORUM_OPEN = "quorum_open"
    WRONG_STATE = "wrong_state"
    TOO_LATE = "too_late"
    NOT_THE_REQUESTER = "not_the_requester"
    APPROVED_BEFORE = "approved_before"
    BEING_UNDONE = "being_undone"


@dataclass(frozen=True, slots=True)
class Facts:
    """What of a stored request matters for a decision. The ids are Slack's.

    `starts_at` is when an approved change is to be applied; None for at once. `is_being_undone` is
    whether somebody has asked to take back what of it has taken effect, or had it taken back.
    """

    state: State
    requester_id: str
    expires_at: datetime
    approver_ids: tuple[str, ...] = ()
    starts_at: datetime | None = None
    is_being_undone: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about a click. `next_state` is None when the state stays as it is.

    `approver_ids` are the approvals that count after it: with `Reason.QUORUM_OPEN` the click is
    one of them and the request goes on waiting.
    """

    reason: Reason
    next_state: State | None = None
    approver_ids: tuple[str, ...] = ()

    @property
    def is_followed(self) -> bool:
        """Whether the click has an effect."""
        return self.reason in (Reason.ALLOWED, Reason.QUORUM_OPEN)


def can_move(start: State, end: State) -> bool:
    """Whether a request may go from one state to the other."""
    return end in TRANSITIONS[start]


def decide(
    act: Act,
    request: Facts,
    actor_id: str,
    *,
    approvals_needed: int,
    entitled_ids: Collection[str],
    at: datetime,
) -> Decision:
    """What a click does at this moment, of somebody who may: `bot.permissions` says who.

    An undo is a request of its own, so `Act.UNDO` is not decided here. `approvals_needed` counts
    distinct people; `entitled_ids` are those of the earlier approvers whose right was just looked
    up and stands.
    """
    if request.state not in _STARTS_IN[act]:
        return Decision(Reason.WRONG_STATE)
    if act is Act.CANCEL and actor_id != request.requester_id:
        return Decision(Reason.NOT_THE_REQUESTER)
    if request.state is State.PENDING and at >= request.expires_at:
        return Decision(Reason.TOO_LATE, State.EXPIRED)
    if act is Act.APPROVE:
        return _count(request, actor_id, approvals_needed, entitled_ids, at)
    if act is Act.RETRY and request.is_being_undone:
        return Decision(Reason.BEING_UNDONE)
    return Decision(Reason.ALLOWED, _NEXT[act])


_NEXT: Mapping[Act, State] = {
    Act.DENY: State.DENIED,
    Act.CANCEL: State.CANCELLED,
    Act.RETRY: State.APPLYING,
}


def _count(
    request: Facts, actor_id: str, needed: int, entitled_ids: Collection[str], at: datetime
) -> Decision:
    standing = tuple(one for one in dict.fromkeys(request.approver_ids) if one in entitled_ids)
    has_approved = actor_id in standing
    counted = standing if has_approved else (*standing, actor_id)
    if len(counted) < needed:
        reason = Reason.APPROVED_BEFORE if has_approved else Reason.QUORUM_OPEN
        return Decision(reason, None, counted)
    # Who has approved before may be enough by now: fewer are needed than when they did.
    is_later = request.starts_at is not None and at < request.starts_at
    return Decision(Reason.ALLOWED, State.SCHEDULED if is_later else State.APPLYING, counted)
