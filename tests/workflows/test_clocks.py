"""Tests that the bot's clock follows the machine's clock, and that a wrong clock is reported."""

import time
from datetime import UTC, datetime
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from bot.checks.checks import slack_clock
from bot.ops.clock import SystemClock, since_boot
from bot.store.engine import Database

HOUR = 3600.0


class Machine:
    """A machine whose wall clock is wrong by `off` seconds."""

    off = 0.0

    def module(self) -> SimpleNamespace:
        """Return a replacement for the `time` module."""
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


def look(database, clock) -> list[str]:
    """Compare the bot's clocks with Slack's clock, and return the codes of the findings."""
    now = format_datetime(datetime.now(UTC), usegmt=True)
    shared = SimpleNamespace(database=database, clock=clock)
    return [finding.code for finding in slack_clock(shared, now)]


def wrong_by(clock) -> float:
    return round((clock.now() - datetime.now(UTC)).total_seconds())


async def test_clock_that_was_wrong_at_the_start_follows_the_machines(sqlite, machine):
    assert wrong_by(sqlite.clock) == -HOUR
    machine.off = 0.0
    look(sqlite.database, sqlite.clock)
    assert wrong_by(sqlite.clock) == 0


@pytest.mark.parametrize("start", [2 * HOUR, -2 * HOUR, -120.0, 10.0, -10.0])
@pytest.mark.parametrize("off", [4.0, -4.0, 0.0])
def test_clock_is_the_machines_as_soon_as_that_is_nearer_to_slacks(machine, start, off):
    machine.off = start
    clock = SystemClock()
    machine.off = off
    look(None, clock)
    assert wrong_by(clock) == pytest.approx(off, abs=1)


def test_clock_that_is_set_wrong_later_is_not_followed(machine):
    clock = SystemClock()
    for off in (2 * HOUR, -10.0, 10.0, 120.0):
        machine.off = off
        look(None, clock)
        assert wrong_by(clock) == 0


@pytest.mark.parametrize(("off", "code"), [(50, "ok"), (-50, "ok"), (290, "clock_off")])
def test_clock_that_is_off_by_a_minute_is_told(machine, off, code):
    machine.off = off
    shared = SimpleNamespace(database=None, clock=SystemClock())
    now = format_datetime(datetime.now(UTC), usegmt=True)
    (finding,) = slack_clock(shared, now)
    assert finding.code == code


def test_a_date_without_a_time_zone_is_universal_time(monkeypatch):
    shared = SimpleNamespace(database=None, clock=SystemClock())
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        (finding,) = slack_clock(shared, f"{datetime.now(UTC):%a %b %d %H:%M:%S %Y}")
    time.tzset()
    assert finding.code == "ok"


@pytest.mark.parametrize("date", ["", "soon", "Wed, 21 Oct 99999999999999999999 07:28:00 GMT"])
def test_an_unreadable_date_is_ignored(date):
    assert slack_clock(SimpleNamespace(database=None, clock=SystemClock()), date) == []


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="Linux counts time asleep")
def test_time_since_boot_goes_on_while_the_machine_sleeps(monkeypatch) -> None:
    readings = {time.CLOCK_BOOTTIME: 4711.0}
    monkeypatch.setattr(time, "clock_gettime", readings.__getitem__)
    assert (since_boot(), SystemClock().since_boot()) == (4711.0, 4711.0)
