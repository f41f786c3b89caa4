"""The gateway against a bare aiohttp reverse proxy: real processes, PostgreSQL, the same service.

Calls go to many organizations in turn, as one has 80 a minute. What the gateway adds is told in
milliseconds beside the bound that it is held to, as a proxy that does nothing has no time of its
own to compare with.
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

from bench.figures import NO_AIM, Aim, Figure
from bench.peer_proxy import BIG
from bench.processes import Running, running, surroundings
from sandbox.ports import free_port
from tests.support.postgres import own_database, server_url

PEER = "bare aiohttp proxy"
BOUND = "the bound"
TOKEN = "bench-gateway-token"  # noqa: S105 - of this measurement alone
ORGANIZATIONS = 500
ROUNDS = 3
CALLS = 200
CALLS_AT_ONCE, AT_ONCE = 600, 32
BIG_CALLS, BIG_AT_ONCE = 16, 8
P50_MS, P99_MS = 3.0, 15.0
# A process holds on to some memory for each of eight streams, and not ten mebibytes for each.
MEMORY_MIB = 32.0


@dataclass(frozen=True)
class Way:
    """One way to the service: `root` stands before the path."""

    root: str
    process: Running
    headers: dict[str, str]


@dataclass(frozen=True)
class Round:
    """Milliseconds of a call, and how many a second where many are made at once."""

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
            # Every organization has a row from now on, and connections are open.
            await _play(session, way, ORGANIZATIONS, AT_ONCE, numbers)
        rounds: dict[str, list[Round]] = {ours.root: [], theirs.root: []}
        for number in range(ROUNDS):
            for way in (ours, theirs) if number % 2 else (theirs, ours):
                rounds[way.root].append(await _round(session, way, numbers))
        figures = _figures(rounds[ours.root], rounds[theirs.root])
        return [*figures, await _streaming(session, ours, theirs, numbers)]


def _figures(ours: list[Round], theirs: list[Round]) -> list[Figure]:
    pairs = list(zip(ours, theirs, strict=True))
    within = Aim(most=1)
    added = {
        "p50": ([a.p50 - b.p50 for a, b in pairs], P50_MS),
        "p99": ([a.p99 - b.p99 for a, b in pairs], P99_MS),
    }
    told = [
        Figure(f"one call: {what}", "ms", PEER, _all(ours, what), _all(theirs, what), NO_AIM)
        for what in added
    ]
    held = [
        Figure(f"one call: added to the proxy's {what}", "ms", BOUND, more, [most] * ROUNDS, within)
        for what, (more, most) in added.items()
    ]
    calls = (_all(ours, "a_second"), _all(theirs, "a_second"))
    return [*told, *held, Figure(f"{AT_ONCE} at a time: calls", "/s", PEER, *calls, NO_AIM)]


def _all(rounds: list[Round], what: str) -> list[float]:
    return [getattr(one, what) for one in rounds]


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
    path: str = "items",
) -> tuple[list[float], float]:
    """Make calls, so many at a time; return the seconds of each, and of all."""
    due, took = iter(range(calls)), []

    async def send() -> None:
        for _ in due:
            url = f"{way.root}/{path}?organization_id={next(numbers) % ORGANIZATIONS}"
            began = time.perf_counter()
            async with session.get(url, headers=way.headers) as answer:
                size = 0
                async for piece in answer.content.iter_any():
                    size += len(piece)
            took.append(time.perf_counter() - began)
            if answer.status != 200 or (path == "big" and size != BIG):
                raise RuntimeError(f"{way.root} answered {answer.status}, {size} bytes")

    began = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(at_once)))
    return took, time.perf_counter() - began


async def _streaming(
    session: aiohttp.ClientSession, ours: Way, theirs: Way, numbers: "count[int]"
) -> Figure:
    """How much a process grows while several answers of 10 MiB go through it."""
    grown: dict[str, list[float]] = {ours.root: [], theirs.root: []}
    for way in (ours, theirs):
        for _ in range(ROUNDS):
            before = way.process.resident_mib()
            await _play(session, way, BIG_CALLS, BIG_AT_ONCE, numbers, "big")
            grown[way.root].append(max(0.0, way.process.resident_mib() - before))
    what = f"{BIG_CALLS} x 10 MiB, {BIG_AT_ONCE} at a time: memory more"
    bound = [MEMORY_MIB] * ROUNDS
    return Figure(what, "MiB", BOUND, grown[ours.root], bound, Aim(most=1))


@asynccontextmanager
async def _ways() -> AsyncIterator[tuple[Way, Way]]:
    """The bot with its gateway, and the proxy, both before the same service."""
    port = free_port()
    client = {"token_sha256": hashlib.sha256(TOKEN.encode()).hexdigest(), "organizations": "*"}
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
            around.bot(database, **settings) as bot,
        ):
            token = {"Authorization": f"Bearer {TOKEN}"}
            peer = (await proxy.line())["url"]
            yield (
                Way(f"http://127.0.0.1:{port}/eu", bot.running, token),
                Way(f"{peer}/inventory/v1", proxy, {}),
            )
