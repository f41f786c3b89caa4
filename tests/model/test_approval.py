"""A request moves only as the state machine says, and only for who may move it."""

from datetime import UTC, datetime, timedelta

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


def test_a_retry_has_no_end() -> None:
    assert decided(Act.RETRY, asked(State.FAILED), ADA, at=LATER).is_followed


def test_what_is_being_undone_is_not_retried() -> None:
    request = asked(State.FAILED, is_being_undone=True)
    assert decided(Act.RETRY, request, ADA) == Decision(Reason.BEING_UNDONE)
    assert decided(Act.APPROVE, asked(is_being_undone=True), ADA).is_followed


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
