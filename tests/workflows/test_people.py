"""Tests how often people are looked up in Slack, and when they are denied access."""

from dataclasses import dataclass, field

import pytest

from bot.approvals.rules import FlowPolicy
from bot.errors import (
    DatabaseUnavailable,
    Refused,
    SlackRefused,
    SlackUnreachable,
)
from bot.permissions import Permission, Policy, Role
from bot.slack.people import People
from bot.store import audit
from tests.support.testusers import TEAM, FakeUser

FLOW = "FW0123456789ABCDEF0123456789ABCDEF"
FIVE_MINUTES = 300


@dataclass
class FakeSlack:
    """A fake workspace. `down` holds what can't be looked up, and `missing` who isn't known."""

    users: dict[str, FakeUser] = field(default_factory=dict)
    groups: dict[str, frozenset[str]] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)

    async def user(self, slack_user_id):
        self._look_up(slack_user_id)
        return self.users.get(slack_user_id, FakeUser(f"Name of {slack_user_id}"))

    async def members(self, group_id):
        self._look_up(group_id)
        return self.groups.get(group_id, frozenset())

    async def group_handles(self):
        self._look_up("handles")
        return {group: group.lower() for group in self.groups}

    def _look_up(self, what):
        self.calls.append(what)
        if what in self.down:
            raise SlackUnreachable
        if what in self.missing:
            raise SlackRefused("user_not_found")


@pytest.fixture
def slack():
    return FakeSlack(groups={"S0TEAM": frozenset({"U0MEMBER"}), "S0FLOW": frozenset({"U0FLORA"})})


@pytest.fixture
def people(slack, database, clock):
    roles = {Role.VIEWER: ("*",), Role.OPERATOR: ("S0TEAM",), Role.ADMIN: ("U0ADAM",)}
    policy = Policy(roles, flow_policies={FLOW: FlowPolicy(("S0FLOW", "U0BOB"))})
    people = People(slack, policy, clock, database)
    people.meet(TEAM, "U0BOT")
    return people


async def refusals(database):
    async with database.read_only() as tx:
        entries = await audit.latest(tx, 50)
    return [(entry.actor, entry.action, entry.subject) for entry in entries]


@pytest.mark.parametrize(
    ("user", "teams"),
    [
        (FakeUser("X"), (TEAM, "T0OTHER")),
        (FakeUser("X", is_stranger=True), (TEAM,)),
        (FakeUser("X", team_id=""), ()),
        (FakeUser("X", is_deleted=True), (TEAM,)),
    ],
)
async def test_person_of_another_workspace_is_a_stranger(people, slack, user, teams):
    slack.users["U0X"] = user
    person = await people.find("U0X", teams)
    assert person.stranger
    assert not people.may(person, Permission.ASK_FOR_HELP)


async def test_membership_is_looked_up_once_and_again_within_five_minutes(people, slack, clock):
    await people.find("U0MEMBER")
    await people.find("U0MEMBER")
    assert slack.calls.count("S0TEAM") == 1
    slack.groups["S0TEAM"] = frozenset()
    clock.advance(FIVE_MINUTES)
    assert (await people.find("U0MEMBER")).groups == frozenset()


async def test_a_doubt_takes_nothing_that_is_certain(people, slack, database):
    slack.down.add("S0TEAM")
    person = await people.find("U0ADAM")
    assert person.doubt
    await people.require(person, Permission.SET_PLAN)
    assert await refusals(database) == []


async def test_a_refusal_stands_when_it_cannot_be_recorded(
    people, database, monkeypatch, capsys, caplog
):
    person = await people.find("U0X")

    def away(_):
        raise DatabaseUnavailable

    monkeypatch.setattr(type(database), "transaction", away)
    with pytest.raises(Refused, match="admin role to change a plan"):
        await people.require(person, Permission.SET_PLAN)
    # Another test in this process may have redirected the log to the standard library.
    printed = capsys.readouterr().out + caplog.text
    assert "refusal_not_recorded" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("contact", "said"),
    [
        (None, "Name of U0ADAM manages access."),
        ("S0TEAM", "@s0team manages access."),
    ],
)
async def test_who_has_no_role_is_sent_to_who_manages_access(database, slack, clock, contact, said):
    policy = Policy({Role.ADMIN: ("U0ADAM",)}, access_contact=contact)
    people = People(slack, policy, clock, database)
    people.meet(TEAM, "U0BOT")
    nora = await people.find("U0NORA")
    assert await people.lacks_access(nora) == f"You don't have access to Gatehouse yet. {said}"
    assert await people.lacks_access(await people.find("U0ADAM")) is None
    with pytest.raises(Refused) as caught:
        await people.require(nora, Permission.REFRESH)
    assert caught.value.sentence == (
        "You don't have access to Gatehouse yet (you need the operator role to refresh lists,"
        f" check limits or mute alerts). {said}"
    )


async def sentence_for(people, slack_user_id: str) -> str:
    found = await people.lacks_access(await people.find(slack_user_id))
    assert found is not None
    return found.partition("yet. ")[2]


async def test_people_who_have_left_are_not_named(database, slack, clock):
    roles = {Role.ADMIN: ("U0GONE", "U0STAN", "U0ADAM", "U0NOBODY", "S0GONE")}
    slack.users["U0GONE"] = FakeUser("Gone", is_deleted=True)
    # People of other workspaces can't use Gatehouse either.
    slack.users["U0STAN"] = FakeUser("Stan", team_id="T0OTHER")
    slack.missing.add("U0NOBODY")
    for contact, said in (
        ("U0ADAM", "Name of U0ADAM manages access."),
        ("U0GONE", "Name of U0ADAM manages access."),
        ("U0STAN", "Name of U0ADAM manages access."),
        ("S0GONE", "Name of U0ADAM manages access."),
    ):
        people = People(slack, Policy(roles, access_contact=contact), clock, database)
        people.meet(TEAM, "U0BOT")
        assert await sentence_for(people, "U0NORA") == said
    slack.missing.add("U0ADAM")
    people = People(slack, Policy(roles), clock, database)
    people.meet(TEAM, "U0BOT")
    assert await sentence_for(people, "U0NORA") == "Whoever runs Gatehouse manages access."


async def test_nobody_is_sent_to_themselves(people):
    adam = await people.find("U0ADAM")
    own = people.policy.judge(adam, Permission.DECIDE, None, "U0ADAM")
    assert "U0ADAM" not in await people.explain(adam, own)


async def test_who_only_approves_for_a_flow_does_not_lack_access(people):
    assert await people.lacks_access(await people.find("U0BOB")) is None


async def test_person_who_asks_during_the_start_is_told_to_wait(database, slack, clock):
    people = People(slack, Policy({Role.ADMIN: ("U0X",)}), clock, database)
    person = await people.find("U0X", [TEAM])
    with pytest.raises(Refused, match="still starting"):
        await people.require(person, Permission.READ)
    people.meet(TEAM, "U0BOT")
    assert (await people.find("U0X", [TEAM])).roles == {Role.ADMIN}


async def test_id_of_a_group_is_nobody(people, slack):
    person = await people.find("S0TEAM")
    assert Role.OPERATOR not in person.roles
