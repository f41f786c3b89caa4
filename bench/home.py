"""The Home tab: many who open it at once, and how soon it is true after a decision elsewhere.

Two processes share a PostgreSQL. What people wait for is told beside the bound that it is held to,
as a bare Bolt app has no Home tab to compare with.
"""

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from statistics import quantiles

from bench.figures import NO_AIM, Aim, Figure
from bench.processes import Server, Surroundings, surroundings
from bench.standins import more_people
from bench.wire import Connection, signed_json
from sandbox.people import Person
from sandbox.services.running import running_services
from sandbox.slack.messages import Message
from sandbox.slack.server import RunningSlack, running_slack
from sandbox.slack.workspace import Workspace
from tests.support.postgres import own_database, server_url
from tests.support.world import ROLES, environment_for

PEER = "the bound"
OPENS, IN_SECONDS, CONNECTIONS = 1000, 5.0, 64
OPEN_ROUNDS, ROUNDS = 3, 5
WATCHING = 50
ACK_MS, TRUE_SECONDS, BETWEEN_SECONDS = 100.0, 3.0, 3.0
# A decision comes so long after everybody's tab was published last: the tabs have to wait.
PAUSE_SECONDS = 1.0
APPROVALS = "C0APPROVALS"
WITHIN, AT_LEAST = Aim(most=1), Aim(least=1)


@dataclass(frozen=True)
class Stage:
    """Two processes of the bot, and people who have the tab open."""

    slack: RunningSlack
    bots: tuple[Server, Server]
    people: list[Person]


async def measure() -> list[Figure]:
    """Return the figures."""
    return [*await _opening(), *await _watching()]


async def _opening() -> list[Figure]:
    """Everybody opens the tab at an even pace; what counts is the acknowledgement."""
    ours, theirs = [], []
    async with (
        own_database(server_url()) as url,
        surroundings(people=OPENS) as around,
        around.bot(url, commands_per_minute="0", inventory_watch="off") as bot,
        around.program("bench.peer_bolt", "at-once") as peer,
    ):
        for _ in range(OPEN_ROUNDS):
            theirs.append(quantiles(await _opens(around, peer), n=100)[98] * 1e3)
            ours.append(quantiles(await _opens(around, bot), n=100)[98] * 1e3)
            # What is published goes on for a while.
            await asyncio.sleep(IN_SECONDS)
    bounds, what = [ACK_MS] * OPEN_ROUNDS, f"{OPENS} opens in {IN_SECONDS:.0f} s"
    return [
        Figure(f"{what}: acknowledged, p99", "ms", PEER, ours, bounds, WITHIN),
        # Which stores and publishes nothing: what the machine itself does to both.
        Figure(f"{what}: acknowledged, p99", "ms", "bare Bolt at once", ours, theirs, NO_AIM),
    ]


async def _opens(around: Surroundings, bot: Server) -> list[float]:
    """Return the seconds from when each was due to be opened until it was acknowledged."""
    due, took = iter(range(OPENS)), []
    connections = [await Connection.open(bot.url) for _ in range(CONNECTIONS)]
    began = time.perf_counter()

    async def send(connection: Connection) -> None:
        for number in due:
            at = began + number * IN_SECONDS / OPENS
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            event = {"type": "app_home_opened", "user": f"U0LOAD{number}", "tab": "home"}
            body = {"type": "event_callback", "team_id": around.team, "event": event}
            # As Slack gives them: no two deliveries have the same.
            body["event_id"] = f"Ev{uuid.uuid4().hex}"
            status, _ = await connection.send(signed_json(bot.url, around.signing_secret, body))
            took.append(time.perf_counter() - at)
            assert status == 200, status

    await asyncio.gather(*map(send, connections))
    for one in connections:
        await one.close()
    return took


async def _watching() -> list[Figure]:
    async with _stage() as stage:
        for person in stage.people:
            delivery = await stage.slack.open_home(person.id)
            assert delivery.status == 200, delivery
        await _until_shown(stage, "", is_there=True)
        took = [await _decision(stage, f"+1555{number:04}") for number in range(ROUNDS)]
        gaps = _gaps(stage)
    bounds = ([TRUE_SECONDS] * len(took), [BETWEEN_SECONDS] * len(gaps))
    what = f"{WATCHING} have it open, a decision elsewhere"
    return [
        Figure(f"{what}: true for all", "s", PEER, took, bounds[0], WITHIN),
        Figure(
            "least time between two publishes of a person", "s", PEER, gaps, bounds[1], AT_LEAST
        ),
    ]


@asynccontextmanager
async def _stage() -> AsyncIterator[Stage]:
    workspace = Workspace()
    people = [replace(one, role="approver") for one in more_people(WATCHING)]
    workspace.people.update({one.id: one for one in people})
    async with (
        own_database(server_url()) as url,
        running_services() as services,
        running_slack(workspace) as slack,
    ):
        roles = {**ROLES, "approver": [*ROLES["approver"], *(one.id for one in people)]}
        environment = {**environment_for(slack, services, url), "ROLES": json.dumps(roles)}
        around = Surroundings(environment, slack.signing_secret, "", "", services.url)
        settings = {"commands_per_minute": "0", "inventory_watch": "off"}
        async with around.bot(url, **settings) as first, around.bot(url, **settings) as second:
            slack.bot_url = first.url
            yield Stage(slack, (first, second), people)


async def _decision(stage: Stage, identity: str) -> float:
    """Ask in one process and approve in the other; return the seconds until every tab is true."""
    here, elsewhere = stage.bots
    stage.slack.bot_url = here.url
    cards = stage.slack.workspace.messages(APPROVALS)
    await stage.slack.command("U0OPERATOR", "C0GENERAL", "/testusers", f"add welcome {identity}")

    def new() -> list[Message]:
        return [one for one in stage.slack.workspace.messages(APPROVALS) if one not in cards]

    (card,) = await stage.slack.until(new)
    await _until_shown(stage, identity, is_there=True)
    await asyncio.sleep(PAUSE_SECONDS)
    stage.slack.bot_url = elsewhere.url
    began = time.perf_counter()
    delivery = await stage.slack.click("U0APPROVER", card, "Approve")
    assert delivery.status == 200, delivery
    await _until_shown(stage, identity, is_there=False)
    took = time.perf_counter() - began
    await asyncio.sleep(BETWEEN_SECONDS)
    return took


async def _until_shown(stage: Stage, identity: str, *, is_there: bool) -> None:
    homes = stage.slack.workspace.homes

    def shown() -> bool:
        return all(
            one.id in homes and (identity in homes[one.id].all_text) is is_there
            for one in stage.people
        )

    await stage.slack.until(shown, timeout=30)


def _gaps(stage: Stage) -> list[float]:
    """The least seconds between two publishes of each person's tab."""
    times: dict[str, list[float]] = {}
    for call in stage.slack.workspace.calls_of("views.publish"):
        if call.ok:
            times.setdefault(call.args["user_id"], []).append(call.at)
    return [min(b - a for a, b in itertools.pairwise(times[one.id])) for one in stage.people]
