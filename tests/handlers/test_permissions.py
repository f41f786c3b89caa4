"""Test over signed HTTP that every listener enforces its permission.

After a refusal, only the person sees the reply, an audit entry names the permission, and no service
is called.
"""

import json
from typing import Any

import pytest
import pytest_asyncio

from bot.audit.reading import latest
from bot.metrics import Metrics
from bot.permissions import LEAST_ROLE, RANK, Permission, Role
from handlers.app import NAMES, slack_app
from handlers.bolt import ListenerWithoutNeedsError
from sandbox.people import OTHER_TEAM_ID, Person
from sandbox.slack.messages import View
from tests.support.entry_points import (
    KNOWN,
    LISTENERS,
    EntryPoint,
    Registered,
    deliver,
    write,
)
from tests.support.world import World, running_world

pytestmark = pytest.mark.asyncio(loop_scope="module")

PEOPLE = {
    "viewer": "U0VIEWER",
    "operator": "U0OPERATOR",
    "approver": "U0APPROVER",
    "approver by group": "U0APPROVER2",
    "admin": "U0ADMIN",
    "no role": "U0NOROLE",
    "guest": "U0GUEST",
    "of another workspace": "U0STRANGER",
}
NOBODY = {"of another workspace"}
NO_ROLE = {"no role", "guest"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('permissions')}/gatehouse.db"
    async with running_world(url, commands_per_minute="0", inventory_watch="off") as world:
        yield world


def is_granted(who: str, permission: Permission) -> bool:
    """Return True if this kind of person should have the permission."""
    if who in NOBODY:
        return False
    if permission is Permission.ASK_FOR_HELP:
        return True
    if who in NO_ROLE:
        return False
    return RANK[Role(who.split(maxsplit=1)[0])] >= RANK[LEAST_ROLE[permission]]


async def refusals(world: World) -> list[tuple[str, str]]:
    """Return the person and the permission for each refusal in the audit log, newest first."""
    entries, _ = await latest(world.bot.database, 1000)
    refused = [entry for entry in entries if entry.action == "permission.refused"]
    return [(entry.actor, entry.subject) for entry in refused]


def least_and_next(permission: Permission) -> list[str]:
    """Return the lowest role that has the permission and the highest role that lacks it."""
    if permission is Permission.ASK_FOR_HELP:
        return ["no role", "of another workspace"]
    rank = RANK[LEAST_ROLE[permission]]
    return [list(Role)[rank].value, list(Role)[rank - 1].value if rank else "no role"]


# A new button, form or shortcut gets a row of its own.
NEW = [
    item.row() for item in LISTENERS if item.name and not any(item.has(entry) for entry in KNOWN)
]
ENTRY_POINTS = [*KNOWN, *NEW]
CASES = [(who, entry) for entry in ENTRY_POINTS for who in least_and_next(entry.permission)]
# Every kind of person at one entry point of each kind; tests/bot has every role and permission.
EACH_WAY = {entry.kind: entry for entry in ENTRY_POINTS}
CASES += [(who, entry) for entry in EACH_WAY.values() for who in PEOPLE]
CASES_BY_NAME = {f"{who}: {entry}": (who, entry) for who, entry in CASES}
TYPED = {name: case for name, case in CASES_BY_NAME.items() if case[1].kind == "command"}


@pytest.mark.parametrize(("who", "entry"), CASES_BY_NAME.values(), ids=CASES_BY_NAME.keys())
async def test_the_role_decides(world: World, who: str, entry: EntryPoint) -> None:
    user = PEOPLE[who]
    before, calls = await refusals(world), len(world.services.state.calls)

    answer = await deliver(world, user, entry, entry.sample)

    new = (await refusals(world))[: -len(before) or None]
    if entry.name == "app_home_opened":
        # A Home tab is not a refusal: it says who manages access.
        assert new == []
        assert ("Your requests" in answer.all_text) is is_granted(who, Permission.READ)
    elif is_granted(who, entry.permission):
        assert new == []
        assert answer != []
        assert "went wrong" not in getattr(answer, "all_text", "")
    elif entry.kind == "options":
        assert answer == []
    else:
        # A stranger is refused before the text is read. A stored click is handled later.
        missing = {entry.permission} | ({Permission.ASK_FOR_HELP} if who in NOBODY else set())
        assert new in [[(user, item.name.lower())] for item in missing]
        assert isinstance(answer, View) is False
        assert is_seen_by_one(answer, user)
        assert len(world.services.state.calls) == calls
        assert world.slack.workspace.open_view(user) is None


def is_seen_by_one(answer, user: str) -> bool:
    return user in {answer.only_for, f"U{answer.channel.removeprefix('D')}"}


@pytest.mark.parametrize(("who", "entry"), TYPED.values(), ids=TYPED.keys())
async def test_direct_message_is_answered_as_the_command(
    world: World, who: str, entry: EntryPoint
) -> None:
    user = PEOPLE[who]
    before, calls = await refusals(world), len(world.services.state.calls)
    answer = await write(world, user, f"{entry.name.removeprefix('/')} {entry.sample}".strip())
    new = (await refusals(world))[: -len(before) or None]
    if is_granted(who, entry.permission):
        assert new == []
        assert "You need" not in answer.all_text
        assert "went wrong" not in answer.all_text
    else:
        missing = {entry.permission} | ({Permission.ASK_FOR_HELP} if who in NOBODY else set())
        assert new in [[(user, item.name.lower())] for item in missing]
        assert len(world.services.state.calls) == calls


@pytest.mark.parametrize("command", ["/orgs", "/ratelimits", "/testusers", "/emailkey"])
async def test_a_stranger_who_mistypes_is_refused_like_any_other(world: World, command) -> None:
    before = await refusals(world)
    answer = await world.ask("U0STRANGER", command, "show")
    assert "another workspace" in answer.all_text
    assert "Usage" not in answer.all_text
    assert (await refusals(world))[: -len(before) or None] == [("U0STRANGER", "ask_for_help")]


def reached(entry: EntryPoint) -> Registered:
    """Return the first listener that matches the entry point, just as Bolt would."""
    return next(item for item in LISTENERS if item.has(entry))


async def test_every_listener_requires_what_the_table_says() -> None:
    for entry in ENTRY_POINTS:
        needs = reached(entry).needs
        # Stored clicks, events and `Deny` are checked later, as `test_the_role_decides` shows.
        is_later = needs.permission is None or entry.name == "testusers.deny"
        if entry.kind != "command" and not is_later:
            assert needs.permission is entry.permission, entry


async def test_every_listener_has_a_counter_from_the_start() -> None:
    metrics = Metrics()
    metrics.expect_commands(NAMES)
    broken = {
        sample.labels["name"]
        for family in metrics.commands.collect()
        for sample in family.samples
        if sample.labels["outcome"] == "broken"
    }
    # An unknown name has no alert.
    names = {item.name for item in LISTENERS if item.name}
    assert names - broken == set()


async def test_listener_without_needs_ends_the_start(world: World) -> None:
    async def forgotten(ack: Any) -> None:
        await ack()

    app = slack_app(world.bot)
    app.action("gone.button")(forgotten)
    with pytest.raises(ListenerWithoutNeedsError, match=r"test_permissions\..*forgotten.*Needs"):
        app.require_needs()


def one_world(tmp_path, roles, **settings):
    return running_world(f"sqlite:///{tmp_path}/g.db", roles=json.dumps(roles), **settings)


@pytest.mark.parametrize(
    ("user", "flags", "sees"),
    [
        ("U0NOROLE", {}, True),
        ("U0GUEST", {}, False),
        ("U0SINGLE", {"is_ultra_restricted": True}, False),
        ("U0ROBOT", {"is_bot": True}, False),
    ],
)
async def test_the_star_is_every_full_member(tmp_path, user, flags, sees) -> None:
    async with one_world(tmp_path, {"viewer": ["*"]}) as world:
        people = world.slack.workspace.people
        people.setdefault(user, Person(user, user.lower(), user, "someone", **flags))
        answer = await world.ask(user, "/orgs")
        assert ("Northwind" in answer.all_text) is sees
        if not sees:
            assert (
                "All full members of this workspace have this permission, but guests don't."
                in answer.all_text
            )
            assert world.services.state.calls == []


async def test_a_guest_who_is_named_has_the_role(tmp_path) -> None:
    async with one_world(tmp_path, {"viewer": ["U0GUEST"]}) as world:
        assert "Northwind" in (await world.ask("U0GUEST", "/orgs")).all_text


@pytest.mark.parametrize("role", Role)
async def test_a_person_of_another_workspace_is_refused_whatever_their_role(tmp_path, role) -> None:
    everybody = [] if role is Role.ADMIN else ["*"]
    async with one_world(tmp_path, {role: ["U0STRANGER", *everybody]}) as world:
        assert "another workspace" in (await world.ask("U0STRANGER", "/gatehouse", "help")).all_text
        assert world.services.state.calls == []


@pytest.mark.parametrize("told_by", ["payload", "users.info"])
async def test_each_workspace_that_slack_tells_decides(tmp_path, told_by) -> None:
    async with one_world(tmp_path, {"admin": ["U0ADMIN"]}) as world:
        workspace = world.slack.workspace
        key = workspace.new_response_url("C0GENERAL", "U0ADMIN")
        fields = {
            "team_id": OTHER_TEAM_ID if told_by == "payload" else workspace.team_id,
            "user_id": "U0ADMIN",
            "command": "/orgs",
            "response_url": f"{world.slack.address}/response/{key}",
        }
        if told_by == "users.info":
            workspace.people["U0ADMIN"].team_id = OTHER_TEAM_ID
        assert (await world.slack._deliverer.command(fields)).status == 200
        assert "another workspace" in (await world.answer("U0ADMIN")).all_text
        assert world.services.state.calls == []


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("internal_error", "Please try again."),
        ("missing_scope", "isn't set up correctly"),
        ("plan_upgrade_required", "isn't set up correctly"),
    ],
)
async def test_a_group_that_cannot_be_looked_up_gives_nothing(tmp_path, error, advice) -> None:
    async with one_world(tmp_path, {"admin": ["S0APPROVERS"]}) as world:
        world.slack.workspace.faults.error("usergroups.users.list", error, times=1)
        answer = await world.ask("U0APPROVER2", "/orgs")
        assert "couldn't check the user groups with Slack" in answer.all_text
        assert advice in answer.all_text
        assert "see organizations" in answer.all_text
        assert "@approvers" in answer.all_text
        assert world.services.state.calls == []
        # The failure is not kept.
        assert "Northwind" in (await world.ask("U0APPROVER2", "/orgs")).all_text


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("missing_scope", "isn't set up correctly"),
        ("token_revoked", "isn't set up correctly"),
        ("account_inactive", "isn't set up correctly"),
        ("user_not_visible", "trying again won't help"),
        ("internal_error", "Please try again."),
    ],
)
async def test_the_answer_explains_why_a_person_cannot_be_looked_up(tmp_path, error, words) -> None:
    async with one_world(tmp_path, {"viewer": ["U0VIEWER"]}) as world:
        world.slack.workspace.faults.error("users.info", error, times=1)
        assert words in (await world.ask("U0VIEWER", "/orgs")).all_text


@pytest.mark.parametrize("error", ["internal_error", "missing_scope", "user_not_found"])
async def test_person_slack_cannot_look_up_is_refused_on_record(tmp_path, error) -> None:
    async with one_world(tmp_path, {"viewer": ["U0VIEWER"]}) as world:
        world.slack.workspace.faults.error("users.info", error, times=1)
        assert "couldn't verify who you are" in (await world.ask("U0VIEWER", "/orgs")).all_text
        assert [actor for actor, _ in await refusals(world)] == ["U0VIEWER"]
        assert world.services.state.calls == []
        # The failure is not kept.
        assert "Northwind" in (await world.ask("U0VIEWER", "/orgs")).all_text


async def test_a_refusal_says_what_is_missing_and_who_has_it(tmp_path) -> None:
    roles = {"viewer": ["*"], "operator": ["U0OPERATOR"], "approver": ["S0APPROVERS"]}
    async with one_world(tmp_path, roles) as world:
        answer = await world.ask("U0VIEWER", "/orgs", "refresh")
        assert "the operator role to refresh lists, check" in answer.all_text
        assert "People with this permission: Otto Operator, @approvers." in answer.all_text
        assert "<@" not in answer.all_text
        assert "<!subteam" not in answer.all_text
