"""What was used, by everybody: by hour, person and kind; and what becomes of old calls."""

import pytest
from sqlalchemy import func, select

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import Plan, reported_day
from bot.quotas.rules.quota import Terms
from bot.quotas.rules.use import HourOfCalls
from bot.quotas.store import accounts
from bot.quotas.store import ledger as quotas
from bot.quotas.store.ledger import CallRequest, Reservation
from bot.quotas.tidying import Tidying
from bot.services.calls import CallCause, ReportedLimits
from bot.store.tables import quota_calls
from tests.support.clock import FakeClock

KEY, OTHER = OrganizationKey("eu", "10"), OrganizationKey("com", "11")
TERMS = Terms(lambda _key: Plan.PREMIUM, timeout_seconds=10.0)
HOUR = 3600.0


async def call(database, key=KEY, kind="list", user="U1") -> Reservation:
    request = CallRequest(key, CallCause(kind, user), TERMS)
    async with database.autocommit() as tx:
        reservation = await quotas.reserve(tx, request)
        assert isinstance(reservation, Reservation)
        await quotas.settle(tx, reservation, 0.0)
    return reservation


async def the_account(database, key=KEY):
    async with database.read_only() as tx:
        return await accounts.load(tx, key, TERMS)


async def tidy(database) -> None:
    await Tidying(database, FakeClock()).run(None, None)


async def count(database, table) -> int:
    async with database.read_only() as tx:
        return await tx.connection.scalar(select(func.count()).select_from(table))


async def test_calls_are_told_by_hour_kind_and_person(database, clock):
    began = clock.now().timestamp()
    await call(database)
    await call(database)
    await call(database, kind="check", user=None)
    clock.advance(HOUR)
    await call(database)
    await call(database, OTHER)
    async with database.read_only() as tx:
        account = await accounts.load(tx, KEY, TERMS)
        hours = await accounts.hours_since(tx, account, began)
    assert sorted(hours, key=str) == sorted(
        [
            HourOfCalls(began, "list", "U1", 2),
            HourOfCalls(began, "check", None, 1),
            HourOfCalls(began + HOUR, "list", "U1", 1),
        ],
        key=str,
    )


async def test_every_organization_stands_as_one_alone_does(database, clock):
    for _ in range(3):
        await call(database)
    clock.advance(70)
    await call(database)
    await call(database, OTHER)
    async with database.read_only() as tx:
        standings = {item.key: item for item in await accounts.load_all(tx, TERMS)}
        for key in (KEY, OTHER):
            account = await accounts.load(tx, key, TERMS)
            assert standings[key] == account
    assert (standings[KEY].in_use.minute, standings[KEY].day.used) == (1, 4)


async def test_old_calls_are_deleted_and_the_day_is_as_before(database, clock):
    for _ in range(4):
        await call(database)
    await call(database, user="U2")
    clock.advance(24 * HOUR)
    await call(database)
    clock.advance(2.5 * HOUR)
    before = (await the_account(database)).day
    await tidy(database)
    assert await count(database, quota_calls) == 6
    clock.advance(0.6 * HOUR)
    await tidy(database)
    assert await count(database, quota_calls) == 1
    assert (await the_account(database)).day.used == before.used == 1
    assert (await call(database)).number == 7


async def test_numbers_go_on_when_no_single_call_is_left(database, clock):
    await call(database)
    clock.advance(40 * HOUR)
    await tidy(database)
    assert await count(database, quota_calls) == 0
    assert (await the_account(database)).day.used == 0
    assert (await call(database)).number == 2
    assert (await the_account(database)).day.used == 1


@pytest.mark.parametrize("told_hours", [1, 23])
async def test_the_day_in_sql_is_the_models(database, clock, told_hours):
    """A told reset that has passed begins the day, in the query as in `day_begins_at`."""

    for _ in range(3):
        await call(database)
    last = await call(database)
    seconds = int(told_hours * HOUR)
    day = reported_day(
        ReportedLimits(10_000, 9_000, seconds), clock.now().timestamp(), last.number, 0
    )
    async with database.autocommit() as tx:
        await quotas.note_reported(tx, last, day)
    assert (await the_account(database)).day.used == 1_000
    clock.advance(seconds + 20)
    assert (await the_account(database)).day.used == 0
    await call(database)
    assert (await the_account(database)).day.used == 1
