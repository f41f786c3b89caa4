"""Tests that the watcher uses one percent of each active organization's daily calls."""

from collections import Counter
from datetime import datetime, timedelta

import pytest

from bot.errors import QuotaExhausted
from bot.organizations.rules import (
    DataCenterReport,
    Directory,
    Listing,
    Organization,
    OrganizationKey,
)
from bot.quotas.incidents import Watcher
from bot.quotas.rules.limits import Plan
from bot.quotas.rules.quota import Terms
from bot.store import jobs
from tests.workflows.test_alerts import FakeLease

DAY = 86_400.0
PLANS = {"1": Plan.FREE, "2": Plan.PREMIUM}
TERMS = Terms(lambda key: PLANS.get(key.organization_id, Plan.FREE))


class FakeInventory:
    """A fake inventory that records the time and the organization of each call."""

    def __init__(self, clock) -> None:
        self._clock = clock
        self.data_centers = ("eu", "com")
        self.calls: list[tuple[OrganizationKey, datetime]] = []
        self.causes = []
        self.full: dict[str, datetime] = {}

    async def organizations(self, key, cause):
        self.calls.append((key, self._clock.now()))
        self.causes.append(cause)
        free_at = self.full.get(key.organization_id)
        if free_at is not None and free_at > self._clock.now():
            raise QuotaExhausted("Full.", limit_kind="minute")
        return ["the listing"]


class FakeDirectory:
    def __init__(self, inventory, reports) -> None:
        self.call = inventory.organizations
        self.data_centers = inventory.data_centers
        self.reports = tuple(reports)

    async def known(self) -> Directory:
        return Directory(self.reports)


def listed(center, *organizations, clock):
    return DataCenterReport(center, Listing(center, tuple(organizations), clock.now()))


def organization(number, *, active=True):
    return Organization(organization_id=str(number), name=f"N{number}", is_org_active=active)


@pytest.fixture
def inventory(clock) -> FakeInventory:
    return FakeInventory(clock)


@pytest.fixture
def directory(clock, inventory) -> FakeDirectory:
    eu = listed("eu", organization(1), organization(2), organization(3, active=False), clock=clock)
    return FakeDirectory(inventory, [eu, listed("com", organization(4), clock=clock)])


def a_watcher(database, directory, *, is_on=True) -> Watcher:
    return Watcher(database, directory, TERMS, is_on=is_on)


async def watch(watcher, clock, seconds) -> None:
    """Let `seconds` pass, and run the watcher's job each time the job is due."""
    until = clock.monotonic() + seconds
    while clock.monotonic() < until:
        next_at = await watcher.run(None, FakeLease(None))
        clock.advance(max((next_at - clock.now()).total_seconds(), 0.001))


async def test_active_organizations_are_checked_with_one_percent(
    database, clock, inventory, directory
):
    await watch(a_watcher(database, directory), clock, DAY)
    assert all(cause.background for cause in inventory.causes)
    made = Counter(key.organization_id for key, _ in inventory.calls)
    assert set(made) == {"1", "2", "4"}
    assert 9 <= made["1"] <= 10
    assert 9 <= made["4"] <= 10
    assert 85 <= made["2"] <= 100
    gaps = [
        (later - sooner).total_seconds()
        for (_, sooner), (_, later) in zip(inventory.calls, inventory.calls[1:], strict=False)
    ]
    assert min(gaps) > 200


async def test_used_up_organization_is_left_out_and_holds_up_nobody(
    database, clock, inventory, directory
):
    watcher = a_watcher(database, directory)
    inventory.full = {"2": clock.now() + timedelta(seconds=60)}
    await watch(watcher, clock, DAY / 40)
    made = [key.organization_id for key, _ in inventory.calls]
    assert set(made[:3]) == {"1", "2", "4"}


async def test_data_center_never_listed_is_called_without_a_name(database, clock, inventory):
    directory = FakeDirectory(inventory, [DataCenterReport("eu", None)])
    await watch(a_watcher(database, directory), clock, 10)
    assert [key for key, _ in inventory.calls] == [OrganizationKey("eu")]


async def test_the_watcher_can_be_switched_off(database, clock, inventory, directory):
    on = a_watcher(database, directory)
    off = a_watcher(database, directory, is_on=False)
    async with database.transaction() as tx:
        await on.plan(tx)
        assert (await jobs.count(tx))[0] == 1
        await off.plan(tx)
        assert (await jobs.count(tx))[0] == 0
    assert await off.run(None, FakeLease(None)) is None
    assert inventory.calls == []
