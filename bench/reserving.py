"""`python -m bench.reserving DATABASE_URL`: one process that reserves calls, as told line by line.

`reserve N` makes N granted calls in a row, `write N` as many transactions that write one row; the
answer is the seconds that each took, in JSON. An empty line ends it.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

from sqlalchemy import Column, Integer, MetaData, Table

from bot.ops.clock import SystemClock
from bot.organizations.rules import OrganizationKey
from bot.quotas.guard import Guard
from bot.quotas.incidents import Incidents
from bot.quotas.rules.plans import Plan
from bot.quotas.rules.quota import Terms
from bot.services.calls import CallCause
from bot.store.engine import Database
from bot.tasks import Tasks

KEY = OrganizationKey("com", "1")
CAUSE = CallCause("list", "U0OPERATOR")
TERMS = Terms(lambda _key: Plan.ENTERPRISE, timeout_seconds=10.0)
BARE = Table(
    "bench_bare", MetaData(), Column("id", Integer, primary_key=True), Column("n", Integer)
)


class Worker:
    """What one process of the bot does to its database."""

    def __init__(self, url: str) -> None:
        clock = SystemClock()
        self.database = Database(url, clock)
        self._guard = Guard(self.database, clock, TERMS, Incidents(TERMS), Tasks())

    async def reserve(self) -> None:
        """A call that is granted, answered and over."""
        async with self._guard.call(KEY, CAUSE) as grant:
            await grant.responded()

    async def write(self) -> None:
        """The least that any database-backed limiter has to do once."""
        async with self.database.transaction() as tx:
            await tx.connection.execute(BARE.insert().values(n=1))

    async def times(self, word: str, count: int) -> list[float]:
        """Do it so often, one after the other; return the seconds of each."""
        work: Callable[[], Awaitable[None]] = {"reserve": self.reserve, "write": self.write}[word]
        took = []
        for _ in range(count):
            began = time.perf_counter()
            await work()
            took.append(time.perf_counter() - began)
        return took


async def main(url: str) -> None:
    """Obey until there is nothing more to read."""
    worker = Worker(url)
    try:
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            word, count = line.split()
            print(json.dumps(await worker.times(word, int(count))), flush=True)
    finally:
        await worker.database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
