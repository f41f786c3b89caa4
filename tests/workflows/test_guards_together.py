"""Guards of several processes on one PostgreSQL: what they grant together."""

import asyncio

import pytest

from bot.background.tasks import Tasks
from bot.errors import OrganizationBlocked, QuotaExhausted
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.blocks import BlockCode
from bot.model.quotas.calls import PROBE, CallCause
from bot.model.quotas.plans import Plan
from bot.model.quotas.quota import Terms
from bot.service_errors import RateLimited
from bot.store import accounts, incidents, quotas
from bot.store.engine import Database
from bot.store.migrations import migrate
from bot.workflows.quotas.guard import Guard
from bot.workflows.quotas.incidents import Incidents
from tests.support.steady import SteadyClock

pytestmark = pytest.mark.postgres

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.STANDARD, timeout_seconds=10.0)
PERSON = CallCause("list", "U1")


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch) -> None:
    monkeypatch.setattr("bot.workflows.quotas.guard.PERSON_WAITS_SECONDS", 0.0)


@pytest.fixture
async def databases(postgres_url):
    """Four processes' worth of connections, with PostgreSQL's own clock."""
    databases = [Database(postgres_url, SteadyClock()) for _ in range(4)]
    await migrate(databases[0])
    yield databases
    for one in databases:
        await one.close()


@pytest.fixture
async def guards(databases, clock):
    """Their clock stands still: no grant comes too late, however slow the server is."""
    return [Guard(one, clock, TERMS, Incidents(TERMS), Tasks()) for one in databases]


async def make(guard, counter, *, cause=PERSON) -> str:
    try:
        async with guard.call(KEY, cause) as grant:
            counter["now"] += 1
            counter["peak"] = max(counter["peak"], counter["now"])
            await asyncio.sleep(0.001)
            counter["now"] -= 1
            await grant.responded()
    except QuotaExhausted as error:
        return error.limit_kind
    return "granted"


async def test_together_they_grant_a_hundred_in_a_minute_and_ten_at_once(guards, databases):
    counter = {"now": 0, "peak": 0}
    results = []
    while results.count("granted") < 100 and len(results) < 2000:
        results += await asyncio.gather(*(make(guard, counter) for guard in guards * 6))
    results += await asyncio.gather(*(make(guard, counter) for guard in guards * 6))
    assert results.count("granted") == 100
    assert results[-1] == "minute"
    assert counter["peak"] <= 10
    async with databases[0].read_only() as tx:
        account = await accounts.load(tx, KEY, TERMS)
    assert (account.made, account.in_use.minute, account.in_use.concurrent) == (100, 100, 0)


async def be_refused(guard, together) -> None:
    refusal = RateLimited("inventory", "Declined.", code=1070, message="busy")
    async with guard.call(KEY, PERSON) as grant:
        await together.wait()
        await grant.responded()
        await grant.refused(refusal)
        raise refusal


async def test_what_four_meet_at_once_is_one_incident(guards, databases):
    together = asyncio.Barrier(8)
    met = await asyncio.gather(
        *(be_refused(guard, together) for guard in guards * 2), return_exceptions=True
    )
    assert {type(one) for one in met} == {RateLimited}
    async with databases[0].read_only() as tx:
        [incident] = await incidents.all_open(tx)
    assert incident.refusals == 8


async def probe(guard) -> None:
    async with guard.call(KEY, CallCause(PROBE)) as grant:
        await grant.responded()


async def test_while_one_probes_the_others_do_not(guards, databases):
    async with databases[0].transaction() as tx:
        account = await accounts.load_locked(tx, KEY, TERMS)
        blocks = account.blocks.refused(BlockCode.CONCURRENT, account.now - 10, probe=False)
        await quotas.save_blocks(tx, account, blocks)
    async with guards[0].call(KEY, CallCause(PROBE)) as grant:
        others = await asyncio.gather(*map(probe, guards[1:]), return_exceptions=True)
        assert {type(one) for one in others} == {OrganizationBlocked}
        await grant.responded()
    async with databases[0].read_only() as tx:
        assert not (await accounts.load(tx, KEY, TERMS)).blocks
