"""A request moves only as the state machine says, and only for who may move it."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bot.approvals.rules import OVER, Act, Decision, Facts, Reason, State, can_move, decide

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
OTTO, ADA, ABEL, VERA = "OTTO", "ADA", "ABEL", "VERA"
CLICKS = [act for act in Act if act is not Act.UNDO]


def asked(state: State = State.PENDING, **other: object) -> Facts:
    return Facts(**{"state": state, "requester_id": "OTTO", "expires_at": LATER, **other})


def decided(
    act: Act, request: Facts, actor: str, needed: int = 1, *, at: datetime = NOW
) -> Decision:
    entitled = frozenset({"ADA", "ABEL"})
    return decide(act, request, actor, approvals_needed=needed, entitled_ids=entitled, at=at)


@pytest.mark.parametrize(
    ("act", "state", "actor", "reason", "next_state"),
    [
        (Act.APPROVE, State.PENDING, ADA, Reason.ALLOWED, State.APPLYING),
        (Act.APPROVE, State.APPLYING, ADA, Reason.WRONG_STATE, None),
        (Act.APPROVE, State.FAILED, ADA, Reason.WRONG_STATE, None),
        (Act.DENY, State.PENDING, ADA, Reason.ALLOWED, State.DENIED),
        (Act.DENY, State.DENIED, ADA, Reason.WRONG_STATE, None),
        (Act.CANCEL, State.PENDING, OTTO, Reason.ALLOWED, State.CANCELLED),
        (Act.CANCEL, State.PENDING, ADA, Reason.NOT_THE_REQUESTER, None),
        (Act.RETRY, State.FAILED, ADA, Reason.ALLOWED, State.APPLYING),
        (Act.RETRY, State.APPLIED, ADA, Reason.WRONG_STATE, None),
    ],
)
def test_what_a_click_does_in_which_state(
    act: Act, state: State, actor: str, reason: Reason, next_state: State | None
) -> None:
    decision = decided(act, asked(state), actor)
    assert (decision.reason, decision.next_state) == (reason, next_state)


@pytest.mark.parametrize(
    ("act", "actor"), [(Act.APPROVE, ADA), (Act.DENY, ADA), (Act.CANCEL, OTTO)]
)
def test_at_its_end_a_pending_request_expires(act: Act, actor: str) -> None:
    assert decided(act, asked(), actor, at=LATER) == Decision(Reason.TOO_LATE, State.EXPIRED)


def test_a_retry_has_no_end() -> None:
    assert decided(Act.RETRY, asked(State.FAILED), ADA, at=LATER).is_followed


def test_what_is_being_undone_is_not_retried() -> None:
    request = asked(State.FAILED, is_being_undone=True)
    assert decided(Act.RETRY, request, ADA) == Decision(Reason.BEING_UNDONE)
    assert decided(Act.APPROVE, asked(is_being_undone=True), ADA).is_followed


def test_a_quorum_counts_distinct_people() -> None:
    first = decided(Act.APPROVE, asked(), ADA, 2)
    assert (first.reason, first.next_state) == (Reason.QUORUM_OPEN, None)
    again = decided(Act.APPROVE, asked(approver_ids=("ADA",)), ADA, 2)
    assert again.reason is Reason.APPROVED_BEFORE
    assert not again.is_followed
    second = decided(Act.APPROVE, asked(approver_ids=("ADA",)), ABEL, 2)
    assert second == Decision(Reason.ALLOWED, State.APPLYING, ("ADA", "ABEL"))


def test_earlier_approval_is_enough_once_fewer_are_needed() -> None:
    request = asked(approver_ids=("ADA",))
    allowed = Decision(Reason.ALLOWED, State.APPLYING, ("ADA",))
    assert decided(Act.APPROVE, request, ADA, 1) == allowed
    before = Decision(Reason.APPROVED_BEFORE, None, ("ADA",))
    assert decided(Act.APPROVE, request, ADA, 2) == before


@pytest.mark.parametrize("approver_ids", [(), ("ADA",)])
def test_approval_waits_for_the_start(approver_ids: tuple[str, ...]) -> None:
    request = asked(approver_ids=approver_ids, starts_at=NOW)
    before = decided(Act.APPROVE, request, ADA, at=NOW - timedelta(seconds=1))
    assert (before.reason, before.next_state) == (Reason.ALLOWED, State.SCHEDULED)
    assert decided(Act.APPROVE, request, ADA, at=NOW).next_state is State.APPLYING


def test_an_approval_whose_right_was_lost_in_between_does_not_count() -> None:
    request, entitled = asked(approver_ids=("ADA",)), frozenset({"ABEL"})
    decision = decide(Act.APPROVE, request, ABEL, approvals_needed=2, entitled_ids=entitled, at=NOW)
    assert decision == Decision(Reason.QUORUM_OPEN, None, ("ABEL",))


@given(st.sampled_from(CLICKS), st.sampled_from(State), st.sampled_from([OTTO, ADA, ABEL, VERA]))
def test_no_decision_leaves_the_state_machine(act: Act, state: State, actor: str) -> None:
    decision = decided(act, asked(state), actor)
    assert decision.next_state is None or can_move(state, decision.next_state)


def test_what_is_over_stays_over() -> None:
    assert set(OVER) == {State.APPLIED, State.DENIED, State.CANCELLED, State.EXPIRED}
    assert not any(can_move(state, other) for state in OVER for other in State)


class Quorum(RuleBasedStateMachine):
    """Clicks and lost rights in any order, against a naive count."""

    people = ("ADA", "ABEL", "AMY", "OTTO")

    @initialize(needed=st.integers(1, 3))
    def begin(self, needed: int) -> None:
        self.needed = needed
        self.request = asked()
        self.entitled = set(self.people)
        self.clicked: set[str] = set()

    @rule(who=st.sampled_from(people))
    def lose_the_right(self, who: str) -> None:
        self.entitled.discard(who)

    @rule(who=st.sampled_from(people))
    def approve(self, who: str) -> None:
        if who not in self.entitled:
            return
        decision = decide(
            Act.APPROVE,
            self.request,
            who,
            approvals_needed=self.needed,
            entitled_ids=frozenset(self.entitled),
            at=NOW,
        )
        if not decision.is_followed:
            return
        self.clicked.add(who)
        state = decision.next_state or self.request.state
        self.request = asked(state, approver_ids=decision.approver_ids)
        if state is State.APPLYING:
            counted = self.clicked & self.entitled
            assert len(counted) >= self.needed

    @invariant()
    def only_enough_people_move_it(self) -> None:
        if hasattr(self, "request") and self.request.state is State.PENDING:
            assert len(self.request.approver_ids) < self.needed


TestQuorum = Quorum.TestCase
TestQuorum.settings = settings(max_examples=40, deadline=None)
