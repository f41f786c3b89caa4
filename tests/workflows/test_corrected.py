"""Tests that a correction of the database's clock frees no slot early and keeps none too long."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from bot.errors import OrganizationBlocked, QuotaExhausted
from bot.organizations.rules import OrganizationKey
from bot.quotas.guard import Guard
from bot.quotas.incidents import PROBE_JOB
from bot.quotas.rules.limits import Plan
from bot.quotas.rules.quota import Terms
from bot.quotas.store import accounts
from bot.quotas.store.ledger import TIDY_JOB
from bot.services.calls import CallCause, ReportedLimits
from bot.services.errors import RateLimited
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.tables import jobs
from bot.tasks import Tasks
from tests.conftest import BOTH
from tests.support.clock import JumpingClock

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.FREE)
PERSON = CallCause("list", "U1")
HOUR = 3600.0

pytestmark = [
    pytest.mark.parametrize("database_url", BOTH, indirect=True),
    pytest.mark.parametrize("step", [-2 * HOUR, -10.0, 10.0, 120.0, 30 * HOUR]),
    pytest.mark.parametrize("restarts", [False, True]),
]


class CorrectedClock(JumpingClock):
    """A clock that people correct by `off` seconds, while the time since boot goes on."""

    off = 0.0

    def now(self):
        return super().now() + timedelta(seconds=self.off)


@pytest.fixture
def clock() -> CorrectedClock:
    return CorrectedClock()


class Bot:
    """The guards of two processes, which may start again when the clock is corrected."""

    def __init__(self, database, clock, *, restarts: bool) -> None:
        self.database = database
        self.clock = clock
        self.restarts = restarts
        self.start()

    def start(self) -> None:
        self.guards = [Guard(self.database, self.clock, TERMS, Tasks()) for _ in range(2)]

    def correct(self, step: float) -> None:
        self.clock.off += step
        if self.restarts:
            self.start()

    async def call(self, process=0, cause=PERSON, reported=None) -> None:
        async with self.guards[process].call(KEY, cause) as grant:
            await grant.responded(reported)

    async def until_free(self, process) -> float:
        with pytest.raises(QuotaExhausted) as caught:
            await self.call(process)
        return caught.value.seconds


@pytest.fixture
def bot(database, clock, restarts) -> Bot:
    return Bot(database, clock, restarts=restarts)


async def test_a_slot_of_the_minute_is_free_when_it_would_have_been(bot, clock, step):
    for number in range(100):
        await bot.call(number % 2)
    clock.advance(20)
    bot.correct(step)
    for process in (0, 1, 0):
        assert await bot.until_free(process) == pytest.approx(40.05, abs=0.01)
    clock.advance(40)
    await bot.until_free(0)
    clock.advance(0.06)
    await bot.call(1)


async def test_a_call_in_flight_keeps_its_place(bot, clock, step):
    for _ in range(95):
        await bot.call()
    async with bot.guards[0].call(KEY, PERSON) as grant:
        clock.advance(1)
        bot.correct(step)
        await bot.call(1)
        await grant.responded()
    in_use = (await standing(bot)).in_use
    assert (in_use.minute, in_use.concurrent) == (97, 0)


async def test_a_call_that_ends_just_after_a_correction_holds_its_slot_as_long(bot, clock, step):
    await bot.call()
    async with bot.guards[0].call(KEY, PERSON) as grant:
        clock.advance(1)
        bot.correct(step)
        await grant.responded()
    clock.advance(20)
    await bot.call(1)
    in_use = (await standing(bot)).in_use
    assert (in_use.minute, in_use.concurrent) == (3, 0)
    clock.advance(40.1)
    assert (await standing(bot)).in_use.minute == 1


async def standing(bot):
    async with bot.database.read_only() as tx:
        return await accounts.load(tx, KEY, TERMS)


async def test_the_day_is_as_long_as_before(bot, clock, step):
    await bot.call()
    clock.advance(24 * HOUR)
    bot.correct(step)
    await bot.call()
    assert (await standing(bot)).in_use.day == 2
    clock.advance(1.1 * HOUR)
    assert (await standing(bot)).in_use.day == 1


@pytest.mark.parametrize("is_ended_first", [False, True])
async def test_a_call_in_flight_stays_in_the_day(bot, clock, step, is_ended_first):
    await bot.call()
    async with bot.guards[0].call(KEY, PERSON) as grant:
        bot.correct(step)
        if not is_ended_first:
            await bot.call(1)
        await grant.responded()
    await bot.call(1)
    assert (await standing(bot)).in_use.day == (3 if is_ended_first else 4)


async def test_no_call_of_the_minute_is_deleted(bot, clock, step):
    for _ in range(99):
        await bot.call()
    async with bot.guards[0].call(KEY, PERSON) as grant:
        bot.correct(step)
        await tidy(bot)
        await grant.responded()
    await tidy(bot)
    assert await bot.until_free(1) == pytest.approx(60.05, abs=0.01)


async def tidy(bot) -> None:
    kind = bot.guards[1].kinds[TIDY_JOB]
    job = Job(TIDY_JOB, TIDY_JOB, TIDY_JOB, bot.clock.now())
    await kind.run(job, Lease(bot.database, "", job))


async def test_a_reported_reset_stays_where_it_is(bot, clock, step):
    await bot.call(reported=ReportedLimits(1000, 0, 3600))
    clock.advance(600)
    bot.correct(step)
    assert await bot.until_free(0) == pytest.approx(3001)


async def test_a_pause_is_as_long_as_before(bot, clock, step):
    async with bot.guards[0].call(KEY, PERSON) as grant:
        await grant.responded()
        await grant.refused(RateLimited("inventory", "Declined.", code=44, message="blocked"))
    clock.advance(10)
    bot.correct(step)
    with pytest.raises(OrganizationBlocked) as caught:
        await bot.call(1)
    assert caught.value.seconds == pytest.approx(50)
    async with bot.database.read_only() as tx:
        due_at = await tx.connection.scalar(select(jobs.c.due_at).where(jobs.c.kind == PROBE_JOB))
    assert due_at == clock.now() + timedelta(seconds=50)
