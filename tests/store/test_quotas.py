"""The ledger of calls, on SQLite and PostgreSQL."""

import pytest
from sqlalchemy import event

from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.blocks import BlockCode, Blocks
from bot.model.quotas.calls import CallCause
from bot.model.quotas.days import reported_day
from bot.model.quotas.plans import CallClass, Plan
from bot.model.quotas.quota import Full, Granted, LimitKind, Terms
from bot.model.quotas.reported import ReportedLimits
from bot.store import accounts, quotas
from bot.store.quotas import CallRequest, NotNow, Reservation

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.FREE, timeout_seconds=10.0)
HOLD = 15.0
HOUR = 3600.0


def a_request(key=KEY, call_class=CallClass.PERSON) -> CallRequest:
    cause = CallCause("list", "U1")
    return CallRequest(key, cause, call_class, TERMS)


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


async def test_calls_are_numbered_and_counted(database):
    first, second = await reserve(database), await reserve(database)
    assert (first.number, second.number) == (1, 2)
    assert first.granted == Granted(0, 0, 0)
    assert second.granted == Granted(1, 1, 1)


async def test_a_refused_reservation_leaves_nothing(database):
    for _ in range(5):
        await reserve(database)
    refused = await reserve(database)
    assert refused.reason.kind is LimitKind.CONCURRENT
    async with database.transaction() as tx:
        assert (await accounts.load(tx, KEY, TERMS)).made == 5


async def test_the_minute_is_full_at_a_hundred_and_frees_sixty_seconds_after_the_headers(
    database, clock
):
    await use_up(database, 100)
    refused = await reserve(database)
    assert isinstance(refused.reason, Full)
    assert refused.reason.free_at == pytest.approx(clock.now().timestamp() + 60.05)
    clock.advance(60.04)
    assert isinstance(await reserve(database), NotNow)
    clock.advance(0.02)
    assert isinstance(await reserve(database), Reservation)


async def test_the_time_from_the_headers_to_the_end_of_the_body_is_not_held_twice(database, clock):
    reservation = await reserve(database)
    clock.advance(4)
    await settle(database, reservation, seconds_since_headers=3.0)
    clock.advance(57.04)
    assert (await reserve(database)).granted.minute == 1
    clock.advance(0.02)
    assert (await reserve(database)).granted.minute == 1


async def test_an_unsettled_call_holds_permit_and_slot_until_timeout_and_grace(database, clock):
    for _ in range(5):
        await reserve(database)
    clock.advance(14.9)
    assert isinstance(await reserve(database), NotNow)
    clock.advance(0.2)
    assert (await reserve(database)).granted == Granted(minute=5, day=5, concurrent=0)
    clock.advance(60)
    assert (await reserve(database)).granted.minute == 1


async def test_the_day_is_any_25_hours_and_says_when_it_has_room(database, clock):
    for _ in range(10):
        await use_up(database, 100)
        clock.advance(61)
    refused = await reserve(database)
    assert refused.reason.kind is LimitKind.DAY
    wait = refused.reason.free_at - clock.now().timestamp()
    assert wait == pytest.approx(25 * HOUR + HOLD - 610, abs=1)
    clock.advance(wait - 0.5)
    assert isinstance(await reserve(database), NotNow)
    clock.advance(0.6)
    assert isinstance(await reserve(database), Reservation)


async def test_the_background_is_told_when_its_share_of_the_day_has_room(database, clock):
    for _ in range(9):
        await use_up(database, 100)
        clock.advance(61)
    refused = await reserve(database, call_class=CallClass.BACKGROUND)
    # 900 of 800 are used: 101 calls have to leave the day, the last one a minute later.
    wait = refused.reason.free_at - clock.now().timestamp()
    assert wait == pytest.approx(25 * HOUR + HOLD - 8 * 61, abs=1)


async def test_organizations_do_not_share(database):
    await use_up(database, 100)
    other = OrganizationKey("com", "10")
    assert isinstance(await reserve(database, key=other), Reservation)
    assert isinstance(await reserve(database, key=OrganizationKey("eu")), Reservation)


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
    assert (refused.reason.kind, refused.reason.allowed) == (LimitKind.CONCURRENT, 5)


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
    assert refused.reason.kind is LimitKind.DAY
    assert refused.reason.free_at == pytest.approx(clock.now().timestamp() + 3601)
    clock.advance(3602)
    assert (await reserve(database)).granted.day == 0


async def test_the_answer_of_an_earlier_call_does_not_undo_what_a_later_one_told(database, clock):
    await told(database, clock, number=2, remaining=7)
    await told(database, clock, number=1, remaining=400)
    async with database.transaction() as tx:
        assert (await accounts.load(tx, KEY, TERMS)).reported.remaining == 7


async def test_a_lowered_day_holds_until_the_service_tells_or_a_plan_is_set(database):
    async with database.transaction() as tx:
        await quotas.lower_day(tx, await accounts.load_locked(tx, KEY, TERMS), 3)
        await quotas.lower_day(tx, await accounts.load_locked(tx, KEY, TERMS), 300)
    await use_up(database, 3)
    refused = await reserve(database)
    assert (refused.reason.kind, refused.reason.allowed) == (LimitKind.DAY, 3)
    async with database.transaction() as tx:
        await quotas.set_plan(tx, KEY, Plan.FREE)
    assert isinstance(await reserve(database), Reservation)


async def test_a_block_is_there_for_everybody_and_lets_one_probe_through(database, clock):
    async with database.transaction() as tx:
        account = await accounts.load_locked(tx, KEY, TERMS)
        blocks = Blocks().refused(BlockCode.MINUTE, account.now, probe=False)
        await quotas.save_blocks(tx, account, blocks)
    refused = await reserve(database)
    assert refused.reason.code is BlockCode.MINUTE
    assert refused.reason.until == pytest.approx(refused.now + 60)
    assert isinstance(await reserve(database, call_class=CallClass.PROBE), NotNow)
    clock.advance(60.1)
    assert isinstance(await reserve(database), NotNow)
    assert isinstance(await reserve(database, call_class=CallClass.PROBE), Reservation)
    assert isinstance(await reserve(database, call_class=CallClass.PROBE), NotNow)
    clock.advance(HOLD + 0.1)
    assert isinstance(await reserve(database, call_class=CallClass.PROBE), Reservation)


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
