"""The table of the contract, section 4, cell by cell, and what a decision says besides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.permissions import (
    Circumstances,
    Permission,
    Person,
    Policy,
    Reason,
    Role,
    decide,
    who_may,
)

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
roles_of_people = st.frozensets(st.sampled_from(Role))


def person(*roles: Role, **details: object) -> Person:
    return Person("U0ME", "Me", frozenset(roles), **details)


def test_the_table_is_whole():
    assert set(TABLE) == set(Permission)


@pytest.mark.parametrize("permission", Permission)
@pytest.mark.parametrize("role", Role)
def test_the_table(permission, role):
    decision = decide(person(role), permission, ROLES)
    assert decision.is_granted is (role in TABLE[permission])
    assert decision.reason is (Reason.GRANTED if decision.is_granted else Reason.ROLE_TOO_LOW)


@pytest.mark.parametrize("permission", Permission)
def test_without_a_role_there_is_help_and_nothing_else(permission):
    decision = decide(person(), permission, ROLES)
    expected = Reason.GRANTED if permission is Permission.ASK_FOR_HELP else Reason.NO_ROLE
    assert decision.reason is expected


@pytest.mark.parametrize("permission", Permission)
@given(roles=roles_of_people)
def test_a_stranger_may_nothing_whatever_their_roles(permission, roles):
    assert decide(person(*roles, stranger="no"), permission, ROLES).reason is Reason.STRANGER


@pytest.mark.parametrize("permission", [item for item in Permission if item != "ask for help"])
@given(roles=roles_of_people)
def test_a_doubt_grants_nothing_and_is_the_reason(permission, roles):
    decision = decide(person(*roles, doubt="unknown"), permission, ROLES)
    sure = decide(person(*roles), permission, ROLES)
    assert decision.is_granted is sure.is_granted
    assert decision.is_granted or decision.reason is Reason.UNKNOWN


def test_who_may_names_everybody_with_the_role_or_a_higher_one_once():
    assert who_may(Permission.DECIDE, ROLES) == ("U0ADA", "S0APPROVERS", "U0ADAM")
    assert who_may(Permission.SET_PLAN, ROLES) == ("U0ADAM",)
    assert who_may(Permission.READ, ROLES)[0] == "*"
    assert who_may(Permission.ASK_FOR_HELP, {}) == ("*",)
    assert who_may(Permission.DECIDE, {A: ("U1",), M: ("U1",)}) == ("U1",)


OWN = Circumstances(requester="U0ME")


def test_nobody_approves_their_own_request():
    assert decide(person(M), Permission.DECIDE, ROLES, OWN).reason is Reason.OWN_REQUEST


def test_unless_it_is_allowed():
    allowed = Circumstances(requester="U0ME", allow_self=True)
    assert decide(person(A), Permission.DECIDE, ROLES, allowed).is_granted


def test_a_role_is_still_needed_for_one_s_own_request():
    allowed = Circumstances(requester="U0ME", allow_self=True)
    assert decide(person(O), Permission.DECIDE, ROLES, allowed).reason is Reason.ROLE_TOO_LOW


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
def test_the_approvers_of_a_flow_alone_decide_on_it(who, is_granted):
    circumstances = Circumstances(approvers=("U0FLORA", "S0FLOW"))
    decision = decide(who, Permission.DECIDE, ROLES, circumstances)
    assert decision.is_granted is is_granted
    assert decision.holders == ("U0FLORA", "S0FLOW")


def test_a_flow_that_nobody_may_approve_is_approved_by_nobody():
    decision = decide(person(M), Permission.DECIDE, ROLES, Circumstances(approvers=()))
    assert decision.reason is Reason.NOT_AN_APPROVER_OF_THIS_FLOW


def test_the_approvers_of_a_flow_may_nothing_else():
    circumstances = Circumstances(approvers=("U0ME",))
    assert not decide(person(), Permission.OVERRIDE, ROLES, circumstances).is_granted


def test_the_groups_of_a_policy_are_those_of_roles_and_flows():
    policy = Policy(ROLES, {"FW1": ("S0FLOW", "U0ADA")})
    assert policy.groups() == {"S0APPROVERS", "S0FLOW"}


def test_a_decision_names_the_setting_that_gives_the_right():
    own, shared = Circumstances(("U0ME",)), Circumstances(("U0ME",), setting="FLOW_POLICIES")
    assert decide(person(), Permission.DECIDE, ROLES, own).setting == "FLOW_APPROVERS"
    assert decide(person(), Permission.DECIDE, ROLES, shared).setting == "FLOW_POLICIES"
    assert decide(person(A), Permission.DECIDE, ROLES).setting == "ROLES"
    assert decide(person(M), Permission.OVERRIDE, ROLES, own).setting == "ROLES"
