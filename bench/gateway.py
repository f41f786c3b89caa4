"""Compares the gateway with a bare aiohttp reverse proxy: real processes and PostgreSQL.

Calls go to many organizations in turn, because each allows only 80 calls a minute.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from statistics import median, quantiles

import aiohttp

from bench.figures import Figure
from bench.processes import running, surroundings
from sandbox.ports import free_port
from tests.support.postgres import own_database, server_url

PEER = "bare aiohttp proxy"
TOKEN = "bench-gateway-token"  # noqa: S105 - of this measurement alone
ORGANIZATIONS, FIRST_ID = 500, 400_000_000
ROUNDS = 3
CALLS = 200
CALLS_AT_ONCE, AT_ONCE = 600, 32


@dataclass(frozen=True)
class Way:
    """A way to the service: `root` is the address before the path."""

    root: str
    headers: dict[str, str]


@dataclass(frozen=True)
class Round:
    """The milliseconds of a single call, and the calls per second with many at once."""

    p50: float
    p99: float
    a_second: float


async def measure() -> list[Figure]:
    """Return the figures."""
    numbers = count()
    async with (
        _ways() as (ours, theirs),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        for way in (ours, theirs):
            # Now every organization has a row, and the connections are open.
            await _play(session, way, ORGANIZATIONS, AT_ONCE, numbers)
        rounds: dict[str, list[Round]] = {ours.root: [], theirs.root: []}
        for number in range(ROUNDS):
            for way in (ours, theirs) if number % 2 else (theirs, ours):
                rounds[way.root].append(await _round(session, way, numbers))
        return _figures(rounds[ours.root], rounds[theirs.root])


def _figures(ours: list[Round], theirs: list[Round]) -> list[Figure]:
    units = {"p50": "ms", "p99": "ms", "a_second": "/s"}
    return [
        Figure(f"call: {what}", unit, PEER, _all(ours, what), _all(theirs, what))
        for what, unit in units.items()
    ]


def _all(rounds: list[Round], what: str) -> list[float]:
    return [getattr(item, what) for item in rounds]


async def _round(session: aiohttp.ClientSession, way: Way, numbers: "count[int]") -> Round:
    took, _ = await _play(session, way, CALLS, 1, numbers)
    _, seconds = await _play(session, way, CALLS_AT_ONCE, AT_ONCE, numbers)
    return Round(median(took) * 1e3, quantiles(took, n=100)[98] * 1e3, CALLS_AT_ONCE / seconds)


async def _play(
    session: aiohttp.ClientSession,
    way: Way,
    calls: int,
    at_once: int,
    numbers: "count[int]",
) -> tuple[list[float], float]:
    """Make calls, `at_once` at a time. Return the seconds of each call and the total time."""
    due, took = iter(range(calls)), []

    async def send() -> None:
        for _ in due:
            url = f"{way.root}/items?organization_id={FIRST_ID + next(numbers) % ORGANIZATIONS}"
            began = time.perf_counter()
            async with session.get(url, headers=way.headers) as answer:
                await answer.read()
            took.append(time.perf_counter() - began)
            if answer.status != 200:
                raise RuntimeError(f"{way.root} answered {answer.status}")

    began = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(at_once)))
    return took, time.perf_counter() - began


@asynccontextmanager
async def _ways() -> AsyncIterator[tuple[Way, Way]]:
    """Yield the ways through the bot's gateway and through the proxy to the same service."""
    port = free_port()
    reached = [f"eu/{FIRST_ID + number}" for number in range(ORGANIZATIONS)]
    client = {
        "token_sha256": hashlib.sha256(TOKEN.encode()).hexdigest(),
        "organizations": reached,
    }
    async with (
        own_database(server_url(), is_durable=False) as database,
        surroundings() as around,
        running("-m", "bench.peer_proxy") as service,
    ):
        url = (await service.line())["url"]
        center = {"authtoken": "bench-inventory-token", "base_url": f"{url}/inventory/v1"}
        settings = {
            "gateway_port": str(port),
            "gateway_clients": json.dumps({"bench": client}),
            "inventory_data_centers": json.dumps({"eu": center}),
            "inventory_default_plan": "enterprise",
            "inventory_watch": "off",
            "log_level": "WARNING",
        }
        async with (
            running("-m", "bench.peer_proxy", url) as proxy,
            around.bot(database, **settings),
        ):
            token = {"Authorization": f"Bearer {TOKEN}"}
            peer = (await proxy.line())["url"]
            yield (
                Way(f"http://127.0.0.1:{port}/eu", token),
                Way(f"{peer}/inventory/v1", {}),
            )
