"""Automatic approval: what a policy's rule lets people do without anybody's click."""

import asyncio
import json
import os
import signal
from datetime import UTC, datetime

import pytest

from bot.approvals.rules import AutomaticRule, FlowPolicy, State
from bot.store.engine import Database
from bot.testusers import asking
from bot.testusers.parse.command import parse_testusers
from tests.support.fleet import running_fleet
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
    assert "Approved by a rule" in await ask(world, "add welcome +1 for 2h")
    message = await applied(world, 0)
    assert "Rule `auto` of FLOW_POLICIES (this flow): at most 4 h, 1 of 2 used today" in (
        message.all_text
    )
    assert message.buttons == ["Undo"]
    assert "<@" not in message.all_text
    assert world.services.state.flows[WELCOME].identities == ["+1"]
    await ask(world, "remove welcome +1")
    assert "2 of 2 used today" in (await applied(world, 1)).all_text
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


async def test_day_is_counted_over_all_processes(database_url, clock):
    rule = FlowPolicy(auto=AutomaticRule((FAKE_OTTO,), 14_400, 5))
    policy = default_policy(flow_policies={"*": rule})
    databases = [Database(database_url, clock) for _ in range(3)]
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


def zone_where_it_is_noon() -> str:
    """A time zone in which the day does not end soon; the sign is that of POSIX."""
    return f"Etc/GMT{datetime.now(UTC).hour - 12:+d}"


@pytest.mark.slow
@pytest.mark.postgres
async def test_day_is_counted_while_processes_are_killed(postgres_url):
    policies = json.dumps({"welcome": {"auto": {**AUTO, "a_day": 5}}})
    launcher = ("-m", "tests.support.launch", "--short-leases")
    async with running_fleet(
        postgres_url, 0, commands_per_minute="0", flow_policies=policies
    ) as fleet:
        fleet.slack.workspace.people[OTTO].tz = zone_where_it_is_noon()
        flow = fleet.services.state.flows[WELCOME]
        flow.identities.clear()
        doomed = await asyncio.gather(
            *(fleet.add((*launcher, "--die-at", str(step))) for step in (2, 5, 9))
        )

        async def ask(number: int) -> None:
            text = f"add welcome +1555{number} for 2h"
            await fleet.slack.command(OTTO, "C0GENERAL", "/testusers", text)

        for process in doomed:
            os.kill(process.pid, signal.SIGUSR1)
        await asyncio.gather(*(ask(number) for number in range(6)))
        assert [await process.ended() for process in doomed] == [-signal.SIGKILL] * 3
        await fleet.add(launcher)
        # What the dead ones were asked may be lost; these are not.
        await asyncio.gather(*(ask(number) for number in range(6, 12)))
        cards = fleet.slack.workspace.messages
        await fleet.slack.until(lambda: len(flow.identities) >= 5, timeout=60)
        # A dead process's card is posted by another one, when its lease has ended.
        await fleet.slack.until(
            lambda: states(cards("C0APPROVALS")).count("applied") >= len(flow.identities),
            timeout=60,
        )
        await fleet.slack.until(lambda: "asks" in states(cards("C0APPROVALS")), timeout=60)
        await fleet.slack.until(lambda: all(states(cards("C0APPROVALS"))), timeout=60)
        assert len(flow.identities) == states(cards("C0APPROVALS")).count("applied") == 5
        assert fleet.tracebacks == []


def states(messages) -> list[str]:
    """What each card says, "" while its change is being applied."""
    return [
        "asks" if "Approve" in card.buttons else "applied" if "*Applied*" in card.all_text else ""
        for card in messages
    ]
