"""Moves a test's clock forward whenever all tasks are idle. The database is real."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.store.engine import Transaction
from tests.support.clock import FakeClock
from tests.support.databases import ClockedDatabase

# After this many event loop rounds without an open transaction, all tasks are asleep.
QUIET_ROUNDS = 30
ROUND_SECONDS = 0.0005


class CountedDatabase(ClockedDatabase):
    """Counts the transactions in progress, and records the highest count so far."""

    under_way = 0
    most_under_way = 0

    @asynccontextmanager
    async def _counted(self, opened) -> AsyncIterator[Transaction]:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            async with opened as tx:
                yield tx
        finally:
            self.under_way -= 1

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
    quiet = 0
    while True:
        await asyncio.sleep(0)
        if database.under_way:
            quiet = 0
            await asyncio.sleep(ROUND_SECONDS)
            continue
        quiet += 1
        if quiet >= QUIET_ROUNDS:
            quiet = 0
            if not clock.jump():
                await asyncio.sleep(ROUND_SECONDS)
