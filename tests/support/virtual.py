"""Moves a test's clock forward whenever all tasks are idle. The database is real."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.ops.clock import Clock
from bot.store.engine import Transaction
from tests.support.clock import FakeClock
from tests.support.databases import ClockedDatabase
from tests.support.steady import SteadyLoop

# If no task is asleep either, look again after this time.
ROUND_SECONDS = 0.001


class CountedDatabase(ClockedDatabase):
    """Counts the transactions in progress, and records the highest count so far."""

    under_way = 0
    most_under_way = 0

    def __init__(self, url: str, clock: Clock, **options: int) -> None:
        super().__init__(url, clock, **options)
        self.ended = asyncio.Event()

    @asynccontextmanager
    async def _counted(self, opened) -> AsyncIterator[Transaction]:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            async with opened as tx:
                yield tx
        finally:
            self.under_way -= 1
            self.ended.set()

    def transaction(self):
        return self._counted(super().transaction())

    def autocommit(self):
        return self._counted(super().autocommit())

    def read_only(self, **options):
        return self._counted(super().read_only(**options))


@asynccontextmanager
async def virtual_time(clock: FakeClock, database: CountedDatabase) -> AsyncIterator[None]:
    """Until the block ends, make the clock jump to the next timer whenever all tasks are idle."""
    driver = asyncio.create_task(_drive(clock, database))
    try:
        yield
    finally:
        driver.cancel()
        await asyncio.gather(driver, return_exceptions=True)


async def _drive(clock: FakeClock, database: CountedDatabase) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SteadyLoop)
    while True:
        await asyncio.sleep(0)
        if database.under_way:
            database.ended.clear()
            await database.ended.wait()
        elif not loop.is_busy and not clock.jump():
            await asyncio.sleep(ROUND_SECONDS)
