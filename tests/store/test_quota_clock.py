"""The ledger when its clock is set: no slot is free too soon, and none is held for a day."""

import pytest

from bot.ops.clock import SystemClock, boot_id
from bot.organizations.rules import OrganizationKey
from bot.quotas import tidying
from bot.quotas.rules.limits import Plan
from bot.quotas.rules.quota import NotNow, Terms
from bot.quotas.store import accounts
from bot.quotas.store import ledger as quotas
from bot.quotas.store.ledger import CallRequest, Reservation
from bot.quotas.tidying import TIDY_JOB, Tidying
from bot.services.calls import CallCause
from bot.store import jobs
from bot.store.engine import Database
from bot.store.jobs import Job
from tests.support.clock import FakeClock

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.PREMIUM, timeout_seconds=10.0)
REQUEST = CallRequest(KEY, CallCause("list", "U1"), TERMS)


async def reserve(database):
    async with database.autocommit() as tx:
        return await quotas.reserve(tx, REQUEST)


async def use_up(database) -> None:
    for _ in range(100):
        reservation = await reserve(database)
        assert isinstance(reservation, Reservation)
        async with database.autocommit() as tx:
            await quotas.settle(tx, reservation, 0.0)


async def in_use(database) -> int:
    async with database.read_only() as tx:
        return (await accounts.load(tx, KEY, TERMS)).in_use.minute


async def follow(database, boot, offset) -> float:
    async with database.transaction() as tx:
        await jobs.ensure(tx, Job(TIDY_JOB, TIDY_JOB, TIDY_JOB, await tx.now()))
        return await tidying.follow(tx, boot, offset)


@pytest.mark.parametrize("step", [61.0, -600.0, -86_400.0])
async def test_clock_set_between_two_processes_moves_no_slot(sqlite_url, step):
    clock = FakeClock()
    database = Database(sqlite_url, clock)
    assert await follow(database, "a boot", 1000.0) == 0.0
    await use_up(database)
    clock.advance(2 + step)
    assert await follow(database, "a boot", 1000.0 + step) == step
    full = await reserve(database)
    assert isinstance(full, NotNow)
    assert full.free_at - full.now == pytest.approx(58.05)
    assert await in_use(database) == 100
    clock.advance(58.1)
    assert isinstance(await reserve(database), Reservation)
    assert await follow(database, "another boot", 5.0) == 0.0
    await database.close()


async def test_start_follows_the_clock_of_the_process(sqlite_url):
    clock = SystemClock()
    database = Database(sqlite_url, clock)
    await use_up(database)
    # The process before this one had a clock that was an hour behind.
    await follow(database, boot_id(), clock.offset)
    async with database.transaction() as tx:
        await tidying.move(tx, boot_id(), clock.offset - 3600, -3600)
    assert await in_use(database) == 0
    async with database.transaction() as tx:
        await Tidying(database, clock).plan(tx)
    assert await in_use(database) == 100
    await database.close()
