"""The bot's clock follows the machine's once that is right, and what is wrong is told."""

import re
import time
from datetime import UTC, datetime
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from bot.checks.clock_watch import ClockWatch
from bot.checks.health import Health
from bot.checks.rules.health import Part
from bot.errors import DatabaseUnavailable
from bot.ops.clock import SystemClock, since_boot
from bot.organizations.rules import OrganizationKey
from bot.quotas.incidents import probe_job
from bot.quotas.rules.blocks import BlockCode, Blocks
from bot.quotas.rules.plans import CallClass, Lowered, Plan
from bot.quotas.rules.quota import Terms
from bot.quotas.store import accounts
from bot.quotas.store import ledger as quotas
from bot.quotas.store.ledger import CallRequest, NotNow
from bot.services.calls import CallCause
from bot.store import jobs
from bot.store.engine import Database
from bot.store.jobs import Job

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.PREMIUM, timeout_seconds=10.0)
REQUEST = CallRequest(KEY, CallCause("list", "U1"), CallClass.PERSON, TERMS)
HOUR = 3600.0


class Machine:
    """A machine whose wall clock is off by so many seconds."""

    off = 0.0

    def module(self) -> SimpleNamespace:
        """As the module `time`."""
        return SimpleNamespace(**{**vars(time), "time": lambda: time.time() + self.off})


@pytest.fixture
def machine(monkeypatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr("bot.ops.clock.time", machine.module())
    return machine


@pytest.fixture
async def sqlite(sqlite_url, machine):
    """A file that was opened while the machine's clock was an hour behind."""
    machine.off = -HOUR
    clock = SystemClock()
    database = Database(sqlite_url, clock)
    yield SimpleNamespace(clock=clock, database=database)
    await database.close()


def watching(database, clock) -> tuple[ClockWatch, Health]:
    health = Health(clock, {})
    return ClockWatch(health, database, clock), health


async def look(watch: ClockWatch) -> None:
    """Ask somebody whose clock is right."""
    await watch.compare(format_datetime(datetime.now(UTC), usegmt=True), since_boot())


def wrong_by(clock) -> float:
    return round((clock.now() - datetime.now(UTC)).total_seconds())


async def test_clock_that_is_set_wrong_is_told_and_not_followed(sqlite_url, machine):
    clock = SystemClock()
    database = Database(sqlite_url, clock)
    watch, health = watching(database, clock)
    await look(watch)
    assert health.troubles() == []
    machine.off = 2 * HOUR
    await look(watch)
    (trouble,) = health.troubles()
    assert (trouble.part, wrong_by(clock)) == (Part.CLOCK, 0)
    # Slack tells whole seconds.
    assert re.search(r"(7199|7200) s ahead of Slack's", trouble.sentence)
    assert health.missing() is None
    machine.off = 0.0
    await look(watch)
    assert health.troubles() == []
    await database.close()


async def test_clock_wrong_at_the_start_is_followed_once_right(sqlite, machine):
    watch, health = watching(sqlite.database, sqlite.clock)
    await look(watch)
    assert [one.part for one in health.troubles()] == [Part.CLOCK]
    machine.off = 0.0
    await look(watch)
    assert (wrong_by(sqlite.clock), health.troubles()) == (0, [])


async def test_slots_and_leases_last_when_the_clock_is_followed(sqlite, machine):
    database = sqlite.database
    async with database.autocommit() as tx:
        for _ in range(100):
            await quotas.settle(tx, await quotas.reserve(tx, REQUEST), 0.0)
    async with database.transaction() as tx:
        blocked = await accounts.load_locked(tx, OrganizationKey("eu", "11"), TERMS)
        blocks = Blocks().refused(BlockCode.MINUTE, blocked.now, probe=False)
        await quotas.save_blocks(tx, blocked, blocks)
        await probe_job(tx, blocked.id, blocked.key, blocks, ensure=False)
        await quotas.lower_concurrency(tx, blocked, Lowered(7, blocked.now + HOUR))
        await jobs.put(tx, Job("apply:a", "apply", "a", await tx.now()))
        assert [job.key for job in await jobs.claim(tx, "me", 9)] == ["apply:a"]
    machine.off = 0.0
    await look(watching(database, sqlite.clock)[0])
    async with database.autocommit() as tx:
        full = await quotas.reserve(tx, REQUEST)
    assert isinstance(full, NotNow)
    assert 50 < full.reason.free_at - full.now <= 60.1
    async with database.transaction() as tx:
        account = await accounts.load(tx, OrganizationKey("eu", "11"), TERMS)
        assert 50 < account.blocks.longest.until - account.now <= 60
        assert HOUR - 10 < account.lowered_concurrent.until - account.now <= HOUR
        assert await jobs.claim(tx, "other", 9) == []
        assert await jobs.renew(tx, "me", ["apply:a"]) == {"apply:a"}


async def test_clock_is_not_followed_while_what_it_dates_cannot_be_moved(
    sqlite, machine, monkeypatch
):
    watch, _health = watching(sqlite.database, sqlite.clock)
    machine.off = 0.0
    with monkeypatch.context() as away:

        def transaction():
            raise DatabaseUnavailable

        away.setattr(sqlite.database, "transaction", transaction)
        await look(watch)
        assert wrong_by(sqlite.clock) == -HOUR
    await look(watch)
    assert wrong_by(sqlite.clock) == 0


@pytest.mark.postgres
async def test_clock_of_the_databases_server_is_told(postgres_url, clock):
    database = Database(postgres_url, clock, own_clock=False)
    watch, health = watching(database, SystemClock())
    await look(watch)
    (trouble,) = health.troubles()
    assert "The clock of the database's server is" in trouble.sentence
    await database.close()


@pytest.mark.postgres
async def test_clock_of_a_server_that_is_right_is_not_told(postgres_url):
    clock = SystemClock()
    database = Database(postgres_url, clock)
    watch, health = watching(database, clock)
    await look(watch)
    assert health.troubles() == []
    await database.close()
