"""What a 429 is told of, and what is counted, when things come late, twice or not at all."""

from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from bot.errors import CommitUnknown, QuotaExhausted
from bot.organizations.rules import OrganizationKey
from bot.quotas.guard import Guard
from bot.quotas.rules.limits import MINUTE_MARGIN, Plan
from bot.quotas.rules.quota import Terms
from bot.quotas.store import incidents
from bot.services.calls import GATEWAY, PROBE, CallCause, ReportedLimits
from bot.services.errors import RateLimited
from bot.tasks import Tasks
from tests.support.clock import JumpingClock

KEY = OrganizationKey("eu", "10")
PERSON = CallCause("list", "U1")
SCRIPT = CallCause(GATEWAY, background=True, client="script")
HOUR = 3600.0
plans = {KEY: Plan.FREE}
TERMS = Terms(lambda key: plans.get(key, Plan.FREE), timeout_seconds=10.0)


@pytest.fixture
def clock():
    return JumpingClock()


@pytest.fixture
async def tasks():
    tasks = Tasks()
    yield tasks
    await tasks.drain(5)


@pytest.fixture
def guard(database, clock, tasks) -> Guard:
    return Guard(database, clock, TERMS, tasks)


async def call(guard, cause=PERSON, *, code=None, reported=None, during=None):
    """One call; with a code it is refused."""
    async with guard.call(KEY, cause) as grant:
        if during is not None:
            await during()
        await grant.responded(reported)
        if code is not None:
            error = RateLimited("inventory", "Declined.", code=code, message="blocked")
            await grant.refused(error)
            raise error


async def refused(guard, code, **more) -> None:
    with pytest.raises(RateLimited):
        await call(guard, code=code, **more)


async def all_incidents(database):
    async with database.read_only() as tx:
        found = [await incidents.load(tx, number) for number in range(1, 9)]
    return [item for item in found if item is not None]


async def test_own_use_of_a_told_day_is_of_that_day(guard, database, clock):
    for _ in range(40):
        await call(guard)
    clock.advance(10 * HOUR)
    # The day began two hours ago; others have used it up.
    await call(guard, reported=ReportedLimits(1000, 1, int(22 * HOUR)))
    await refused(guard, 45)
    (incident,) = await all_incidents(database)
    assert incident.detail.own["day"] == [2, 1000]
    assert incident.detail.is_foreign is True


async def burst(guard, calls: int, taken: int) -> tuple[int, int]:
    """Calls at once to a service that takes so many; how many were sent, and how many refused."""
    sent = []
    async with AsyncExitStack() as stack:
        for _ in range(calls):
            with suppress(QuotaExhausted):
                sent.append(await stack.enter_async_context(guard.call(KEY, PERSON)))
        for number, grant in enumerate(sent):
            await grant.responded()
            if number >= taken:
                error = RateLimited("inventory", "Declined.", code=1070, message="too many")
                await grant.refused(error)
    return len(sent), max(0, len(sent) - taken)


async def probe_passes(guard, clock) -> None:
    clock.advance(60)
    await call(guard, CallCause(PROBE))
    clock.advance(60)


async def test_service_that_takes_fewer_at_once_refuses_them_once_a_day(
    guard, database, clock, monkeypatch
):
    monkeypatch.setitem(plans, KEY, Plan.ENTERPRISE)
    assert await burst(guard, 10, taken=7) == (10, 3)
    await probe_passes(guard, clock)
    for _ in range(3):
        assert await burst(guard, 10, taken=7) == (7, 0)
        clock.advance(60)
    (incident,) = await all_incidents(database)
    assert (incident.refusals, incident.detail.is_lowered) == (3, True)
    clock.advance(24 * HOUR)
    # It may have been another client's doing, or the service may have changed its mind.
    assert await burst(guard, 10, taken=10) == (10, 0)


async def most_of_a_minute(guard) -> int:
    """How many calls a client may make now."""
    made = 0
    with suppress(QuotaExhausted):
        while True:
            await call(guard, SCRIPT)
            made += 1
    return made


async def test_block_by_another_program_leaves_it_room_for_an_hour(guard, clock):
    for _ in range(40):
        await call(guard, SCRIPT)
    await refused(guard, 44)
    await probe_passes(guard, clock)
    clock.advance(1)
    assert await most_of_a_minute(guard) == 41 - MINUTE_MARGIN
    clock.advance(HOUR)
    assert await most_of_a_minute(guard) == 80


async def test_refusal_whose_commit_is_unknown_is_written_once(guard, database, monkeypatch, tasks):
    honest = type(database).transaction
    broken = []

    @asynccontextmanager
    async def unknown(self):
        async with honest(self) as tx:
            yield tx
        if not broken:
            broken.append(self)
            raise CommitUnknown

    monkeypatch.setattr(type(database), "transaction", unknown)
    await refused(guard, 44)
    await tasks.drain(10)
    (incident,) = await all_incidents(database)
    assert (incident.refusals, len(broken)) == (1, 1)
