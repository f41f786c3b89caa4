"""The life cycle of a request, as a pure state machine, and the effect of a click.

    pending ──approve──> applying ──────────────> applied
       │                  │    ^                    ^
       │                  v    │ retry              │ found on the list later
       │                  failed ───────────────────┘
       ├──approve──> scheduled ──start──> applying
       │                  ├──deny────> denied
       │                  └──cancel──> cancelled
       ├──deny────> denied
       ├──cancel──> cancelled
       └──time────> expired

A request that has not been applied yet goes back to pending when its effect no longer matches its
card, and expires when the requested access would already have ended.

Each transition is one conditional write from its starting state; `decide` first checks whether a
click is allowed and, if not, why. With a quorum, the last approval moves the request; an earlier
approval counts only while its approver is still allowed to approve.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class State(StrEnum):
    """The state of a request."""

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
    State.SCHEDULED: frozenset(
        {State.APPLYING, State.DENIED, State.CANCELLED, State.PENDING, State.EXPIRED}
    ),
    State.APPLYING: frozenset({State.APPLIED, State.FAILED, State.PENDING, State.EXPIRED}),
    # Applied when the list shows that a POST with an unknown outcome arrived.
    State.FAILED: frozenset({State.APPLYING, State.APPLIED, State.PENDING, State.EXPIRED}),
    State.APPLIED: frozenset(),
    State.DENIED: frozenset(),
    State.CANCELLED: frozenset(),
    State.EXPIRED: frozenset(),
}


OVER = tuple(state for state, ends in TRANSITIONS.items() if not ends)
"""Final states: a request in one of them is no longer decided or applied."""


class Act(StrEnum):
    """An action on a request."""

    APPROVE = "approve"
    DENY = "deny"
    CANCEL = "cancel"
    RETRY = "retry"
    UNDO = "undo"


_STARTS_IN: Mapping[Act, frozenset[State]] = {
    Act.APPROVE: frozenset({State.PENDING}),
    Act.DENY: frozenset({State.PENDING, State.SCHEDULED}),
    Act.CANCEL: frozenset({State.PENDING, State.SCHEDULED}),
    Act.RETRY: frozenset({State.FAILED}),
}


class Reason(StrEnum):
    """The result of a click; messages and the audit log are both derived from it."""

    ALLOWED = "allowed"
    QUORUM_OPEN = "quorum_open"
    WRONG_STATE = "wrong_state"
    TOO_LATE = "too_late"
    NOT_THE_REQUESTER = "not_the_requester"
    APPROVED_BEFORE = "approved_before"
    BEING_UNDONE = "being_undone"


@dataclass(frozen=True, slots=True)
class Facts:
    """The parts of a stored request that matter for a decision. The ids are Slack ids.

    `starts_at` is the time to apply an approved change, None for immediately. `is_being_undone` is
    True once somebody has undone the request or asked to undo it.
    """

    state: State
    requester_id: str
    expires_at: datetime
    approver_ids: tuple[str, ...] = ()
    starts_at: datetime | None = None
    is_being_undone: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The effect of a click. `next_state` is None when the state doesn't change.

    `approver_ids` are the people whose approvals count after the click. With `Reason.QUORUM_OPEN`
    they include the person who clicked, and the request stays pending.
    """

    reason: Reason
    next_state: State | None = None
    approver_ids: tuple[str, ...] = ()

    @property
    def is_followed(self) -> bool:
        """True if the click has an effect."""
        return self.reason in (Reason.ALLOWED, Reason.QUORUM_OPEN)


def can_move(start: State, end: State) -> bool:
    """Return True if a request may move from one state to the other."""
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
    """Return the effect of a click at this time.

    The caller has checked the person's permission with `bot.permissions`. An undo is a separate
    request, so `Act.UNDO` is not decided here. `approvals_needed` counts distinct people;
    `entitled_ids` are the earlier approvers who may still approve.
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
    standing = tuple(
        approver_id
        for approver_id in dict.fromkeys(request.approver_ids)
        if approver_id in entitled_ids
    )
    has_approved = actor_id in standing
    counted = standing if has_approved else (*standing, actor_id)
    if len(counted) < needed:
        reason = Reason.APPROVED_BEFORE if has_approved else Reason.QUORUM_OPEN
        return Decision(reason, None, counted)
    # Earlier approvals may now be enough, if fewer are needed than before.
    is_later = request.starts_at is not None and at < request.starts_at
    return Decision(Reason.ALLOWED, State.SCHEDULED if is_later else State.APPLYING, counted)
