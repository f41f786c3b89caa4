"""Policies: a flow's own comes before that of all flows, and that before the general settings."""

import pytest

from bot.approvals.rules import (
    AutomaticRule,
    FlowPolicy,
    duration_problem,
)
from bot.permissions import (
    Policy,
    Role,
)

FLOW = "FW" + "AB" * 16
FULL = FlowPolicy(("U0A",), 3, ("S0X",), 3600, 60, ("U0B",), AutomaticRule(("U0A",), 60, 1), True)
KEYS = FlowPolicy.__dataclass_fields__.keys() - {"sources"}


@pytest.mark.parametrize("name", sorted(KEYS))
def test_each_key_holds_alone_and_its_absence_leaves_the_next_layer(name) -> None:
    own = FlowPolicy(**{name: getattr(FULL, name)})
    everywhere = FlowPolicy(
        ("U0C",), 2, ("U0C",), 7200, 120, ("U0C",), AutomaticRule(("U0C",), 60, 2), False
    )
    approvers = {FLOW: ("S0Y",)}
    with_own, without, general = (
        Policy(flow_approvers=approvers, flow_policies=policies).of_flow(FLOW)
        for policies in ({FLOW: own, "*": everywhere}, {"*": everywhere}, {})
    )
    assert getattr(with_own, name) == getattr(FULL, name)
    assert getattr(without, name) == getattr(everywhere, name)
    assert with_own.sources[name] == "FLOW_POLICIES (this flow)"
    assert without.sources[name] == "FLOW_POLICIES (every flow)"
    others = KEYS - {name}
    assert all(getattr(with_own, other) == getattr(everywhere, other) for other in others)
    assert general.approvers == ("S0Y",)
    assert (general.approvals_needed, general.longest_seconds) == (1, None)
    assert general.sources == {
        "approvers": "FLOW_APPROVERS",
        "approvals_needed": "APPROVALS_NEEDED",
    }


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
def test_access_lasts_no_longer_than_the_policy_lets_it(longest, seconds, problem) -> None:
    found = duration_problem(FlowPolicy(longest_seconds=longest), seconds)
    assert found is None if problem is None else problem in found


ROLES = {Role.APPROVER: ("U0A", "S0X"), Role.ADMIN: ("U0B",)}


@pytest.mark.parametrize(
    ("policy", "requester", "mentioned"),
    [
        (Policy(ROLES), "U0Z", ("U0A", "S0X")),
        (Policy({**ROLES, Role.APPROVER: ("U0A",)}), "U0A", ("U0A", "U0B")),
        (Policy({**ROLES, Role.APPROVER: ("U0A",)}, {}, True), "U0A", ("U0A",)),
        (Policy({Role.ADMIN: ("U0B",)}), "U0Z", ("U0B",)),
        (Policy(ROLES, {FLOW: ("U0C",)}), "U0Z", ("U0C",)),
        (Policy(ROLES, flow_policies={"*": FlowPolicy(notify=("S0Y",))}), "U0Z", ("S0Y",)),
        (Policy(ROLES, flow_policies={FLOW: FlowPolicy(approvers=("U0C",))}), "U0Z", ("U0C",)),
    ],
)
def test_a_card_mentions_who_can_approve_and_leaves_admins_in_peace(
    policy, requester, mentioned
) -> None:
    assert policy.mentioned(FLOW, requester) == mentioned
