"""Reservation cost: a granted call against a bare transaction that writes one row.

On SQLite and PostgreSQL, by one process and by four at once on the same organization (PostgreSQL:
SQLite serves one), with no old calls in the ledger and with 100,000. `limits` and aiolimiter have
no SQL store; pyrate-limiter has one for SQLite, in a file that is not synced to the disk.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

import asyncpg
from pyrate_limiter import Duration, Limiter, Rate, SQLiteBucket
from pyrate_limiter.limiter import SingleBucketFactory
from sqlalchemy import insert, text, update

from bench.figures import Aim, Figure
from bench.reserving import BARE, KEY
from bot.ops.clock import SystemClock
from bot.store import accounts
from bot.store.engine import Database
from bot.store.migrations import migrate
from bot.store.tables import quota_calls
from tests.support.postgres import own_database, server_url

# Four processes that wait for each other take very different times: the median of many says more.
ROUNDS = 21
# Fewer than a minute allows one organization.
CALLS = 40
OLD_CALLS = 100_000
DAY_SECONDS = 86_400.0
THREE_WRITES = Aim(most=3)
NO_MORE = Aim(most=1.25)


async def measure() -> list[Figure]:
    """Return the figures of both databases."""
    with tempfile.TemporaryDirectory() as folder:
        young, old = (f"sqlite:///{folder}/{name}.db" for name in ("young", "old"))
        figures = await _compare("SQLite", (young, old), (1,))
        figures.append(await _pyrate(young, Path(folder)))
    try:
        async with own_database(server_url()) as young, own_database(server_url()) as old:
            figures += await _compare("PostgreSQL", (young, old), (1, 4))
    except (OSError, asyncpg.PostgresError) as error:
        print(f"PostgreSQL is left out: {error}")
    return figures


async def _compare(name: str, urls: tuple[str, str], sizes: Iterable[int]) -> list[Figure]:
    """Measure on two databases in turn: one with an empty ledger, one with a full one."""
    young, old = [Database(url, SystemClock()) for url in urls]
    for database in (young, old):
        await _prepare(database)
    await _fill(old)
    figures: list[Figure] = []
    for size in sizes:
        took = await _rounds((young, old), urls, size)
        figures += _figures(f"{name}, {size} process{'es' if size > 1 else ''}", took)
    await young.close()
    await old.close()
    return figures


async def _prepare(database: Database) -> None:
    await migrate(database)
    async with database.transaction() as tx:
        await tx.connection.run_sync(BARE.metadata.create_all)


@dataclass
class Took:
    """Milliseconds, one value a round."""

    bare: list[float] = field(default_factory=list)
    young: list[float] = field(default_factory=list)
    old: list[float] = field(default_factory=list)


def _figures(where: str, took: Took) -> list[Figure]:
    write = "a bare write"
    return [
        Figure(f"{where}: reserve and release", "ms", write, took.young, took.bare, THREE_WRITES),
        Figure(f"{where}: {OLD_CALLS:,} old calls", "ms", "none", took.old, took.young, NO_MORE),
    ]


async def _rounds(databases: tuple[Database, Database], urls: tuple[str, str], size: int) -> Took:
    young, old = databases
    took = Took()
    async with AsyncExitStack() as stack:
        workers = [
            [await stack.enter_async_context(_worker(url)) for _ in range(size)] for url in urls
        ]
        for number in range(ROUNDS + 1):
            await _age(young)
            await _age(old)
            one = await _round(workers, CALLS // size, swapped=bool(number % 2))
            # The first is for warming up.
            for name, values in vars(one).items() if number else ():
                getattr(took, name).extend(values)
    return took


async def _round(
    workers: list[list[asyncio.subprocess.Process]], count: int, *, swapped: bool
) -> Took:
    one = Took([await _all(workers[0], "write", count)])
    for which in (1, 0) if swapped else (0, 1):
        (one.old if which else one.young).append(await _all(workers[which], "reserve", count))
    return one


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


async def _fill(database: Database) -> None:
    """Write old calls of the organization: of a month, up to 26 hours ago."""
    async with database.transaction() as tx:
        organization = await accounts.lock(tx, KEY)
        newest, step = time.time() - 26 * 3600, 29 * DAY_SECONDS / OLD_CALLS
        rows = [
            {
                "organization": organization,
                "number": number,
                "reserved_at": newest - (OLD_CALLS - number) * step,
                "slot_free_at": newest - (OLD_CALLS - number) * step + 61,
                "permit_until": newest - (OLD_CALLS - number) * step + 1,
                "kind": "list",
                "slack_user_id": "U0OPERATOR",
            }
            for number in range(1, OLD_CALLS + 1)
        ]
        await tx.connection.execute(insert(quota_calls), rows)
    async with database.transaction() as tx:
        await tx.connection.execute(text("ANALYZE"))


async def _pyrate(url: str, folder: Path) -> Figure:
    """Compare with the one peer that has such a store."""
    ours, theirs = [], []
    database = Database(url, SystemClock())
    rates = [Rate(10_000, Duration.MINUTE)]
    bucket = SQLiteBucket.init_from_file(rates, db_path=str(folder / "pyrate.db"))
    limiter = Limiter(SingleBucketFactory(bucket, schedule_leak=False))
    async with _worker(url) as worker:
        for _ in range(ROUNDS):
            await _age(database)
            theirs.append(_quartile([_acquire(limiter) for _ in range(CALLS)]))
            ours.append(await _all([worker], "reserve", CALLS))
    limiter.close()
    await database.close()
    return Figure("SQLite, 1 process", "ms", "pyrate-limiter, its SQLite", ours, theirs)


def _acquire(limiter: Limiter) -> float:
    began = time.perf_counter()
    limiter.try_acquire("organization")
    return time.perf_counter() - began
