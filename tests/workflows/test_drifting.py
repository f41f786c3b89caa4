"""Tests that a slow drift between two clocks is never taken for a correction."""

import random

import pytest

from bot.quotas import clock as clocks
from bot.quotas.guard import Guard
from bot.quotas.tables import quota_calls
from bot.tasks import Tasks
from tests.conftest import BOTH
from tests.support.databases import ClockedDatabase
from tests.workflows.test_corrected import KEY, PERSON, TERMS, Bot, CorrectedClock


@pytest.fixture
def clock() -> CorrectedClock:
    return CorrectedClock()


@pytest.fixture
def moved(monkeypatch) -> list[float]:
    """Return the seconds by which calls were moved."""
    steps = list[float]()
    move = clocks.ledger.move

    async def note_move(tx, seconds: float) -> None:
        steps.append(seconds)
        await move(tx, seconds)

    monkeypatch.setattr(clocks.ledger, "move", note_move)
    return steps


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
@pytest.mark.parametrize("drift", [-0.1, 0.1])
async def test_a_drift_that_another_process_has_stored_moves_no_call(database, clock, moved, drift):
    bot = Bot(database, clock, restarts=False)
    for _ in range(20):
        clock.advance(60)
        clock.off += drift
        for process in (0, 1):
            await bot.call(process)
    assert moved == []


class SlowClock(CorrectedClock):
    """A clock of a database whose answers take up to 60 ms."""

    def __init__(self) -> None:
        super().__init__()
        self._dice = random.Random(1)

    def now(self):
        at = super().now()
        self.advance(self._dice.uniform(0, 0.06))
        return at


async def test_a_correction_that_looks_like_a_slow_answer_declines_no_call(sqlite_url):
    clock = SlowClock()
    database = ClockedDatabase(sqlite_url, clock)
    for _ in range(40):
        bot = Bot(database, clock, restarts=False)
        await bot.call()
        clock.advance(1)
        clock.off += 0.52
        await bot.call()
    async with database.read_only() as tx:
        assert await tx.count(quota_calls.c.number > 0) == 80
    await database.close()


class OtherMachine:
    """The clock of another machine, whose time since boot lags behind."""

    boot = "another machine"

    def __init__(self, clock: CorrectedClock) -> None:
        self._clock = clock
        self.lag = 0.0

    def __getattr__(self, name: str):
        return getattr(self._clock, name)

    def since_boot(self) -> float:
        return self._clock.since_boot() - self.lag


async def call_from(database, clock) -> None:
    async with Guard(database, clock, TERMS, Tasks()).call(KEY, PERSON) as grant:
        await grant.responded()


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_what_another_machine_mistook_for_a_correction_frees_no_slot(database, clock, moved):
    bot, machine = Bot(database, clock, restarts=False), OtherMachine(clock)
    await call_from(database, machine)
    await bot.call()
    clock.advance(900)
    machine.lag = 9.0
    await bot.call()
    # Its earlier process is gone, so nobody has followed this drift.
    await call_from(database, machine)
    assert moved == [pytest.approx(9.0)]
    for _ in range(20):
        clock.advance(60)
        clock.off += 0.1
        await bot.call()
    assert moved == [pytest.approx(9.0)]
