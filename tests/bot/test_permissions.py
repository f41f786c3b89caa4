"""Each role has the right permissions, and each decision includes a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.approvals.rules import FlowPolicy
from bot.permissions import Permission, Person, Policy, Reason, Role

V, O, A, M = Role.VIEWER, Role.OPERATOR, Role.APPROVER, Role.ADMIN  # noqa: E741
TABLE = {
    Permission.READ: {V, O, A, M},
    Permission.SEE_IDENTITIES: {O, A, M},
    Permission.REFRESH: {O, A, M},
    Permission.REQUEST: {O, A, M},
    Permission.DECIDE: {A, M},
    Permission.OVERRIDE: {M},
    Permission.SET_PLAN: {M},
    Permission.READ_AUDIT: {M},
    Permission.ASK_FOR_HELP: {V, O, A, M},
}
ROLES = {V: ("*",), O: ("U0OTTO",), A: ("U0ADA", "S0APPROVERS"), M: ("U0ADAM",)}
FLOW = "FW1"
POLICY = Policy(ROLES)
roles_of_people = st.frozensets(st.sampled_from(Role))


def person(*roles: Role, **details: object) -> Person:
    return Person("U0ME", "Me", frozenset(roles), **details)


def test_the_table_is_whole():
    assert set(TABLE) == set(Permission)


@pytest.mark.parametrize("permission", Permission)
@pytest.mark.parametrize("role", Role)
def test_the_table(permission, role):
    decision = POLICY.judge(person(role), permission)
    assert decision.is_granted is (role in TABLE[permission])
    assert decision.reason is (Reason.GRANTED if decision.is_granted else Reason.ROLE_TOO_LOW)


@pytest.mark.parametrize("permission", Permission)
def test_without_a_role_there_is_help_and_nothing_else(permission):
    decision = POLICY.judge(person(), permission)
    expected = Reason.GRANTED if permission is Permission.ASK_FOR_HELP else Reason.NO_ROLE
    assert decision.reason is expected


@given(permission=st.sampled_from(Permission), roles=roles_of_people)
def test_a_stranger_may_nothing_whatever_their_roles(permission, roles):
    assert POLICY.judge(person(*roles, stranger="no"), permission).reason is Reason.STRANGER


@given(
    permission=st.sampled_from([item for item in Permission if item != "ask for help"]),
    roles=roles_of_people,
)
def test_a_doubt_grants_nothing_and_is_the_reason(permission, roles):
    decision = POLICY.judge(person(*roles, doubt="unknown"), permission)
    sure = POLICY.judge(person(*roles), permission)
    assert decision.is_granted is sure.is_granted
    assert decision.is_granted or decision.reason is Reason.UNKNOWN


def test_the_holders_are_everybody_with_the_role_or_a_higher_one_once():
    assert POLICY.with_role[Permission.DECIDE] == ("U0ADA", "S0APPROVERS", "U0ADAM")
    assert POLICY.with_role[Permission.SET_PLAN] == ("U0ADAM",)
    assert POLICY.with_role[Permission.READ][0] == "*"
    assert Policy().with_role[Permission.ASK_FOR_HELP] == ("*",)
    assert Policy({A: ("U1",), M: ("U1",)}).with_role[Permission.DECIDE] == ("U1",)


@pytest.mark.parametrize(
    ("role", "is_allowed", "reason"),
    [(M, False, Reason.OWN_REQUEST), (A, True, Reason.GRANTED), (O, True, Reason.ROLE_TOO_LOW)],
)
def test_nobody_approves_their_own_request_unless_allowed(role, is_allowed, reason):
    policy = Policy(ROLES, allow_self_approval=is_allowed)
    assert policy.judge(person(role), Permission.DECIDE, requester="U0ME").reason is reason


@pytest.mark.parametrize(
    ("who", "is_granted"),
    [
        (person(M), False),
        (person(A), False),
        (Person("U0FLORA", "Flora"), True),
        (Person("U0MEMBER", "Member", groups=frozenset({"S0FLOW"})), True),
        (Person("U0OTHER", "Other", groups=frozenset({"S0OTHER"})), False),
        (Person("U0FLORA", "Flora", stranger="no"), False),
    ],
)
def test_only_a_flows_approvers_decide(who, is_granted):
    policy = Policy(ROLES, flow_policies={FLOW: FlowPolicy(("U0FLORA", "S0FLOW"))})
    decision = policy.judge(who, Permission.DECIDE, FLOW)
    assert decision.is_granted is is_granted
    assert decision.holders == ("U0FLORA", "S0FLOW")


def test_a_flow_that_nobody_may_approve_is_approved_by_nobody():
    decision = Policy(ROLES, flow_policies={FLOW: FlowPolicy(())}).judge(
        person(M), Permission.DECIDE, FLOW
    )
    assert decision.reason is Reason.NOT_AN_APPROVER_OF_THIS_FLOW


def test_the_approvers_of_a_flow_may_nothing_else():
    policy = Policy(ROLES, flow_policies={FLOW: FlowPolicy(("U0ME",))})
    assert not policy.judge(person(), Permission.OVERRIDE, FLOW).is_granted


def test_the_groups_of_a_policy_are_those_of_roles_and_flows():
    policy = Policy(ROLES, flow_policies={"FW1": FlowPolicy(("S0FLOW", "U0ADA"))})
    assert policy.groups == {"S0APPROVERS", "S0FLOW"}


def test_a_decision_names_the_setting_that_gives_the_right():
    def setting(policy, permission=Permission.DECIDE):
        return policy.judge(person(M), permission, FLOW).setting

    by_flow = Policy(ROLES, flow_policies={FLOW: FlowPolicy(("U0ME",))})
    assert setting(by_flow) == "FLOW_POLICIES (this flow)"
    assert setting(POLICY) == "ROLES"
    assert setting(by_flow, Permission.OVERRIDE) == "ROLES"
