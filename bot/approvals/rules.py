"""The life cycle of a request as a pure state machine, and the rules for decisions.

    pending ──approve──> applying ──────────────> applied
       │                  │    ^                    ^
       │                  v    │ retry              │ found on the list later
       │                  failed ───────────────────┘
       ├──deny────> denied
       ├──cancel──> cancelled
       └──time────> expired

A request that hasn't been applied yet goes back to pending if its effect no longer matches its
card. The request expires if the end of the requested access has passed.

`decide` checks whether a click is allowed and gives the reason if it isn't. A transition is stored
only if the request is still in the starting state. If several approvals are needed, only the last
one changes the state. An approval counts only while the person who gave it can still approve.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from bot.approvals.times import parse_duration, spell_duration
from bot.ids import ChannelId, NamedIds
from bot.spelling import one_line


class State(StrEnum):
    """The state of a request, as stored and as shown in the audit log."""

    PENDING = "pending"
    APPLYING = "applying"
    APPLIED = "applied"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


# The states that a request can move to from each state.
TRANSITIONS: Mapping[State, Collection[State]] = {
    State.PENDING: (State.APPLYING, State.DENIED, State.CANCELLED, State.EXPIRED),
    State.APPLYING: (State.APPLIED, State.FAILED, State.PENDING, State.EXPIRED),
    # A failed request becomes applied if the list later shows that its POST arrived.
    State.FAILED: (State.APPLYING, State.APPLIED, State.PENDING, State.CANCELLED, State.EXPIRED),
}


OVER = tuple(state for state in State if state not in TRANSITIONS)
"""The final states, from which a request can't move."""


class Act(StrEnum):
    """An action that a person can take on a request."""

    APPROVE = "approve"
    DENY = "deny"
    CANCEL = "cancel"
    RETRY = "retry"
    UNDO = "undo"


# The state that a request must be in for an action, and the state that it moves to.
MOVES: Mapping[Act, tuple[State, State]] = {
    Act.APPROVE: (State.PENDING, State.APPLYING),
    Act.DENY: (State.PENDING, State.DENIED),
    Act.CANCEL: (State.PENDING, State.CANCELLED),
    Act.RETRY: (State.FAILED, State.APPLYING),
}


class Reason(StrEnum):
    """The reason that a click was or wasn't carried out, for messages and the audit log."""

    ALLOWED = "allowed"
    QUORUM_OPEN = "quorum_open"
    WRONG_STATE = "wrong_state"
    TOO_LATE = "too_late"
    NOT_THE_REQUESTER = "not_the_requester"
    APPROVED_BEFORE = "approved_before"
    BEING_UNDONE = "being_undone"
    OUTDATED = "outdated"
    IN_DOUBT = "in_doubt"
    NEWS = "news"
    MAY_NOT_ASK = "may_not_ask"


@dataclass(frozen=True)
class Facts:
    """The parts of a request that matter for a decision. People are identified by Slack user ID.

    `is_being_undone` is True once somebody has undone the request or asked to undo it.
    """

    state: State
    requester_id: str
    expires_at: datetime
    approver_ids: tuple[str, ...] = ()
    is_being_undone: bool = False


@dataclass(frozen=True)
class Decision:
    """The effect of a click. `next_state` is None if the state doesn't change.

    `approver_ids` contains the people whose approvals count after the click. If `reason` is
    `Reason.QUORUM_OPEN`, the click counts as an approval, but more approvals are needed.
    """

    reason: Reason
    next_state: State | None = None
    approver_ids: tuple[str, ...] = ()

    @property
    def is_followed(self) -> bool:
        """True if the click was allowed."""
        return self.reason in (Reason.ALLOWED, Reason.QUORUM_OPEN)


def can_move(start: State, end: State) -> bool:
    """Return True if a request can move from `start` to `end`."""
    return end in TRANSITIONS.get(start, ())


def decide(
    act: Act,
    request: Facts,
    actor_id: str,
    *,
    approvals_needed: int,
    entitled_ids: Collection[str],
    at: datetime,
) -> Decision:
    """Return the effect of a click by the person `actor_id` at the time `at`.

    The caller must have checked the person's permission with `bot.permissions`. `Act.UNDO` isn't
    decided here, because an undo is a separate request. `approvals_needed` is the required number
    of different approvers. `entitled_ids` are the earlier approvers who can still approve.
    """
    start, end = MOVES[act]
    if request.state is not start:
        return Decision(Reason.WRONG_STATE)
    if act is Act.CANCEL and actor_id != request.requester_id:
        return Decision(Reason.NOT_THE_REQUESTER)
    if start is State.PENDING and at >= request.expires_at:
        return Decision(Reason.TOO_LATE)
    if act is Act.RETRY and request.is_being_undone:
        return Decision(Reason.BEING_UNDONE)
    counted: tuple[str, ...] = ()
    if act is Act.APPROVE:
        standing = [who for who in request.approver_ids if who in entitled_ids]
        counted = tuple(dict.fromkeys([*standing, actor_id]))
        # If fewer approvals are needed than before, the earlier approvals may now be enough.
        if len(counted) < approvals_needed:
            reason = Reason.APPROVED_BEFORE if actor_id in standing else Reason.QUORUM_OPEN
            return Decision(reason, None, counted)
    return Decision(Reason.ALLOWED, end, counted)


EVERY_FLOW = "*"
OF_THIS_FLOW, OF_EVERY_FLOW = "FLOW_POLICIES (this flow)", "FLOW_POLICIES (every flow)"


def _seconds(value: object) -> int:
    seconds = parse_duration(value) if isinstance(value, str) else None
    if seconds is None:
        raise ValueError('must be a duration such as "2h" or "7d"')
    return seconds


Duration = Annotated[int, BeforeValidator(_seconds)]
# pydantic would otherwise take `true` for 1.
Number = Annotated[int, Field(strict=True)]
Sentence = Annotated[str, Field(max_length=150), AfterValidator(one_line), Field(min_length=1)]


@dataclass(frozen=True)
class AutomaticRule:
    """A rule that approves some people's requests automatically, within limits.

    It's the key `auto` of a policy in the settings.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    requesters: Annotated[NamedIds, Field(alias="from")]
    longest_seconds: Annotated[Duration, Field(alias="longest")]
    a_day: Annotated[Number, Field(ge=1, le=1000)]


@dataclass(frozen=True)
class FlowPolicy:
    """The rules that one entry of `FLOW_POLICIES` sets for a flow's requests.

    People are listed by user or group ID. Rules that aren't set are None (`approvals_needed` is 0).
    If `approvers` is None, roles decide who can approve. Only `requesters` can ask for changes, if
    set. Cards are posted in `channel`, or else in the approvals channel.

    If `reason` is set, requests need a reason. `warning` is for those who ask and those who decide.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    approvers: NamedIds | None = None
    approvals_needed: Annotated[Number, Field(ge=1, le=20)] = 0
    notify: NamedIds | None = None
    longest_seconds: Annotated[Duration | None, Field(alias="longest")] = None
    escalate_after_seconds: Annotated[Duration | None, Field(alias="escalate_after")] = None
    escalate_to: NamedIds | None = None
    auto: AutomaticRule | None = None
    auto_remove: bool | None = None
    requesters: NamedIds | None = None
    channel: ChannelId | None = None
    reason: Literal["required"] | None = None
    warning: Sentence | None = None

    @property
    def automatic(self) -> tuple[str, ...] | None:
        """The people and groups whose requests can be approved automatically."""
        return self.auto.requesters if self.auto else None

    @property
    def named(self) -> Iterator[str]:
        """All people and groups that the policy lists."""
        lists = (self.approvers, self.notify, self.escalate_to, self.requesters, self.automatic)
        return chain.from_iterable(filter(None, lists))


@dataclass(frozen=True)
class FlowRules(FlowPolicy):
    """The rules in force for a flow. `sources` maps each rule to the setting that it's from."""

    sources: dict[str, str] = field(default_factory=dict)

    def under(self, policy: FlowPolicy, source: str) -> "FlowRules":
        """Return these rules, except those that the policy sets."""
        own = dict[str, Any]()
        for rule in fields(FlowPolicy):
            value = getattr(policy, rule.name)
            if value != rule.default:
                own[rule.name] = value
        return replace(self, **own, sources=self.sources | dict.fromkeys(own, source))


def duration_problem(policy: FlowPolicy, duration_seconds: float | None) -> str | None:
    """Return a sentence that explains why the duration isn't allowed, or None if it's allowed.

    `duration_seconds` is None for access without an end date.
    """
    most = policy.longest_seconds
    if most is None or (duration_seconds is not None and duration_seconds <= most):
        return None
    longest = spell_duration(most)
    return f"Access to this flow can last at most {longest}. Add an end, e.g. “for {longest}”."


# The prefix of a rule's ID, which is stored in place of an approver's Slack user ID.
RULE_ID = "rule:"
RULE_NAME = "an automatic rule"


@dataclass(frozen=True)
class ApprovedByRule:
    """The rule that approved a request, and how much of its daily limit has been used.

    `source` is the setting that contains the rule. `used` includes this request.
    """

    source: str
    longest_seconds: int
    used: int
    a_day: int


def is_automatic(
    policy: FlowPolicy,
    used: int,
    requester_ids: Collection[str],
    lasts_seconds: Sequence[float | None],
    *,
    takes_away: bool,
) -> bool:
    """Return True if the policy's rule approves a request.

    `used` is how many of the person's requests the rule has approved today. `requester_ids` are the
    person's user ID and group IDs. `lasts_seconds` contains each addition's duration, or None if
    its access doesn't end. `takes_away` is True if somebody is removed or loses access sooner.
    """
    rule = policy.auto
    if rule is None or used >= rule.a_day or set(rule.requesters).isdisjoint(requester_ids):
        return False
    if takes_away and not policy.auto_remove:
        return False
    longest = min(rule.longest_seconds, policy.longest_seconds or rule.longest_seconds)
    return all(seconds is not None and seconds <= longest for seconds in lasts_seconds)


def rule_id(policy: FlowRules, flow_key: str) -> str:
    """Return the ID that is used to count approvals by a flow's automatic rule."""
    is_of_every_flow = policy.sources.get("auto") == OF_EVERY_FLOW
    return f"{RULE_ID}{EVERY_FLOW if is_of_every_flow else flow_key}"
