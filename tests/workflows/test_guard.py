"""Tests that the guard counts every inventory call and handles responses with status 429."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta

import pytest
from sqlalchemy import event

from bot.errors import CommitUnknown, DatabaseUnavailable, OrganizationBlocked, QuotaExhausted
from bot.organizations.rules import OrganizationKey
from bot.quotas.clock import DatabaseClock
from bot.quotas.guard import Guard
from bot.quotas.messages import incident_card
from bot.quotas.rules.limits import MINUTE_MARGIN, LimitKind, Plan
from bot.quotas.rules.quota import Terms
from bot.quotas.store import accounts, incidents
from bot.quotas.store.ledger import CallRequest, Reservation
from bot.services.calls import GATEWAY, PROBE, CallCause, ReportedLimits
from bot.services.errors import (
    CredentialsRefused,
    RateLimited,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.tasks import Tasks
from tests.support.clock import JumpingClock

KEY = OrganizationKey("eu", "10")
PERSON = CallCause("list", "U1")
plans = {KEY: Plan.FREE}
TERMS = Terms(plans.__getitem__)


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    tasks = Tasks()
    yield tasks
    await tasks.drain(5)


@pytest.fixture
def guard(database, clock, tasks) -> Guard:
    return Guard(database, clock, TERMS, tasks)


async def go_wrong(guard, error, *, headers=True, told=None, at_the_end=lambda: None) -> None:
    """Use the guard as the client does when a call fails with `error`."""
    async with guard.call(KEY, PERSON) as grant:
        if headers:
            await grant.responded(told)
        if isinstance(error, RateLimited):
            await grant.refused(error)
        at_the_end()
        raise error


def a_429(code=44, message="blocked") -> RateLimited:
    return RateLimited("inventory", "Declined.", code=code, message=message)


async def be_refused(guard, code=44, message="blocked", told=None) -> None:
    with pytest.raises(RateLimited):
        await go_wrong(guard, a_429(code, message), told=told)


async def test_first_calls_look_at_the_clock_together(database, clock, tasks, monkeypatch):
    guard = Guard(database, clock, Terms(lambda _key: Plan.FREE), tasks)
    looks = []
    follow = DatabaseClock.follow

    async def noted(self, database):
        looks.append(1)
        await follow(self, database)

    monkeypatch.setattr(DatabaseClock, "follow", noted)

    async def call(number: int) -> None:
        async with guard.call(OrganizationKey("eu", str(number)), PERSON) as grant:
            await grant.responded()

    await asyncio.gather(*(call(number) for number in range(8)))
    # Those that come while the first one looks are sure only of a second look.
    assert len(looks) <= 2


def break_down(database, monkeypatch) -> None:
    @asynccontextmanager
    async def broken():
        raise DatabaseUnavailable
        yield

    for way in ("transaction", "autocommit"):
        monkeypatch.setattr(database, way, broken)


@asynccontextmanager
async def in_flight(guard, count):
    async with AsyncExitStack() as stack:
        grants = [await stack.enter_async_context(guard.call(KEY, PERSON)) for _ in range(count)]
        yield stack
        for grant in grants:
            await grant.responded()


async def standing(database):
    async with database.read_only() as tx:
        return await accounts.load(tx, KEY, TERMS)


async def test_a_person_waits_two_seconds_for_a_line_and_not_longer(guard, clock):
    async with in_flight(guard, 5):
        began = clock.monotonic()
        with pytest.raises(
            QuotaExhausted, match=r"limit of 5 calls at once for .* has been reached"
        ) as caught:
            await call(guard)
        assert clock.monotonic() - began == pytest.approx(2.0)
        assert caught.value.limit_kind == "concurrent"


@pytest.mark.parametrize(
    "error",
    [
        ServiceTimeout("inventory", "Late."),
        ServiceUnreachable("inventory", "It broke."),
        asyncio.CancelledError(),
    ],
)
@pytest.mark.parametrize("headers", [True, False])
async def test_a_call_that_may_still_run_holds_its_slot(guard, database, clock, error, headers):
    with pytest.raises(type(error)):
        await go_wrong(guard, error, headers=headers)
    clock.advance(14.9)
    assert (await standing(database)).in_use.concurrent == 1
    clock.advance(0.2)
    assert (await standing(database)).in_use.concurrent == 0
    assert (await standing(database)).in_use.minute == 1
    clock.advance(60)
    assert (await standing(database)).in_use.minute == 0


@pytest.mark.parametrize(
    "error",
    [
        ServiceUnreachable("inventory", "No connection.", sent=False),
        CredentialsRefused("oauth", "The refresh token was rejected."),
        ServiceTimeout("oauth", "No token in time."),
    ],
    ids=["no connection", "no token", "no token in time"],
)
async def test_a_call_that_was_never_sent_gives_all_back(guard, database, error):
    with pytest.raises(type(error)):
        await go_wrong(guard, error, headers=False)
    now = await standing(database)
    assert (now.in_use.minute, now.in_use.concurrent) == (0, 0)


async def test_grant_may_be_sent_only_while_it_outlasts_the_call(guard, clock):
    async with guard.call(KEY, PERSON) as grant:
        assert grant.may_send()
        clock.advance(4.0)
        assert grant.may_send()
        clock.advance(1.1)
        assert not grant.may_send()
        await grant.responded()


async def test_fast_clock_frees_no_slot_early(database, clock, tasks):
    class FastClock(JumpingClock):
        def monotonic(self) -> float:
            return clock.monotonic() * 1.08

    guard = Guard(database, FastClock(), TERMS, tasks)
    async with guard.call(KEY, PERSON) as grant:
        await grant.responded()
        clock.advance(50)
    clock.advance(9.9)
    assert (await standing(database)).in_use.minute == 1


async def test_unwritten_refusal_is_written_though_nobody_asks(guard, database, monkeypatch, tasks):
    with pytest.raises(RateLimited):
        await go_wrong(guard, a_429(), at_the_end=lambda: break_down(database, monkeypatch))
    monkeypatch.undo()
    await tasks.drain(10)
    async with database.read_only() as tx:
        [incident] = await incidents.all_open(tx)
    assert incident.refusals == 1


async def test_no_call_is_granted_while_a_refusal_is_written(guard, database, monkeypatch):
    with pytest.raises(RateLimited):
        await go_wrong(guard, a_429(), at_the_end=lambda: break_down(database, monkeypatch))
    monkeypatch.undo()
    is_writing, go_on, transaction = asyncio.Event(), asyncio.Event(), database.transaction

    @asynccontextmanager
    async def slow():
        is_writing.set()
        await go_on.wait()
        async with transaction() as tx:
            yield tx

    monkeypatch.setattr(database, "transaction", slow)
    first = asyncio.create_task(call(guard))
    await is_writing.wait()
    second = asyncio.create_task(call(guard))
    await asyncio.wait({second}, timeout=0.05)
    go_on.set()
    results = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(result) for result in results] == [OrganizationBlocked] * 2


async def test_the_45s_own_headers_do_not_undo_what_its_message_lowered(guard, database):
    told = ReportedLimits(limit=2000, remaining=0, reset_seconds=100)
    await be_refused(guard, 45, "the limit is 1000", told)
    assert (await standing(database)).meters[LimitKind.DAY].limit == 1000


SCRIPT = CallCause(GATEWAY, background=True, client="script")
HOUR = 3600.0


async def call(guard, cause=PERSON, reported=None) -> None:
    async with guard.call(KEY, cause) as grant:
        await grant.responded(reported)


async def all_incidents(database):
    async with database.read_only() as tx:
        found = [await incidents.load(tx, str(number)) for number in range(1, 9)]
    return [item for item in found if item is not None]


async def test_own_use_belongs_to_the_services_day(guard, database, clock):
    for _ in range(40):
        await call(guard)
    clock.advance(10 * HOUR)
    # The day began two hours ago, and other programs have used it up.
    await call(guard, reported=ReportedLimits(1000, 1, int(22 * HOUR)))
    await be_refused(guard, 45)
    (incident,) = await all_incidents(database)
    assert incident.detail.own["day"] == [2, 1000]


async def test_after_a_reported_reset_one_call_finds_out_what_the_service_allows(guard, clock):
    await call(guard, reported=ReportedLimits(1000, 1, 3600))
    clock.advance(3602)
    # If the service's day is a sliding window, only a few calls are free again.
    assert await burst(guard, 5, taken=5) == (1, 0)
    await call(guard, reported=ReportedLimits(1000, 900, 3600))
    assert await burst(guard, 5, taken=5) == (5, 0)


async def the_cause(database) -> str:
    (incident,) = await all_incidents(database)
    return incident_card(incident, "Acme").text


async def test_calls_that_may_arrive_late_are_not_called_another_clients(guard, database, clock):
    for _ in range(5):
        with pytest.raises(ServiceTimeout):
            await go_wrong(guard, ServiceTimeout("inventory", "Late."), headers=False)
        clock.advance(20)
    clock.advance(80)
    for _ in range(95):
        await call(guard)
    await be_refused(guard, 44)
    assert "the service may have counted earlier ones too" in await the_cause(database)


async def test_calls_before_a_reported_reset_are_not_called_another_clients(guard, database, clock):
    for _ in range(99):
        await call(guard)
    await call(guard, reported=ReportedLimits(101, 1, 3600))
    clock.advance(3602)
    await be_refused(guard, 45)
    assert "the service may have counted earlier ones too" in await the_cause(database)


async def test_another_client_is_named_if_the_bots_calls_cannot_be_the_cause(guard, database):
    await call(guard)
    await be_refused(guard, 44)
    assert "*another client* used up the limit" in await the_cause(database)


async def burst(guard, calls: int, taken: int) -> tuple[int, int]:
    """Make calls at the same time, and return how many were sent and how many were refused."""
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
    assert (incident.refusals, incident.lowered.most) == (3, 7)
    clock.advance(24 * HOUR)
    # Another client may be the cause, or the service may have changed its limit.
    assert await burst(guard, 10, taken=10) == (10, 0)


async def most_of_a_minute(guard) -> int:
    """Make calls until the guard refuses a call, and return how many calls the guard allowed."""
    made = 0
    with suppress(QuotaExhausted):
        while True:
            await call(guard, SCRIPT)
            made += 1
    return made


async def test_block_by_another_program_leaves_it_room_for_an_hour(guard, clock):
    for _ in range(40):
        await call(guard, SCRIPT)
    await be_refused(guard, 44)
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

    await call(guard)
    monkeypatch.setattr(type(database), "transaction", unknown)
    await be_refused(guard, 44)
    await tasks.drain(10)
    (incident,) = await all_incidents(database)
    assert (incident.refusals, len(broken)) == (1, 1)


async def test_restarted_machine_whose_clock_was_set_back_waits_no_hours(guard, database, clock):
    for _ in range(100):
        await call(guard)
    behind = JumpingClock(clock.now() - timedelta(hours=2))
    database._clock = behind
    restarted = Guard(database, behind, TERMS, guard.tasks)
    with pytest.raises(QuotaExhausted) as caught:
        await call(restarted)
    assert caught.value.seconds == pytest.approx(60.05)


FREE = Terms(lambda _key: Plan.FREE)


async def test_calls_that_arrive_together_are_reserved_and_settled_together(database, clock, tasks):
    keys = [OrganizationKey("eu", f"{number}") for number in range(20)]
    guard = Guard(database, clock, FREE, tasks)
    for key in keys:
        async with guard.call(key, PERSON) as call:
            await call.responded()
    gate = asyncio.Barrier(len(keys))

    async def make(key) -> None:
        async with guard.call(key, CallCause(GATEWAY, background=True, client="a")) as call:
            await call.responded()
            await gate.wait()

    statements = []
    engine = database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *seen: statements.append(seen[2]))
    await asyncio.gather(*map(make, keys))
    # The first call starts at once, and the others share the next two statements.
    assert len(statements) <= 6
    async with database.read_only() as tx:
        accounts_now = await accounts.load_all(tx, FREE)
    assert {(one.in_use.minute, one.in_use.concurrent) for one in accounts_now.values()} == {(2, 0)}


async def test_calls_of_one_organization_that_arrive_together_keep_its_limits(database, guard):
    request = CallRequest(KEY, CallCause(GATEWAY, background=True, client="a"), TERMS)
    results = await asyncio.gather(*(guard.reserve(request) for _ in range(40)))
    granted = [result for result in results if isinstance(result, Reservation)]
    # Of the 5 calls at once, 4 are left to the background.
    assert len(granted) == 4
    assert sorted(one.number for one in granted) == [1, 2, 3, 4]


async def test_calls_are_stored_in_one_order_whatever_order_they_arrive_in(database, clock, tasks):
    # Otherwise, two processes could each wait for a call that the other has just stored.
    guard = Guard(database, clock, FREE, tasks)
    keys = [OrganizationKey("eu", f"{number}") for number in range(8)]
    for key in keys:
        async with guard.call(key, PERSON) as grant:
            await grant.responded()
    stored = []
    engine = database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *seen: stored.append(seen[2:4]))
    cause = CallCause(GATEWAY, background=True, client="a")
    requests = [CallRequest(key, cause, FREE) for key in reversed(keys)]
    await asyncio.gather(*map(guard.reserve, requests))
    inserts = [values for statement, values in stored if statement.startswith("INSERT")]
    # A row has eight columns, the first of which is the organization.
    organizations = [values[::8] for values in inserts]
    assert max(map(len, organizations)) > 1
    assert all(list(values) == sorted(values) for values in organizations)
