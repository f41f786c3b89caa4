"""The bot's clock follows the machine's clock if that is right; a wrong clock is reported."""

import time
from datetime import UTC, datetime
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from bot.checks.database import database_clock, slack_clock
from bot.ops.clock import SystemClock, since_boot
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import Plan
from bot.quotas.rules.quota import Terms
from bot.quotas.store.ledger import CallRequest
from bot.services.calls import CallCause
from bot.store.engine import Database

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.PREMIUM, timeout_seconds=10.0)
REQUEST = CallRequest(KEY, CallCause("list", "U1"), TERMS)
HOUR = 3600.0


class Machine:
    """A machine whose wall clock is wrong by some seconds."""

    off = 0.0

    def module(self) -> SimpleNamespace:
        """Return an object like the module `time`."""
        return SimpleNamespace(**{**vars(time), "time": lambda: time.time() + self.off})


@pytest.fixture
def machine(monkeypatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr("bot.ops.clock.time", machine.module())
    return machine


@pytest.fixture
async def sqlite(sqlite_url, machine):
    """Yield a database that was opened while the machine's clock was an hour behind."""
    machine.off = -HOUR
    clock = SystemClock()
    database = Database(sqlite_url, clock)
    yield SimpleNamespace(clock=clock, database=database)
    await database.close()


async def look(database, clock) -> list[str]:
    """Compare with Slack, whose clock is right. Return the codes."""
    now = format_datetime(datetime.now(UTC), usegmt=True)
    shared = SimpleNamespace(database=database, clock=clock)
    return [finding.code for finding in await slack_clock(shared, now, since_boot())]


def wrong_by(clock) -> float:
    return round((clock.now() - datetime.now(UTC)).total_seconds())


async def test_clock_that_was_wrong_at_the_start_follows_the_machines(sqlite, machine):
    assert wrong_by(sqlite.clock) == -HOUR
    machine.off = 0.0
    await look(sqlite.database, sqlite.clock)
    assert wrong_by(sqlite.clock) == 0


@pytest.mark.parametrize("off", [290, 310])
async def test_clock_that_is_off_says_whether_requests_are_refused(machine, off):
    machine.off = off
    shared = SimpleNamespace(database=None, clock=SystemClock())
    now = format_datetime(datetime.now(UTC), usegmt=True)
    (finding,) = await slack_clock(shared, now, since_boot())
    assert ("At a difference of 300 s" in finding.sentence) == (off < 300)


@pytest.mark.postgres
@pytest.mark.parametrize(("off", "code"), [(4.0, "ok"), (7.0, "database_clock_off")])
async def test_clock_that_differs_from_the_databases_is_told(postgres_url, machine, off, code):
    clock = SystemClock()
    database = Database(postgres_url, clock)
    machine.off = off
    (finding,) = await database_clock(SimpleNamespace(database=database, clock=clock))
    assert finding.code == code
    await database.close()


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="Linux counts time asleep")
def test_time_since_boot_goes_on_while_the_machine_sleeps(monkeypatch) -> None:
    readings = {time.CLOCK_BOOTTIME: 4711.0}
    monkeypatch.setattr(time, "clock_gettime", readings.__getitem__)
    assert (since_boot(), SystemClock().since_boot()) == (4711.0, 4711.0)
