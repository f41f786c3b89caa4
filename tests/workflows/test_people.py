"""People: looked up once in a while, refused when in doubt, every refusal on record."""

import asyncio
from dataclasses import dataclass, field

import pytest

from bot.errors import DatabaseUnavailable, Refused, SlackUnreachable, UnknownPerson
from bot.permissions import Permission, Person, Policy, Role
from bot.store.audit import AuditStore
from bot.workflows.people import People

TEAM = "T0HOME"
FLOW = "FW0123456789ABCDEF0123456789ABCDEF"
FIVE_MINUTES = 300


@dataclass
class User:
    name: str = "Somebody"
    team_id: str = TEAM
    is_guest: bool = False
    is_bot: bool = False
    is_deleted: bool = False


@dataclass
class FakeSlack:
    """A workspace; what is in `down` cannot be looked up."""

    users: dict[str, User] = field(default_factory=dict)
    groups: dict[str, frozenset[str]] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)

    async def user(self, slack_user_id):
        self._look_up(slack_user_id)
        return self.users.get(slack_user_id, User(f"Name of {slack_user_id}"))

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


@pytest.fixture
def slack():
    return FakeSlack(groups={"S0TEAM": frozenset({"U0MEMBER"}), "S0FLOW": frozenset({"U0FLORA"})})


@pytest.fixture
def people(slack, database, clock):
    roles = {Role.VIEWER: ("*",), Role.OPERATOR: ("S0TEAM",), Role.ADMIN: ("U0ADAM",)}
    policy = Policy(roles, {FLOW: ("S0FLOW", "U0BOB")})
    people = People(slack, policy, database, AuditStore(None), clock)
    people.meet(TEAM, "U0BOT")
    return people


async def refusals(database):
    async with database.reading() as tx:
        entries = await AuditStore(None).latest(tx, 50)
    return [(one.actor, one.action, one.subject) for one in entries]


async def test_roles_come_by_name_by_group_and_by_star(people):
    assert (await people.find("U0ADAM")).roles == {Role.ADMIN, Role.VIEWER}
    member = await people.find("U0MEMBER")
    assert member.roles == {Role.OPERATOR, Role.VIEWER}
    assert member.groups == {"S0TEAM"}
    assert (await people.find("U0ANYONE")).roles == {Role.VIEWER}


@pytest.mark.parametrize("flag", ["is_guest", "is_bot"])
async def test_the_star_is_for_full_members(people, slack, flag):
    slack.users["U0X"] = User(**{flag: True})
    assert (await people.find("U0X")).roles == frozenset()


@pytest.mark.parametrize(
    ("user", "teams"),
    [
        (User(), ("T0OTHER",)),
        (User(), (TEAM, "T0OTHER")),
        (User(team_id="T0OTHER"), (TEAM,)),
        (User(team_id="T0OTHER"), ()),
        (User(team_id=""), ()),
        (User(is_deleted=True), (TEAM,)),
    ],
)
async def test_strangers(people, slack, user, teams):
    slack.users["U0X"] = user
    person = await people.find("U0X", teams)
    assert person.stranger
    assert not people.may(person, Permission.ASK_FOR_HELP)


@pytest.mark.parametrize("teams", [(), (TEAM,), (TEAM, None, "")])
async def test_people_of_this_workspace(people, teams):
    assert (await people.find("U0X", teams)).stranger is None


async def test_until_the_bot_knows_its_workspace_everybody_is_a_stranger(people):
    people.team_id = None
    assert (await people.find("U0ADAM", (TEAM,))).stranger


async def test_membership_is_looked_up_once_and_again_within_five_minutes(people, slack, clock):
    await people.find("U0MEMBER")
    await people.find("U0MEMBER")
    assert slack.calls.count("S0TEAM") == 1
    slack.groups["S0TEAM"] = frozenset()
    clock.advance(FIVE_MINUTES)
    assert (await people.find("U0MEMBER")).groups == frozenset()


async def test_a_change_of_a_person_counts_within_five_minutes(people, slack, clock):
    await people.find("U0X")
    slack.users["U0X"] = User(is_guest=True)
    clock.advance(FIVE_MINUTES)
    assert (await people.find("U0X")).roles == frozenset()


async def test_a_group_that_cannot_be_looked_up_is_a_doubt_and_not_kept(people, slack):
    slack.down.add("S0TEAM")
    person = await people.find("U0MEMBER")
    assert person.doubt
    with pytest.raises(UnknownPerson, match="did not tell which groups"):
        await people.admit(person, Permission.REFRESH)
    slack.down.clear()
    assert (await people.find("U0MEMBER")).doubt is None


async def test_a_doubt_takes_nothing_that_is_certain(people, slack, database):
    slack.down.add("S0TEAM")
    person = await people.find("U0ADAM")
    assert person.doubt
    await people.admit(person, Permission.SET_PLAN)
    assert await refusals(database) == []


async def test_a_person_that_slack_does_not_tell_of_is_refused_on_record(people, slack, database):
    slack.down.add("U0X")
    with pytest.raises(UnknownPerson, match="nothing was done"):
        await people.find("U0X")
    assert await refusals(database) == [("U0X", "permission.refused", "anything")]


async def test_every_refusal_is_on_record_and_no_grant_is(people, database):
    person = await people.find("U0X")
    await people.admit(person, Permission.READ)
    with pytest.raises(Refused):
        await people.admit(person, Permission.SET_PLAN)
    assert await refusals(database) == [("U0X", "permission.refused", "set_plan")]


async def test_to_show_or_hide_something_leaves_no_record(people, database):
    assert not people.may(await people.find("U0X"), Permission.SET_PLAN)
    assert await refusals(database) == []


async def test_a_refusal_stands_when_it_cannot_be_recorded(people, database, monkeypatch, capsys):
    person = await people.find("U0X")

    def away(_):
        raise DatabaseUnavailable

    monkeypatch.setattr(type(database), "transaction", away)
    with pytest.raises(Refused, match="You may not set a plan"):
        await people.admit(person, Permission.SET_PLAN)
    printed = capsys.readouterr().out
    assert "refusal_not_recorded" in printed
    assert "Traceback" not in printed


async def test_a_refusal_names_who_may_with_their_groups(people):
    person = Person("U0X", "X", frozenset({Role.VIEWER}))
    with pytest.raises(Refused) as caught:
        await people.admit(person, Permission.REFRESH)
    assert "needs the role operator or a higher one" in caught.value.sentence
    assert "Ask the group @s0team (S0TEAM), Name of U0ADAM (U0ADAM)." in caught.value.sentence


async def test_names_that_cannot_be_looked_up_are_ids(people, slack):
    slack.down |= {"handles", "U0ADAM"}
    decision = await people.decide(Person("U0X", "X"), Permission.REFRESH)
    sentence = await people.explain(Person("U0X", "X"), decision)
    assert "Ask the group S0TEAM, U0ADAM (U0ADAM)." in sentence


async def test_a_permission_that_nobody_has_says_so(database, slack, clock):
    people = People(slack, Policy(), database, AuditStore(None), clock)
    people.meet(TEAM, "U0BOT")
    with pytest.raises(Refused, match="Nobody has it yet"):
        await people.admit(await people.find("U0X"), Permission.READ)


@pytest.mark.parametrize(
    ("approvers", "setting"), [({}, "ROLES"), ({"FW1": ("U0ADA",)}, "FLOW_APPROVERS")]
)
async def test_who_alone_decides_is_told_that_nobody_else_does_and_which_setting_says_so(
    database, slack, clock, approvers, setting
):
    policy = Policy({Role.APPROVER: ("U0ADA",)}, approvers)
    people = People(slack, policy, database, AuditStore(None), clock)
    people.meet(TEAM, "U0BOT")
    with pytest.raises(Refused) as caught:
        await people.admit(
            await people.find("U0ADA"), Permission.DECIDE, flow_sid="FW1", requester="U0ADA"
        )
    assert caught.value.sentence == (
        "This is your own request: somebody else has to decide on it. Nobody else may decide yet:"
        f" ask the operator of Gatehouse to name somebody in {setting}."
    )


async def test_who_asked_is_told_that_every_other_full_member_may_decide(database, slack, clock):
    people = People(slack, Policy({Role.APPROVER: ("*",)}), database, AuditStore(None), clock)
    people.meet(TEAM, "U0BOT")
    with pytest.raises(Refused) as caught:
        await people.admit(
            await people.find("U0ADA"), Permission.DECIDE, flow_sid="FW1", requester="U0ADA"
        )
    assert caught.value.sentence == (
        "This is your own request: somebody else has to decide on it."
        " Every other full member of this workspace may; guests may not."
    )


async def test_above_the_highest_role_there_is_none(people):
    with pytest.raises(Refused, match=r"that needs the role admin\. Ask"):
        await people.admit(Person("U0X", "X", frozenset({Role.APPROVER})), Permission.SET_PLAN)


@pytest.mark.parametrize(("role", "helps"), [(Role.VIEWER, False), (Role.OPERATOR, True)])
async def test_who_may_not_do_without_approval_is_told_how_to_ask_for_it(people, role, helps):
    with pytest.raises(Refused) as caught:
        await people.admit(Person("U0X", "X", frozenset({role})), Permission.OVERRIDE)
    assert ("Leave out “now” to ask for approval." in caught.value.sentence) is helps


async def test_who_asks_while_the_bot_starts_waits_until_it_knows_its_workspace(
    database, slack, clock
):
    people = People(slack, Policy({Role.VIEWER: ("*",)}), database, AuditStore(None), clock)
    asking = asyncio.create_task(people.find("U0X", [TEAM]))
    await asyncio.sleep(0)
    assert not asking.done()
    people.meet(TEAM, "U0BOT")
    assert (await asking).roles == {Role.VIEWER}


async def test_who_asks_a_bot_that_cannot_learn_its_workspace_is_refused(
    database, slack, clock, monkeypatch
):
    monkeypatch.setattr("bot.workflows.people.MEET_SECONDS", 0.01)
    people = People(slack, Policy({Role.VIEWER: ("*",)}), database, AuditStore(None), clock)
    with pytest.raises(Refused, match="does not know its own workspace yet"):
        await people.admit(await people.find("U0X", [TEAM]), Permission.READ)


async def test_a_long_list_of_holders_is_cut_short(database, slack, clock):
    policy = Policy({Role.ADMIN: tuple(f"U{number}" for number in range(20))})
    people = People(slack, policy, database, AuditStore(None), clock)
    people.meet(TEAM, "U0BOT")
    with pytest.raises(Refused, match="and 12 more"):
        await people.admit(await people.find("U0X"), Permission.READ)


async def test_the_approvers_of_a_flow_alone_decide_on_it(people):
    flora, bob, adam = [await people.find(one) for one in ("U0FLORA", "U0BOB", "U0ADAM")]
    await people.admit(flora, Permission.DECIDE, flow_sid=FLOW.lower())
    await people.admit(bob, Permission.DECIDE, flow_sid=FLOW)
    with pytest.raises(Refused, match="for this flow"):
        await people.admit(adam, Permission.DECIDE, flow_sid=FLOW)
    await people.admit(adam, Permission.DECIDE, flow_sid="FW" + "0" * 32)
    assert people.deciders(FLOW) == ("S0FLOW", "U0BOB")


async def test_nobody_decides_on_their_own_request(people):
    adam = await people.find("U0ADAM")
    with pytest.raises(Refused, match="your own request"):
        await people.admit(adam, Permission.DECIDE, requester="U0ADAM")


async def test_names(people, slack):
    slack.users["U0X"] = User("Xenia")
    assert await people.name("U0X") == "Xenia"
    slack.down.add("U0Y")
    assert await people.name("U0Y") == "U0Y"
