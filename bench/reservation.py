"""Reservation cost: a granted call against a bare transaction that writes one row.

On SQLite and PostgreSQL, by one process and by four at once on the same organization (PostgreSQL:
SQLite serves one).
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import quantiles

from sqlalchemy import update

from bench.figures import Figure
from bench.reserving import BARE
from bot.ops.clock import SystemClock
from bot.store.engine import Database
from bot.store.migrations import migrate
from bot.store.tables import quota_calls
from tests.support.postgres import own_database, server_url

# Four processes that wait for each other take very different times: the median of many says more.
ROUNDS = 21
# Fewer than a minute allows one organization.
CALLS = 40


async def measure() -> list[Figure]:
    """Return the figures of both databases."""
    with tempfile.TemporaryDirectory() as folder:
        figures = await _compare("SQLite", f"sqlite:///{folder}/gatehouse.db", (1,))
    async with own_database(server_url()) as url:
        return [*figures, *await _compare("PostgreSQL", url, (1, 4))]


async def _compare(name: str, url: str, sizes: Iterable[int]) -> list[Figure]:
    database, figures = Database(url, SystemClock()), []
    await _prepare(database)
    for size in sizes:
        async with AsyncExitStack() as stack:
            workers = [await stack.enter_async_context(_worker(url)) for _ in range(size)]
            figures.append(await _rounds(name, database, workers))
    await database.close()
    return figures


async def _prepare(database: Database) -> None:
    await migrate(database)
    async with database.transaction() as tx:
        await tx.connection.run_sync(BARE.metadata.create_all)


async def _rounds(
    name: str, database: Database, workers: list[asyncio.subprocess.Process]
) -> Figure:
    ours, theirs = [], []
    for number in range(ROUNDS + 1):
        await _age(database)
        write = await _all(workers, "write", CALLS // len(workers))
        reserve = await _all(workers, "reserve", CALLS // len(workers))
        # The first is for warming up.
        if number:
            theirs.append(write)
            ours.append(reserve)
    what = f"{name}, {len(workers)} at once: reserve and release"
    return Figure(what, "ms", "a bare write", ours, theirs)


@asynccontextmanager
async def _worker(url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.reserving",
        url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        await process.communicate(b"\n")


async def _all(workers: list[asyncio.subprocess.Process], word: str, count: int) -> float:
    """Let every worker do it so often at the same time; return milliseconds, the lower quartile.

    Half of all times say more about what else this machine does.
    """
    took = await asyncio.gather(*(_one(worker, f"{word} {count}\n") for worker in workers))
    return _quartile([seconds for one in took for seconds in one])


def _quartile(took: list[float]) -> float:
    return quantiles(took, n=4)[0] * 1e3


async def _one(worker: asyncio.subprocess.Process, line: str) -> list[float]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(line.encode())
    await worker.stdin.drain()
    answer: list[float] = json.loads(await worker.stdout.readline())
    return answer


async def _age(database: Database) -> None:
    """Let every call so far be over for long: the minute's limit is not what is measured."""
    async with database.transaction() as tx:
        past = time.time() - 26 * 3600
        held = quota_calls.c.slot_free_at > past
        values = {"reserved_at": past, "slot_free_at": past, "permit_until": past}
        await tx.connection.execute(update(quota_calls).where(held).values(values))
