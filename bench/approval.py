"""An approval on PostgreSQL, with a round trip of 0, 2 and 5 ms to the database.

The bot is a separate process; stand-ins take the place of Slack and the services.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import psycopg

from bench.figures import Figure
from bench.processes import running, until_ready
from sandbox.ports import free_port
from sandbox.services.running import running_services
from sandbox.services.state import WELCOME_FLOW, ServicesState
from sandbox.slack.server import RunningSlack, running_slack
from tests.support.postgres import own_database, server_url
from tests.support.world import ADA, OTTO, environment_for

ROUND_TRIPS = (0, 2, 5)
ROUNDS = 12
ADD = "add → answer"
POST = "click → POST"
APPLIED = "click → Applied"
Times = dict[str, list[float]]


async def measure() -> list[Figure]:
    """Return the milliseconds that each step takes, compared with those at 0 ms."""
    took = {milliseconds: await _play(milliseconds) for milliseconds in ROUND_TRIPS}
    return [
        Figure(
            f"{what}, {milliseconds} ms to the database",
            "ms",
            "0 ms to the database",
            took[milliseconds][what],
            took[0][what],
        )
        for what in (ADD, POST, APPLIED)
        for milliseconds in ROUND_TRIPS
    ]


async def _play(milliseconds: float) -> Times:
    services = ServicesState()
    async with (
        own_database(server_url()) as url,
        _delayed(url, milliseconds) as delayed_url,
        running_services(services) as service,
        running_slack() as slack,
    ):
        port = free_port()
        environment = {
            **environment_for(slack, service, delayed_url),
            "PORT": str(port),
            "COMMANDS_PER_MINUTE": "0",
            "INVENTORY_WATCH": "off",
        }
        async with running("-m", "bot", env=environment) as process:
            slack.bot_url = f"http://127.0.0.1:{port}"
            await until_ready(process, slack.bot_url)
            took: Times = {ADD: [], POST: [], APPLIED: []}
            for number in range(-3, ROUNDS):
                times = await _approve(slack, services, f"+155501{number + 3:02}")
                # The first three warm up connections and caches.
                for what, seconds in times.items() if number >= 0 else ():
                    took[what].append(seconds * 1000)
            return took


async def _approve(slack: RunningSlack, services: ServicesState, identity: str) -> dict[str, float]:
    workspace = slack.workspace
    answers = len(workspace.ephemerals(OTTO))
    cards = len(workspace.messages("C0APPROVALS"))
    began = time.perf_counter()
    await slack.command(OTTO, "C0GENERAL", "/testusers", f"add welcome {identity}")
    await slack.until(lambda: len(workspace.ephemerals(OTTO)) > answers)
    answered = time.perf_counter()
    card = await slack.until(lambda: workspace.messages("C0APPROVALS")[cards])
    flow = services.flows[WELCOME_FLOW]
    clicked = time.perf_counter()
    await slack.click(ADA, card, "Approve")
    await services.until(lambda: identity in flow.identities)
    posted = time.perf_counter()
    await slack.until(lambda: "*Applied*" in card.all_text)
    applied = time.perf_counter()
    return {ADD: answered - began, POST: posted - clicked, APPLIED: applied - clicked}


@asynccontextmanager
async def _delayed(url: str, milliseconds: float) -> AsyncIterator[str]:
    """Yield the address of a proxy, and print the round trip through it."""
    target = urlsplit(url)
    arguments = (str(target.hostname), str(target.port or 5432), str(milliseconds))
    async with running("-m", "bench.delay", *arguments) as proxy:
        port = (await proxy.line())["port"]
        user = target.username or "postgres"
        delayed_url = f"postgresql://{user}@127.0.0.1:{port}{target.path}"
        connection = await psycopg.AsyncConnection.connect(delayed_url, autocommit=True)
        began = time.perf_counter()
        for _ in range(50):
            await connection.execute("SELECT 1")
        round_trip = (time.perf_counter() - began) / 50
        await connection.close()
        print(f"SELECT 1 takes {round_trip * 1000:.1f} ms with {milliseconds} ms added")
        yield delayed_url
