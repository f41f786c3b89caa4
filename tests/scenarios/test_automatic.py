"""A rule in a policy can approve a request automatically."""

import asyncio
import json

import pytest

from bot.approvals.rules import AutomaticRule, FlowPolicy, State
from bot.errors import Conflict
from bot.store import audit
from bot.store.engine import Database
from bot.testusers import asking
from bot.testusers.parse.command import parse_testusers
from tests.support.testusers import OTTO as FAKE_OTTO
from tests.support.testusers import WELCOME, World, default_policy
from tests.support.world import ADA, OTTO, empty_world, running_world

AUTO = {"from": [OTTO], "longest": "4h", "a_day": 2}


@pytest.fixture
async def world(sqlite_url):
    policies = json.dumps({"welcome": {"auto": AUTO, "auto_remove": True}})
    async with empty_world(sqlite_url, flow_policies=policies) as world:
        yield world


async def test_addition_within_the_rule_is_applied_at_once(world):
    answer = await world.ask(OTTO, "/testusers", "add welcome +1 for 2h")
    assert "Approved automatically" in answer.all_text
    message = await world.card()
    rule = (
        "The rule `auto` in FLOW_POLICIES (this flow) allows at most 4 h of access (1 of 2"
        " requests used in the last 24 h)"
    )
    await world.shows(message, "*Applied*", rule)
    assert message.buttons == ["Undo"]
    assert "<@" not in message.all_text
    assert world.flow.identities == ["+1"]
    message = await world.asked("remove welcome +1")
    await world.shows(message, "*Applied*", "2 of 2 requests used in the last 24 h")
    message = await world.asked("add welcome +2 for 2h")
    assert message.buttons == ["Approve", "Deny", "Cancel"]


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("add welcome +1", OTTO),
        ("add welcome +1 for 5h", OTTO),
        ("add welcome +1 for 2h", ADA),
        ("add survey +15559999 for 2h", OTTO),
    ],
)
async def test_anything_else_asks(world, text, by):
    assert (await world.asked(text, by)).buttons == ["Approve", "Deny", "Cancel"]


async def test_addition_that_would_shorten_permanent_access_asks(sqlite_url):
    policies = json.dumps({"welcome": {"auto": AUTO}})
    async with running_world(sqlite_url, flow_policies=policies) as world:
        world.flow.identities[:] = ["+1"]
        for text in ("add welcome +1 for 2h", "remove welcome +1"):
            assert (await world.asked(text)).buttons == ["Approve", "Deny", "Cancel"]


async def test_the_rule_counts_the_last_24_hours(sqlite_url, clock):
    """A new day in anybody's time zone doesn't start the count again."""
    rule = FlowPolicy(auto=AutomaticRule((FAKE_OTTO,), 14_400, 1))
    database = Database(sqlite_url, clock)
    world = World(database, clock, policy=default_policy(flow_policies={"*": rule}))
    states = []
    for number in range(3):
        states.append((await world.ask(f"add welcome +{number} for 2h")).state)
        clock.advance(12 * 3600 + 1)
    assert states == [State.APPLYING, State.PENDING, State.APPLYING]
    await database.close()


async def test_the_rule_counts_a_failed_request_that_gave_somebody_access(sqlite_url, clock):
    rule = FlowPolicy(auto=AutomaticRule((FAKE_OTTO,), 14_400, 1))
    database = Database(sqlite_url, clock)
    world = World(database, clock, policy=default_policy(flow_policies={"*": rule}))
    world.service.store_without("+2")
    request = await world.ask("add welcome +1 +2 for 2h")
    await world.look()
    world.service.answers = list
    assert (await world.stored(request)).state is State.FAILED
    assert world.service.lists[WELCOME] == ["+1"]
    assert (await world.ask("add welcome +3 for 2h")).state is State.PENDING
    await database.close()


@pytest.fixture
def unlocked_audit(monkeypatch):
    """Turn off the audit log, because its lock would hide a missing lock on the limits."""

    async def append(*_):
        """Do nothing."""

    monkeypatch.setattr(audit, "append", append)


@pytest.mark.postgres
@pytest.mark.usefixtures("unlocked_audit")
async def test_requests_that_wait_are_counted_over_all_processes(postgres_url, clock, monkeypatch):
    monkeypatch.setattr(asking, "MOST_PENDING", 3)
    databases = [Database(postgres_url, clock) for _ in range(3)]
    worlds = [World(database, clock, owner=str(database)) for database in databases]
    person = await worlds[0].person(FAKE_OTTO)
    asks = [
        asking.ask(worlds[number % 3], person, parse_testusers(f"add welcome +{number}"))
        for number in range(9)
    ]
    asked = await asyncio.gather(*asks, return_exceptions=True)
    assert sum(isinstance(item, Conflict) for item in asked) == 6
    for one in databases:
        await one.close()


@pytest.mark.postgres
@pytest.mark.usefixtures("unlocked_audit")
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
