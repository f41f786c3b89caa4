"""The life of a request, as a pure state machine, and who may move it.

    pending ──approve──> applying ──> applied
       │                  │    ^
       │                  v    │ retry
       │                  failed
       ├──deny────> denied
       ├──cancel──> cancelled
       └──time────> expired

Each transition is one conditional write from the state it starts in; `decide` says beforehand
whether a click may try it, and why not. With a quorum the last approval moves the request, and the
earlier ones are counted only as long as who gave them may still give them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class State(StrEnum):
    """Where a request stands."""

    PENDING = "pending"
    APPLYING = "applying"
    APPLIED = "applied"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.PENDING: frozenset({State.APPLYING, State.DENIED, State.CANCELLED, State.EXPIRED}),
    State.APPLYING: frozenset({State.APPLIED, State.FAILED}),
    State.FAILED: frozenset({State.APPLYING}),
    State.APPLIED: frozenset(),
    State.DENIED: frozenset(),
    State.CANCELLED: frozenset(),
    State.EXPIRED: frozenset(),
}


class Act(StrEnum):
    """What somebody can do to a request."""

    APPROVE = "approve"
    DENY = "deny"
    CANCEL = "cancel"
    RETRY = "retry"
    UNDO = "undo"


_STARTS_IN: Mapping[Act, State] = {
    Act.APPROVE: State.PENDING,
    Act.DENY: State.PENDING,
    Act.CANCEL: State.PENDING,
    Act.RETRY: State.FAILED,
    Act.UNDO: State.APPLIED,
}


class Reason(StrEnum):
    """Why a click is followed or not; messages and the audit both speak from it."""

    ALLOWED = "allowed"
    QUORUM_OPEN = "quorum_open"
    WRONG_STATE = "wrong_state"
    TOO_LATE = "too_late"
    OWN_REQUEST = "own_request"
    NOT_THE_REQUESTER = "not_the_requester"
    NOT_AN_APPROVER = "not_an_approver"
    NOT_ALLOWED_TO_ASK = "not_allowed_to_ask"
    APPROVED_BEFORE = "approved_before"
    UNDONE_BEFORE = "undone_before"


@dataclass(frozen=True, slots=True)
class Facts:
    """What of a stored request matters for a decision. The ids are Slack's."""

    state: State
    requester_id: str
    expires_at: datetime
    approver_ids: tuple[str, ...] = ()
    is_undone: bool = False


@dataclass(frozen=True, slots=True)
class Actor:
    """Who clicks, and what they may do to this flow's requests at this moment."""

    slack_user_id: str
    may_ask: bool
    may_approve: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """How many distinct people have to approve, and whether one may be the requester."""

    approvals_needed: int = 1
    self_approval: bool = False


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
    actor: Actor,
    rules: Rules,
    *,
    entitled_ids: Collection[str],
    at: datetime,
) -> Decision:
    """What a click does at this moment.

    `entitled_ids` are those of the earlier approvers whose right was just looked up and stands.
    """
    if request.state is not _STARTS_IN[act]:
        return Decision(Reason.WRONG_STATE)
    if refusal := _refusal(act, request, actor, rules):
        return Decision(refusal)
    if act in (Act.APPROVE, Act.DENY, Act.CANCEL) and at >= request.expires_at:
        return Decision(Reason.TOO_LATE, State.EXPIRED)
    if act is Act.APPROVE:
        return _count(request, actor, rules, entitled_ids)
    return Decision(Reason.ALLOWED, _NEXT.get(act))


_NEXT: Mapping[Act, State] = {
    Act.DENY: State.DENIED,
    Act.CANCEL: State.CANCELLED,
    Act.RETRY: State.APPLYING,
}


def _refusal(act: Act, request: Facts, actor: Actor, rules: Rules) -> Reason | None:
    """The right is asked first, so that nobody learns more than they may."""
    is_requester = actor.slack_user_id == request.requester_id
    if act in (Act.APPROVE, Act.DENY, Act.RETRY) and not actor.may_approve:
        return Reason.NOT_AN_APPROVER
    if act is Act.APPROVE and is_requester and not rules.self_approval:
        return Reason.OWN_REQUEST
    if act is Act.CANCEL and not is_requester:
        return Reason.NOT_THE_REQUESTER
    if act in (Act.CANCEL, Act.UNDO) and not actor.may_ask:
        return Reason.NOT_ALLOWED_TO_ASK
    if act is Act.UNDO and request.is_undone:
        return Reason.UNDONE_BEFORE
    return None


def _count(request: Facts, actor: Actor, rules: Rules, entitled_ids: Collection[str]) -> Decision:
    standing = tuple(one for one in dict.fromkeys(request.approver_ids) if one in entitled_ids)
    if actor.slack_user_id in standing:
        return Decision(Reason.APPROVED_BEFORE, None, standing)
    counted = (*standing, actor.slack_user_id)
    if len(counted) < rules.approvals_needed:
        return Decision(Reason.QUORUM_OPEN, None, counted)
    return Decision(Reason.ALLOWED, State.APPLYING, counted)
