"""Approve to applied: from the click to the end of the POST, against a bare GET and POST.

The bot is a process of its own; Slack and the flow service are stood in for here. Between the click
and the GET the bot verifies the signature, stores the click, checks who clicked, and writes the
transition with its audit entry; between GET and POST it writes down what it is about to send. A
bare script does none of that, so the ratio is told and has no aim; how many calls are made has.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import asyncpg

from bench.figures import NO_AIM, Aim, Figure
from bench.processes import Surroundings
from sandbox.services.running import RunningServices, running_services
from sandbox.services.state import FLOW_ACCOUNT_SID, FLOW_AUTH_TOKEN, WELCOME_FLOW
from sandbox.slack.messages import Message
from sandbox.slack.server import RunningSlack, running_slack
from tests.support.postgres import own_database, server_url
from tests.support.world import environment_for

ROUNDS = 7
AT_ONCE = 20
APPROVALS = "C0APPROVALS"
# One GET and one POST for all that wait; what is clicked while they run has a pair of its own.
FEW_CALLS = Aim(most=4)


@dataclass(frozen=True)
class Stage:
    """What a click goes through."""

    slack: RunningSlack
    services: RunningServices
    session: aiohttp.ClientSession

    async def card(self, identity: str) -> Message:
        """Ask for a test user and return the card."""
        cards = self.slack.workspace.messages(APPROVALS)
        text = f"add welcome {identity}"
        delivery = await self.slack.command("U0OPERATOR", "C0GENERAL", "/testusers", text)
        assert delivery.status == 200, delivery
        known = {one.ts for one in cards}

        def new() -> Message | None:
            found = self.slack.workspace.messages(APPROVALS)
            return next((one for one in found if one.ts not in known and not one.thread_ts), None)

        return await self.slack.until(new, 15)

    async def approve(self, card: Message) -> None:
        """Click, as an approver."""
        delivery = await self.slack.click("U0APPROVER", card, "Approve")
        assert delivery.status == 200, delivery

    async def until_there(self, *identities: str) -> None:
        """Return when the flow service has stored them all."""
        flow = self.services.state.flows[WELCOME_FLOW]
        await self.services.state.until(lambda: set(identities) <= set(flow.identities), 20)

    async def bare(self, identity: str) -> None:
        """Do what a script of five lines would do."""
        url = f"{self.services.url}/v2/Flows/{WELCOME_FLOW}/TestUsers"
        async with self.session.get(url) as got:
            there = (await got.json())["test_users"]
        form = aiohttp.FormData([("testUsers", one) for one in [*there, identity]])
        async with self.session.post(url, data=form) as got:
            assert identity in (await got.json())["test_users"]


async def measure() -> list[Figure]:
    """Return the figures on both databases."""
    with tempfile.TemporaryDirectory() as folder:
        figures = await _measure_on("SQLite", f"sqlite:///{folder}/gatehouse.db")
    try:
        async with own_database(server_url()) as url:
            figures += await _measure_on("PostgreSQL", url)
    except (OSError, asyncpg.PostgresError) as error:
        print(f"PostgreSQL is left out: {error}")
    return figures


async def _measure_on(name: str, database_url: str) -> list[Figure]:
    async with _stage(database_url) as stage:
        await _one(stage, "+warm")
        ours, theirs = [], []
        for number in range(ROUNDS):
            theirs.append(await _timed_bare(stage, f"+2{number}"))
            ours.append(await _one(stage, f"+1{number}"))
        calls = [float(await _at_once(stage, f"+9{number}")) for number in range(3)]
    return [
        Figure(
            f"{name}: click to the end of the POST", "ms", "bare GET+POST", ours, theirs, NO_AIM
        ),
        Figure(
            f"{name}: calls for {AT_ONCE} approvals at once",
            "",
            "one GET, one POST",
            calls,
            [2.0] * len(calls),
            FEW_CALLS,
        ),
    ]


@asynccontextmanager
async def _stage(database_url: str) -> AsyncIterator[Stage]:
    auth = aiohttp.BasicAuth(FLOW_ACCOUNT_SID, FLOW_AUTH_TOKEN)
    async with (
        running_services() as services,
        running_slack() as slack,
        aiohttp.ClientSession(auth=auth) as session,
    ):
        environment = environment_for(slack, services, database_url)
        around = Surroundings(environment, slack.signing_secret, "", "", services.url)
        async with around.bot(database_url, commands_per_minute="0") as bot:
            slack.bot_url = bot.url
            yield Stage(slack, services, session)


async def _one(stage: Stage, identity: str) -> float:
    """Return the milliseconds of one approval."""
    card = await stage.card(identity)
    began = time.perf_counter()
    click = asyncio.create_task(stage.approve(card))
    await stage.until_there(identity)
    took = (time.perf_counter() - began) * 1e3
    await click
    return took


async def _timed_bare(stage: Stage, identity: str) -> float:
    began = time.perf_counter()
    await stage.bare(identity)
    return (time.perf_counter() - began) * 1e3


async def _at_once(stage: Stage, prefix: str) -> int:
    """Approve many requests of one flow at once; return how many calls that takes."""
    identities = [f"{prefix}{number:02}" for number in range(AT_ONCE)]
    cards = [await stage.card(identity) for identity in identities]
    before = len(stage.services.state.calls)
    await asyncio.gather(*(stage.approve(card) for card in cards))
    await stage.until_there(*identities)
    return len(stage.services.state.calls) - before
