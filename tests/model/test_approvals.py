"""A request's state changes only in ways that the state machine, the policy and the rule allow."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bot.approvals.rules import (
    OVER,
    Act,
    AutomaticRule,
    Decision,
    Facts,
    FlowPolicy,
    Reason,
    State,
    can_move,
    decide,
    duration_problem,
    is_automatic,
    rule_id,
)
from bot.permissions import (
    Policy,
    Role,
)

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


def test_a_request_that_is_being_undone_is_not_retried() -> None:
    request = asked(State.FAILED, is_being_undone=True)
    assert decided(Act.RETRY, request, ADA) == Decision(Reason.BEING_UNDONE)
    assert decided(Act.APPROVE, asked(is_being_undone=True), ADA).is_followed


@given(st.sampled_from(CLICKS), st.sampled_from(State), st.sampled_from([OTTO, ADA, ABEL, VERA]))
def test_no_decision_leaves_the_state_machine(act: Act, state: State, actor: str) -> None:
    decision = decided(act, asked(state), actor)
    assert decision.next_state is None or can_move(state, decision.next_state)


def test_a_closed_request_stays_closed() -> None:
    assert set(OVER) == {State.APPLIED, State.DENIED, State.CANCELLED, State.EXPIRED}
    assert not any(can_move(state, other) for state in OVER for other in State)


class Quorum(RuleBasedStateMachine):
    """After approvals and permission changes in any order, the number of approvals is right."""

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


FLOW = "FW" + "AB" * 16
FULL = FlowPolicy(
    ("U0A",),
    3,
    ("S0X",),
    3600,
    60,
    ("U0B",),
    AutomaticRule(("U0A",), 60, 1),
    True,
    ("U0A",),
    "C0A",
    "required",
    "For you.",
)
KEYS = FlowPolicy.__dataclass_fields__.keys() - {"sources"}


@pytest.mark.parametrize("name", sorted(KEYS))
def test_each_key_holds_alone_and_its_absence_leaves_the_next_layer(name) -> None:
    own = FlowPolicy(**{name: getattr(FULL, name)})
    everywhere = FlowPolicy(
        ("U0C",),
        2,
        ("U0C",),
        7200,
        120,
        ("U0C",),
        AutomaticRule(("U0C",), 60, 2),
        False,
        ("U0C",),
        "C0C",
        "required",
        "For everyone.",
    )
    with_own, without, general = (
        Policy(flow_policies=policies).of_flow(FLOW)
        for policies in ({FLOW: own, "*": everywhere}, {"*": everywhere}, {})
    )
    assert getattr(with_own, name) == getattr(FULL, name)
    assert getattr(without, name) == getattr(everywhere, name)
    assert with_own.sources[name] == "FLOW_POLICIES (this flow)"
    assert without.sources[name] == "FLOW_POLICIES (every flow)"
    others = KEYS - {name}
    assert all(getattr(with_own, other) == getattr(everywhere, other) for other in others)
    assert general.approvers is None
    assert (general.approvals_needed, general.longest_seconds) == (1, None)
    assert general.sources == {"approvals_needed": "APPROVALS_NEEDED"}


@pytest.mark.parametrize(
    ("longest", "seconds", "problem"),
    [
        (None, None, None),
        (None, 10**9, None),
        (3600, 3600, None),
        (3600, 3601, "at most 1h"),
        (3600, None, "Add an end"),
    ],
)
def test_access_lasts_no_longer_than_the_policy_allows(longest, seconds, problem) -> None:
    found = duration_problem(FlowPolicy(longest_seconds=longest), seconds)
    assert found is None if problem is None else problem in found


ROLES = {Role.APPROVER: ("U0A", "S0X"), Role.ADMIN: ("U0B",)}


@pytest.mark.parametrize(
    ("policy", "mentioned"),
    [
        (Policy(ROLES), ("U0A", "S0X")),
        (Policy({Role.ADMIN: ("U0B",)}), ("U0B",)),
        (Policy(ROLES, flow_policies={FLOW: FlowPolicy(("U0C",))}), ("U0C",)),
        (Policy(ROLES, flow_policies={"*": FlowPolicy(notify=("S0Y",))}), ("S0Y",)),
        (Policy(ROLES, flow_policies={FLOW: FlowPolicy(approvers=("U0C",))}), ("U0C",)),
    ],
)
def test_a_card_mentions_who_can_approve_and_leaves_admins_in_peace(policy, mentioned) -> None:
    assert policy.mentioned(FLOW) == mentioned


IDS = ("U1", "U2", "S1", "S2")
TIMES = (60, 3600, 7200, 86_400)


def policy(chance: random.Random) -> FlowPolicy:
    rule = AutomaticRule(
        tuple(chance.sample(IDS, chance.randint(1, 3))), chance.choice(TIMES), chance.randint(1, 3)
    )
    return FlowPolicy(
        auto=chance.choice((rule, rule, None)),
        auto_remove=chance.choice((None, True, False)),
        longest_seconds=chance.choice((None, *TIMES)),
    )


def test_applied_without_a_click_exactly_where_the_rule_says_so() -> None:
    chance, approved = random.Random(32), 0
    for _ in range(10_000):
        own, every = policy(chance), policy(chance)
        policies = {key: one for key, one in ((FLOW, own), ("*", every)) if chance.random() < 0.7}
        rules = Policy(flow_policies=policies).of_flow(FLOW)
        layers = [policies[key] for key in (FLOW, "*") if key in policies]
        rule = next((layer.auto for layer in layers if layer.auto), None)
        removes = next(
            (layer.auto_remove for layer in layers if layer.auto_remove is not None), False
        )
        longest = next((layer.longest_seconds for layer in layers if layer.longest_seconds), 10**9)
        lasts = [chance.choice((None, *TIMES, 1800)) for _ in range(chance.randint(0, 2))]
        requester_ids, used = frozenset(chance.sample(IDS, 2)), chance.randint(0, 3)
        takes_away = not lasts or chance.random() < 0.2
        expected = (
            rule is not None
            and any(item in rule.requesters for item in requester_ids)
            and used < rule.a_day
            and (removes or not takes_away)
            and None not in lasts
            and all(second <= min(rule.longest_seconds, longest) for second in lasts)
        )
        found = is_automatic(rules, used, requester_ids, lasts, takes_away=takes_away)
        assert found is expected
        approved += expected
    assert approved > 100


def test_rule_of_every_flow_is_counted_over_all_flows() -> None:
    rule = FlowPolicy(auto=AutomaticRule(("U1",), 60, 1))
    of_all, own = (Policy(flow_policies={key: rule}).of_flow(FLOW) for key in ("*", FLOW))
    assert (rule_id(of_all, FLOW), rule_id(own, FLOW)) == ("rule:*", f"rule:{FLOW}")
