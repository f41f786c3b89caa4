"""How old the standings are that people see, and who waits for new ones."""

import asyncio

import pytest

from bot.errors import DatabaseUnavailable
from bot.organizations.rules import Directory, OrganizationKey
from bot.quotas.rules.plans import Plan
from bot.quotas.rules.quota import Terms
from bot.quotas.rules.standing import Standing
from bot.quotas.standings import MOST_KEPT_SECONDS, Standings
from bot.quotas.store import quota_use
from tests.support.clock import JumpingClock

TERMS = Terms(lambda _key: Plan.FREE, timeout_seconds=10.0)
TOOK_SECONDS = 2.0


class Ledger:
    """The ledger, each look at which takes some seconds, and waits where a test holds it."""

    def __init__(self, clock) -> None:
        self.clock = clock
        self.looks = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.error: Exception | None = None

    async def standings(self, _tx, _terms):
        self.looks += 1
        organization = OrganizationKey("eu", str(self.looks))
        await self.go_on.wait()
        if self.error:
            raise self.error
        self.clock.advance(TOOK_SECONDS)
        yield [Standing.idle(organization, Plan.FREE)]


class Nobody:
    async def known(self):
        return Directory(())


@pytest.fixture
def clock():
    return JumpingClock()


@pytest.fixture
def ledger(clock, monkeypatch):
    ledger = Ledger(clock)
    monkeypatch.setattr(quota_use, "standings", ledger.standings)
    return ledger


@pytest.fixture
def standings(database, ledger, clock):
    return Standings(database, Nobody(), TERMS, clock)


async def look_of(standings):
    """The number of the look at the ledger that is shown."""
    return int((await standings.ranking()).called[0].key.organization_id)


async def all_done():
    """Return when everything that goes on by itself is done."""
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))


async def test_standings_are_kept_for_a_moment(standings, clock):
    assert await look_of(standings) == 1
    clock.advance(MOST_KEPT_SECONDS - 0.1)
    assert await look_of(standings) == 1
    clock.advance(0.2)
    await standings.ranking()
    await all_done()
    assert await look_of(standings) == 2


async def test_failed_look_is_told_and_tried_again(standings, ledger):
    ledger.error = DatabaseUnavailable()
    with pytest.raises(DatabaseUnavailable):
        await standings.ranking()
    ledger.error = None
    assert await look_of(standings) == 2
