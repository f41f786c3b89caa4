"""The ledger of calls, on SQLite and PostgreSQL."""

import pytest
from sqlalchemy import event

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import CallClass, LimitKind, Plan, reported_day
from bot.quotas.rules.quota import NotNow, Terms
from bot.quotas.store import accounts
from bot.quotas.store import ledger as quotas
from bot.quotas.store.ledger import CallRequest, Reservation
from bot.services.calls import CallCause, ReportedLimits

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.FREE, timeout_seconds=10.0)


def a_request(key=KEY, cause=CallCause("list", "U1")) -> CallRequest:  # noqa: B008
    return CallRequest(key, cause, TERMS)


async def reserve(database, **wanted) -> Reservation | NotNow:
    request = a_request(**wanted)
    is_probe = request.call_class is CallClass.PROBE
    async with database.transaction() if is_probe else database.autocommit() as tx:
        return await quotas.reserve(tx, request)


async def settle(database, reservation, seconds_since_headers=0.0) -> None:
    async with database.transaction() as tx:
        await quotas.settle(tx, reservation, seconds_since_headers)


async def use_up(database, count, **wanted) -> None:
    for _ in range(count):
        await settle(database, await reserve(database, **wanted))


async def test_the_plan_set_is_in_force_and_wins(database):
    async with database.transaction() as tx:
        await quotas.set_plan(tx, KEY, Plan.STANDARD)
    assert await plan_of(database) is Plan.STANDARD
    for _ in range(10):
        assert isinstance(await reserve(database), Reservation)
    async with database.transaction() as tx:
        await quotas.set_plan(tx, KEY, Plan.FREE)
    assert await plan_of(database) is Plan.FREE
    refused = await reserve(database)
    assert (refused.kind, refused.allowed) == (LimitKind.CONCURRENT, 5)


async def plan_of(database) -> Plan:
    async with database.read_only() as tx:
        return (await accounts.load(tx, KEY, TERMS)).plan


async def told(database, clock, number, remaining, limit=500) -> None:
    day = reported_day(
        ReportedLimits(limit, remaining, 3600), clock.now().timestamp(), number, unsure=0
    )
    reservation = await reserve(database)
    async with database.transaction() as tx:
        await quotas.settle(tx, reservation, 0.0)
        await quotas.note_reported(tx, reservation, day)


async def test_what_the_service_tells_is_in_force_until_its_reset(database, clock):
    await told(database, clock, number=1, remaining=1)
    assert isinstance(await reserve(database), Reservation)
    refused = await reserve(database)
    assert refused.kind is LimitKind.DAY
    assert refused.free_at == pytest.approx(clock.now().timestamp() + 3601)
    clock.advance(3602)
    await reserve(database)
    async with database.read_only() as tx:
        assert (await accounts.load(tx, KEY, TERMS)).day.used == 1


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
    assert (refused.kind, refused.allowed) == (LimitKind.DAY, 3)
    async with database.transaction() as tx:
        await quotas.set_plan(tx, KEY, Plan.FREE)
    assert isinstance(await reserve(database), Reservation)


async def test_a_reservation_is_two_statements_and_its_release_one(database):
    await use_up(database, 1)
    statements = []
    engine = database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *seen: statements.append(seen[2]))
    reservation = await reserve(database)
    reserved = len(statements)
    async with database.autocommit() as tx:
        await quotas.settle(tx, reservation, 0.0)
    assert (reserved, len(statements)) == (2, 3)
