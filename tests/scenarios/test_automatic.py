"""Automatic approval: what a policy's rule lets people do without anybody's click."""

import asyncio
import json

import pytest

from bot.approvals.rules import AutomaticRule, FlowPolicy, State
from bot.store.engine import Database
from bot.testusers import asking
from bot.testusers.parse.command import parse_testusers
from tests.support.testusers import OTTO as FAKE_OTTO
from tests.support.testusers import WELCOME, World, default_policy
from tests.support.world import running_world

OTTO, ADA, ADAM = "U0OPERATOR", "U0APPROVER", "U0ADMIN"
AUTO = {"from": [OTTO], "longest": "4h", "a_day": 2}


@pytest.fixture
async def world(sqlite_url):
    policies = json.dumps({"welcome": {"auto": AUTO, "auto_remove": True}})
    async with running_world(sqlite_url, flow_policies=policies) as world:
        world.services.state.flows[WELCOME].identities.clear()
        yield world


async def card(world, nth: int):
    cards = world.slack.workspace.messages
    await world.slack.until(lambda: len(cards("C0APPROVALS")) > nth)
    return cards("C0APPROVALS")[nth]


async def ask(world, text: str, by: str = OTTO) -> str:
    return (await world.ask(by, "/testusers", text)).all_text


async def applied(world, nth: int):
    message = await card(world, nth)
    await world.slack.until(lambda: "*Applied*" in message.all_text)
    return message


async def test_addition_within_the_rule_is_applied_at_once(world):
    assert "Approved automatically" in await ask(world, "add welcome +1 for 2h")
    message = await applied(world, 0)
    assert "Rule `auto` in FLOW_POLICIES (this flow): at most 4 h, 1 of 2 requests used today" in (
        message.all_text
    )
    assert message.buttons == ["Undo"]
    assert "<@" not in message.all_text
    assert world.services.state.flows[WELCOME].identities == ["+1"]
    await ask(world, "remove welcome +1")
    assert "2 of 2 requests used today" in (await applied(world, 1)).all_text
    await ask(world, "add welcome +2 for 2h")
    message = await card(world, 2)
    assert message.buttons == ["Approve", "Deny", "Cancel"]


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("add welcome +1", OTTO),
        ("add welcome +1 for 5h", OTTO),
        ("add welcome +1 for 2h from tomorrow 9:00", OTTO),
        ("add welcome +1 for 2h", ADA),
        ("add survey +15559999 for 2h", OTTO),
    ],
)
async def test_anything_else_asks(world, text, by):
    await ask(world, text, by)
    assert (await card(world, 0)).buttons == ["Approve", "Deny", "Cancel"]


async def test_addition_that_would_shorten_permanent_access_asks(sqlite_url):
    policies = json.dumps({"welcome": {"auto": AUTO}})
    async with running_world(sqlite_url, flow_policies=policies) as world:
        world.services.state.flows[WELCOME].identities[:] = ["+1"]
        await ask(world, "add welcome +1 for 2h")
        assert (await card(world, 0)).buttons == ["Approve", "Deny", "Cancel"]
        await ask(world, "remove welcome +1")
        assert (await card(world, 1)).buttons == ["Approve", "Deny", "Cancel"]


async def test_next_day_counts_from_none(sqlite_url, clock):
    rule = FlowPolicy(auto=AutomaticRule((FAKE_OTTO,), 14_400, 1))
    database = Database(sqlite_url, clock)
    world = World(database, clock, policy=default_policy(flow_policies={"*": rule}))
    states = []
    for number in range(3):
        states.append((await world.ask(f"add welcome +{number} for 2h")).state)
        clock.advance(12 * 3600)
    assert states == [State.APPLYING, State.PENDING, State.APPLYING]
    await database.close()


@pytest.mark.postgres
async def test_day_is_counted_over_all_processes(postgres_url, clock):
    rule = FlowPolicy(auto=AutomaticRule((FAKE_OTTO,), 14_400, 5))
    policy = default_policy(flow_policies={"*": rule})
    databases = [Database(postgres_url, clock) for _ in range(3)]
    worlds = [World(database, clock, policy=policy, owner=str(database)) for database in databases]
    person = await worlds[0].person(FAKE_OTTO)
    asks = [
        asking.ask(worlds[number % 3], person, parse_testusers(f"add welcome +{number} for 2h"))
        for number in range(15)
    ]
    asked = [item.request.state for item in await asyncio.gather(*asks)]
    assert (asked.count(State.APPLYING), asked.count(State.PENDING)) == (5, 10)
    for one in databases:
        await one.close()
