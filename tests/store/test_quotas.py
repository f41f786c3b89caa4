"""Tests the call ledger, and how calls are counted by hour, by person and by kind of call."""

import pytest
from sqlalchemy import event, func, select, update

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import LimitKind, Plan, reported_day
from bot.quotas.rules.quota import HourOfCalls, IncidentDetail, NotNow, Terms
from bot.quotas.store import accounts, incidents
from bot.quotas.store import ledger as quotas
from bot.quotas.store.ledger import TIDY_JOB, CallRequest, Reservation
from bot.quotas.tables import incidents as incidents_table
from bot.quotas.tables import quota_calls
from bot.services.calls import CallCause, CallClass, ReportedLimits
from bot.store.engine import Database
from bot.store.job_loop import Lease
from bot.store.jobs import Job

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.FREE)


def a_request(key=KEY, cause=CallCause("list", "U1")) -> CallRequest:  # noqa: B008
    return CallRequest(key, cause, TERMS)


async def reserve(database, **wanted) -> Reservation | NotNow:
    request = a_request(**wanted)
    is_probe = request.cause.call_class is CallClass.PROBE
    async with database.transaction() if is_probe else database.autocommit() as tx:
        return await quotas.reserve(tx, request, 0.0, lambda *_: True)


async def settle(database, reservation, seconds_since_headers=0.0) -> None:
    async with database.transaction() as tx:
        await quotas.settle(tx, [(reservation, seconds_since_headers)])


async def use_up(database, count, **wanted) -> None:
    for _ in range(count):
        await settle(database, await reserve(database, **wanted))


async def test_the_plan_set_is_in_force_and_wins(database):
    async with database.transaction() as tx:
        await quotas.set_plan(tx, await accounts.lock(tx, KEY), Plan.STANDARD)
    assert await plan_of(database) is Plan.STANDARD
    for _ in range(10):
        assert isinstance(await reserve(database), Reservation)
    async with database.transaction() as tx:
        await quotas.set_plan(tx, await accounts.lock(tx, KEY), Plan.FREE)
    assert await plan_of(database) is Plan.FREE
    refused = await reserve(database)
    assert (refused.kind, refused.limits[-1].most) == (LimitKind.CONCURRENT, 5)


@pytest.mark.parametrize("seconds_since_headers", [0.0, 3.0])
async def test_a_slot_of_the_minute_is_free_60_05_seconds_after_the_headers(
    database, clock, seconds_since_headers
):
    await settle(database, await reserve(database), seconds_since_headers)
    clock.advance(60.04 - seconds_since_headers)
    assert (await the_account(database, KEY)).in_use.minute == 1
    clock.advance(0.02)
    assert (await the_account(database, KEY)).in_use.minute == 0


async def plan_of(database) -> Plan:
    async with database.read_only() as tx:
        return (await accounts.load(tx, KEY, TERMS)).plan


async def told(database, clock, number, remaining, limit=500) -> None:
    day = reported_day(
        ReportedLimits(limit, remaining, 3600), clock.now().timestamp(), number, unsure=0
    )
    reservation = await reserve(database)
    async with database.transaction() as tx:
        await quotas.settle(tx, [(reservation, 0.0)])
        await quotas.note_reported(tx, reservation, day)


async def test_the_services_numbers_apply_until_their_reset(database, clock):
    await told(database, clock, number=1, remaining=1)
    assert isinstance(await reserve(database), Reservation)
    refused = await reserve(database)
    assert refused.kind is LimitKind.DAY
    assert refused.free_at == pytest.approx(clock.now().timestamp() + 3601)
    clock.advance(3602)
    await reserve(database)
    async with database.read_only() as tx:
        assert (await accounts.load(tx, KEY, TERMS)).in_use.day == 1


async def test_earlier_answer_does_not_undo_a_later_report(database, clock):
    await told(database, clock, number=2, remaining=7)
    await told(database, clock, number=1, remaining=400)
    async with database.transaction() as tx:
        assert (await accounts.load(tx, KEY, TERMS)).reported.remaining == 7


async def test_a_lowered_day_holds_until_the_service_tells_or_a_plan_is_set(database):
    async with database.transaction() as tx:
        account = await accounts.load_locked(tx, KEY, TERMS)
        await quotas.change(tx, account.id, lowered_day=3)
    await use_up(database, 3)
    refused = await reserve(database)
    assert (refused.kind, refused.limits[-1].most) == (LimitKind.DAY, 3)
    async with database.transaction() as tx:
        await quotas.set_plan(tx, await accounts.lock(tx, KEY), Plan.FREE)
    assert isinstance(await reserve(database), Reservation)


async def test_a_reservation_is_two_statements_and_its_release_one(database):
    await use_up(database, 1)
    statements = []
    engine = database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *seen: statements.append(seen[2]))
    reservation = await reserve(database)
    reserved = len(statements)
    async with database.autocommit() as tx:
        await quotas.settle(tx, [(reservation, 0.0)])
    assert (reserved, len(statements)) == (2, 3)


@pytest.mark.parametrize("others", [2, 4, 5])
async def test_a_call_whose_number_is_taken_counts_the_others_and_takes_the_next(
    database, monkeypatch, others
):
    first = await reserve(database)
    async with database.read_only() as tx:
        seen = [await accounts.load(tx, KEY, TERMS)]
    await settle(database, first)
    for _ in range(others):
        await reserve(database)

    async def load(*given):
        return seen.pop() if seen else await accounts.load(*given)

    monkeypatch.setattr(quotas, "load", load)
    result = await reserve(database)
    if others == 5:
        assert (result.kind, result.limits[-1].most) == (LimitKind.CONCURRENT, 5)
    else:
        assert (result.number, result.account.in_use.concurrent) == (others + 2, min(others + 1, 4))


OTHER = OrganizationKey("com", "11")
PREMIUM = Terms(lambda _key: Plan.PREMIUM)
HOUR = 3600.0


async def call(database, key=KEY, kind="list", user="U1") -> Reservation:
    request = CallRequest(key, CallCause(kind, user), PREMIUM)
    async with database.autocommit() as tx:
        reservation = await quotas.reserve(tx, request, 0.0, lambda *_: True)
        assert isinstance(reservation, Reservation)
        await quotas.settle(tx, [(reservation, 0.0)])
    return reservation


async def the_account(database, key=KEY):
    async with database.read_only() as tx:
        return await accounts.load(tx, key, PREMIUM)


async def tidy(database) -> None:
    async with database.read_only() as tx:
        job = Job(TIDY_JOB, TIDY_JOB, TIDY_JOB, await tx.now())
    await quotas.tidy(job, Lease(database, "", job))


async def count(database, table) -> int:
    async with database.read_only() as tx:
        return await tx.connection.scalar(select(func.count()).select_from(table))


async def test_calls_are_shown_by_hour_kind_and_person(database, clock):
    began = clock.now().timestamp()
    await call(database)
    await call(database)
    await call(database, kind="check", user=None)
    clock.advance(HOUR)
    await call(database)
    await call(database, OTHER)
    async with database.read_only() as tx:
        account = await accounts.load(tx, KEY, PREMIUM)
        hours = await accounts.hours_since(tx, account, began)
    assert sorted(hours, key=str) == sorted(
        [
            HourOfCalls(began, "list", "U1", 2),
            HourOfCalls(began, "check", "", 1),
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
        standings = await accounts.load_all(tx, PREMIUM)
        for key in (KEY, OTHER):
            account = await accounts.load(tx, key, PREMIUM)
            assert standings[key] == account
    assert (standings[KEY].in_use.minute, standings[KEY].in_use.day) == (1, 4)


async def test_old_calls_are_deleted_and_the_day_is_as_before(database, clock):
    for _ in range(4):
        await call(database)
    await call(database, user="U2")
    clock.advance(24 * HOUR)
    await call(database)
    clock.advance(2.5 * HOUR)
    before = (await the_account(database)).in_use.day
    await tidy(database)
    assert await count(database, quota_calls) == 6
    clock.advance(0.6 * HOUR)
    await tidy(database)
    assert await count(database, quota_calls) == 2
    assert (await the_account(database)).in_use.day == before == 1
    assert (await call(database)).number == 7


async def test_newest_call_is_kept_and_the_numbers_go_on(database, clock):
    await call(database)
    clock.advance(40 * HOUR)
    await tidy(database)
    assert await count(database, quota_calls) == 1
    assert (await the_account(database)).in_use.day == 0
    assert (await call(database)).number == 2
    assert (await the_account(database)).in_use.day == 1


@pytest.mark.parametrize("told_hours", [1, 23])
async def test_the_day_in_sql_is_the_models(database, clock, told_hours):
    """The SQL query and the function `day_began_at` agree on when a day begins."""

    for _ in range(3):
        await call(database)
    last = await call(database)
    seconds = int(told_hours * HOUR)
    day = reported_day(
        ReportedLimits(10_000, 9_000, seconds), clock.now().timestamp(), last.number, 0
    )
    async with database.autocommit() as tx:
        await quotas.note_reported(tx, last, day)
    assert (await the_account(database)).in_use.day == 1_000
    clock.advance(seconds + 20)
    assert (await the_account(database)).in_use.day == 0
    await call(database)
    assert (await the_account(database)).in_use.day == 1


OWN = {"minute": [1, 100]}


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ({"own": OWN, "words": "no", "sent_code": 44}, {"words": "no", "sent_code": 44}),
        ({"own": OWN, "of_a_later_version": 1}, {}),
        ({}, {"own": {}}),
    ],
)
async def test_one_incident_that_says_less_keeps_no_other_from_being_read(database, stored, read):
    async with database.transaction() as tx:
        for name, refused_at in (("1", 10.0), ("2", 20.0)):
            account = await accounts.load_locked(tx, OrganizationKey("eu", name), TERMS)
            detail = IncidentDetail(OWN, words=name)
            await incidents.count_one(tx, account.id, 44, detail, refused_at, refused_at)
        first = incidents_table.c.id == 1
        await tx.connection.execute(update(incidents_table).where(first).values(detail=stored))
    async with database.read_only() as tx:
        one, other = await incidents.all_open(tx)
    assert one.detail == IncidentDetail(**{"own": OWN, **read})
    assert other.detail == IncidentDetail(OWN, words="2")


@pytest.mark.parametrize(("seconds", "is_new"), [(599, False), (601, True)])
async def test_incident_is_reopened_within_ten_minutes(sqlite_url, clock, seconds, is_new):
    database = Database(sqlite_url, clock)
    detail = IncidentDetail(OWN)
    async with database.transaction() as tx:
        account = await accounts.load_locked(tx, KEY, TERMS)
        at = (await tx.now()).timestamp()
        await incidents.count_one(tx, account.id, 44, detail, at, at)
        (incident,) = await incidents.all_open(tx)
        await incidents.close(tx, incident)
    clock.advance(seconds)
    async with database.transaction() as tx:
        at = (await tx.now()).timestamp()
        await incidents.count_one(tx, account.id, 44, detail, at, at)
        number = await tx.connection.scalar(select(func.count()).select_from(incidents_table))
        assert number == (2 if is_new else 1)
    await database.close()
