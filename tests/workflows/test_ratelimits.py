"""What `/ratelimits` finds out, on SQLite and PostgreSQL."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from bot.errors import Ambiguous, DatabaseUnavailable
from bot.organizations.rules import (
    DataCenterReport,
    Directory,
    Listing,
    Organization,
    OrganizationKey,
)
from bot.permissions import Person
from bot.quotas import incidents
from bot.quotas.guard import Guard
from bot.quotas.ratelimits import RateLimits
from bot.quotas.rules.limits import Plan
from bot.quotas.rules.quota import Terms
from bot.services.calls import CallCause, ReportedLimits
from bot.services.errors import RateLimited
from bot.store.audit import AuditStore
from bot.tasks import Tasks
from tests.support.clock import JumpingClock

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.FREE, timeout_seconds=10.0)
OTTO = Person("U0OPERATOR", "Otto")
HOUR = 3600.0


class FakePeople:
    """Answers once as many ask at once as `together` says."""

    def __init__(self) -> None:
        self.asked = []
        self.together = 0
        self._all_ask = asyncio.Event()

    async def name(self, slack_user_id):
        self.asked.append(slack_user_id)
        if len(self.asked) >= self.together:
            self._all_ask.set()
        await asyncio.wait_for(self._all_ask.wait(), 60)
        return f"name of {slack_user_id}"


class FakeDirectory:
    def __init__(self, clock) -> None:
        names = {"10": "Acme", "11": "Acme Two"}
        found = tuple(Organization(organization_id=key, name=name) for key, name in names.items())
        self._known = Directory((DataCenterReport("eu", Listing("eu", found, clock.now())),))
        self.newer: Directory | None = None
        self.accepted = []

    async def known(self) -> Directory:
        return self._known

    async def listed(self, cause) -> Directory:
        return self._known

    async def directory(self, cause) -> Directory:
        return self.newer or self._known

    async def accept(self, key, found) -> None:
        self.accepted.append(key)


class FakeInventory:
    data_centers = ("eu",)

    def __init__(self, guard) -> None:
        self._guard = guard
        self.reported: ReportedLimits | None = None
        self.asked = 0
        # Raised before the guard is asked, as by a credential that cannot be renewed.
        self.unsigned: Exception | None = None
        self.refusal: RateLimited | None = None
        self.during = lambda: None

    async def organizations(self, key, cause):
        self.asked += 1
        if self.unsigned is not None:
            raise self.unsigned
        async with self._guard.call(key, cause) as grant:
            self.during()
            await grant.responded()
            if self.refusal is not None:
                await grant.refused(self.refusal)
                raise self.refusal
            if self.reported is not None:
                await grant.reported(self.reported)
        return []


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
def inventory(database, clock) -> FakeInventory:
    return FakeInventory(Guard(database, clock, TERMS, Tasks()))


@pytest.fixture
def people() -> FakePeople:
    return FakePeople()


@pytest.fixture
def ratelimits(database, clock, inventory, people) -> RateLimits:
    return RateLimits(
        database=database,
        audit=AuditStore(),
        inventory=inventory,
        directory=FakeDirectory(clock),
        people=people,
        terms=TERMS,
        clock=clock,
    )


async def call(inventory, count, user="U1") -> None:
    for _ in range(count):
        await inventory.organizations(KEY, CallCause("list", user))


async def test_the_names_that_are_shown_are_looked_up_at_once_and_no_others(
    ratelimits, inventory, people
):
    for number in range(12):
        await call(inventory, 1, user=f"U{number:02}")
    people.together = 10
    detail = await ratelimits.one(OTTO, "Acme")
    assert sorted(detail.people) == [who for who, _ in detail.by_person()[:10]]
    assert len(people.asked) == 10


def a_429(service="inventory") -> RateLimited:
    return RateLimited(service, f"Declined by {service}.", code=44, message="words")


async def test_a_token_address_that_declines_is_not_a_refused_call(ratelimits, inventory):
    inventory.unsigned = a_429("oauth")
    with pytest.raises(RateLimited, match="Declined by oauth"):
        await ratelimits.check(OTTO, "10")


@pytest.mark.parametrize(("refusal", "became"), [(None, "succeeded"), (a_429(), "was blocked")])
async def test_check_before_a_database_outage_says_it_was_made(
    ratelimits, inventory, database, monkeypatch, refusal, became
):
    @asynccontextmanager
    async def broken():
        raise DatabaseUnavailable
        yield

    def break_down():
        for way in ("transaction", "autocommit", "read_only"):
            monkeypatch.setattr(database, way, broken)

    inventory.refusal, inventory.during = refusal, break_down
    with pytest.raises(DatabaseUnavailable, match=rf"The call {became}\.") as caught:
        await ratelimits.check(OTTO, "10")
    assert "Nothing was changed" not in caught.value.sentence


@pytest.mark.parametrize(("named", "is_lifted"), [("1,000", False), ("900", True)])
async def test_plan_lifts_only_a_limit_that_was_below_it(ratelimits, inventory, named, is_lifted):
    words = f"Your organization has exceeded its limit of {named} calls."
    inventory.refusal = RateLimited("inventory", "Declined.", code=45, message=words)
    await ratelimits.check(OTTO, "10")
    plan_set = await ratelimits.set_plan(OTTO, "10", Plan.FREE)
    assert (plan_set.before, plan_set.now) == (Plan.FREE, Plan.FREE)
    assert plan_set.is_lifted is is_lifted


async def test_a_try_is_put_off_for_an_hour_at_most(ratelimits, inventory, database, clock):
    """Another plan may make room sooner than the ledger said."""
    inventory.refusal = a_429()
    await ratelimits.check(OTTO, "10")
    async with database.transaction() as tx:
        await incidents.postpone(tx, KEY, TERMS, clock.now() + timedelta(hours=20))
        assert await incidents.next_try(tx, KEY, TERMS) == clock.now().timestamp() + HOUR


async def test_a_whole_name_that_is_listed_since_is_no_part_of_an_old_one(ratelimits):
    directory = ratelimits.directory
    with pytest.raises(Ambiguous, match="only part of a name"):
        await ratelimits.set_plan(OTTO, "two", Plan.PREMIUM)
    two = Organization(organization_id="12", name="Two")
    now = directory._known.reports[0].listing.fetched_at
    directory.newer = Directory((DataCenterReport("eu", Listing("eu", (two,), now)),))
    assert (await ratelimits.set_plan(OTTO, "two", Plan.PREMIUM)).name == "Two"


async def test_what_was_called_is_known_though_no_longer_listed(ratelimits, inventory):
    gone = OrganizationKey("eu", "99")
    await inventory.organizations(gone, CallCause("list"))
    assert (await ratelimits.check_at(OTTO, gone)).seconds is not None
    assert (await ratelimits.detail(gone)).name == "99"
