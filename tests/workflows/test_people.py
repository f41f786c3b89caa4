"""Who somebody is: of this workspace, and with the rights that Slack says they have now."""

import pytest

from bot.errors import SlackUnreachable, UnknownPerson
from bot.model.approval import Act
from tests.support.testusers import ABEL, ADA, NAMES, TEAM, FakeUser, World, default_rules


@pytest.fixture
def world(database, clock) -> World:
    return World(database, clock)


@pytest.fixture
def nowhere(world):
    """A world whose Slack does not say of which workspace people are."""

    async def user(slack_user_id: str) -> FakeUser:
        return FakeUser(NAMES[slack_user_id], team_id="")

    world.slack.user = user
    return world


async def test_the_payload_says_whose_a_person_is_where_slack_does_not(nowhere):
    assert (await nowhere.people.find(ADA, (TEAM,))).stranger is None
    assert (await nowhere.people.find(ADA, ("T0OTHER",))).stranger is not None


async def test_who_is_of_no_known_workspace_is_refused(nowhere):
    assert (await nowhere.people.find(ADA)).stranger is not None


async def test_either_of_the_two_may_name_another_workspace(world):
    assert (await world.people.find(ADA, (TEAM, "T0OTHER"))).stranger is not None


async def test_a_fresh_look_up_sees_a_group_as_it_is_now(world):
    assert (await world.people.find(ABEL)).groups == {"S0APPROVERS"}
    world.slack.groups["S0APPROVERS"] = frozenset()
    assert (await world.people.find(ABEL)).groups == {"S0APPROVERS"}
    assert (await world.people.find(ABEL, fresh=True)).groups == set()


async def test_what_is_cached_counts_while_slack_does_not_answer(world):
    await world.people.find(ABEL)

    async def silent(_key: str):
        raise SlackUnreachable

    world.slack.user = world.slack.members = silent
    assert (await world.people.find(ABEL, fresh=True)).groups == {"S0APPROVERS"}
    with pytest.raises(UnknownPerson):
        await world.people.find(ADA, fresh=True)


async def test_a_quorum_is_reached_where_slack_names_no_workspace(database, clock):
    world = World(database, clock, rules=default_rules(approvals_needed=2))
    request = await world.ask("add welcome +1")
    await world.decide(Act.APPROVE, request, ABEL)

    async def user(slack_user_id: str) -> FakeUser:
        return FakeUser(NAMES[slack_user_id], team_id="")

    ada = await world.person(ADA)
    world.slack.user = user
    await world.deciding.decide(ada, Act.APPROVE, request.id)
    await world.work()
    assert world.service.posts == [("+1",)]
