"""`python -m bot policy explain` asks Slack, and says what the bot would decide."""

import json
from dataclasses import replace

import pytest

from sandbox.services.running import running_services
from sandbox.services.state import ServicesState
from sandbox.slack.server import running_slack
from tests.ops.doctor.test_command import run
from tests.support.world import environment_for


@pytest.fixture
async def slack():
    async with running_slack() as running:
        yield running


@pytest.fixture
async def environment(sqlite_url, slack):
    async with running_services(ServicesState()) as services:
        environment = environment_for(slack, services, sqlite_url)
        auto = {"from": ["S0APPROVERS"], "longest": "4h", "a_day": 5}
        welcome = {"approvers": ["S0APPROVERS"], "longest": "7d", "auto": auto}
        policies = {"welcome": welcome}
        yield {**environment, "FLOW_POLICIES": json.dumps(policies)}


async def explained(environment, flow: str, user: str) -> tuple[int, str]:
    return await run(environment, "policy", "explain", flow, user)


async def test_a_member_of_a_named_group_can_approve_by_the_policy(environment, slack) -> None:
    person = slack.workspace.people["U0APPROVER2"]
    slack.workspace.people[person.id] = replace(person, name="Ada\x1b[2K\nAdmins")
    status, out = await explained(environment, "welcome", "U0APPROVER2")
    assert status == 0
    assert "Approvers: S0APPROVERS [FLOW_POLICIES (this flow)]" in out
    # Her name stays on its line.
    verdict = "can approve: in S0APPROVERS, which FLOW_POLICIES (this flow) names."
    assert f"Ada\\x1b[2K\\nAdmins (U0APPROVER2) {verdict}" in out
    assert "They can't approve their own requests [ALLOW_SELF_APPROVAL]" in out
    rule = "additions requested by S0APPROVERS, for at most 4h, up to 5 per person per day"
    assert f"Automatic approval: {rule} [FLOW_POLICIES (this flow)]" in out


@pytest.mark.parametrize(
    ("flow", "user", "said"),
    [
        ("nowhere", "U0ADMIN", "There's no flow nowhere."),
        ("welcome", "U0NOBODY", "Slack doesn't have a user with the ID U0NOBODY."),
    ],
)
async def test_what_is_not_known_is_exit_status_1(environment, flow, user, said) -> None:
    status, out = await explained(environment, flow, user)
    assert (status, said in out) == (1, True)
