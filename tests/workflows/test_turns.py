"""Tests that the gateway's clients take turns, both with SQLite and with PostgreSQL."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from bot.errors import QuotaExhausted
from bot.gateway.turns import Turns
from bot.organizations.rules import OrganizationKey
from bot.quotas.guard import Guard
from bot.quotas.rules.limits import LIMITS, Limit, LimitKind, Limits, Plan
from bot.quotas.rules.quota import Terms
from bot.quotas.store import accounts, ledger
from bot.services.calls import CallCause
from bot.services.errors import ServiceTimeout
from bot.tasks import Tasks
from tests.support.virtual import CountedDatabase, virtual_time

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.ENTERPRISE)
SHARES = {"quarter": 0.25}
PATIENCE = 60


@pytest.fixture
async def database(database_url, clock):
    database = CountedDatabase(database_url, clock)
    async with virtual_time(clock, database):
        yield database
    await database.close()


class Process:
    """A process that shares a database with other processes but has a separate guard and queue."""

    def __init__(self, database, clock) -> None:
        self.tasks = Tasks()
        self.guard = Guard(database, clock, TERMS, self.tasks)
        self.turns = Turns(self.guard, SHARES)

    def call(self, client="a", seconds=0.0, key=KEY, **rest):
        return self.turns.call(key, client, seconds, **rest)

    async def make(self, client="a", seconds=0.0, *, log=None, **rest) -> None:
        async with self.call(client, seconds, **rest) as grant:
            await grant.responded()
            if log is not None:
                log.append(client)


@pytest.fixture
async def processes(database, clock):
    processes = [Process(database, clock) for _ in range(3)]
    yield processes
    for process in processes:
        await process.tasks.drain(PATIENCE)


async def use_up(process, calls=80, client="a") -> None:
    for _ in range(calls):
        await process.make(client)


async def test_crowd_of_clients_leaves_connections_to_people(database_url, clock):
    database = CountedDatabase(database_url, clock, pool_size=4)
    process = Process(database, clock)
    await use_up(process)
    crowd = [process.make(f"client-{number % 12}") for number in range(60)]
    results = await asyncio.gather(*crowd, return_exceptions=True)
    assert {type(result) for result in results} == {QuotaExhausted}
    assert database.most_under_way == 1
    await process.tasks.drain(PATIENCE)
    await database.close()


async def test_share_bounds_calls_at_once(processes):
    async with AsyncExitStack() as running:
        for _ in range(2):
            grant = await running.enter_async_context(processes[0].call("quarter"))
            await grant.responded()
        with pytest.raises(QuotaExhausted) as full:
            await processes[1].make("quarter")
        assert full.value.limit_kind == "concurrent"


async def test_stalled_service_gets_one_call_at_a_time(processes, database, clock):
    for _ in range(4):
        with pytest.raises(ServiceTimeout):
            async with processes[0].call():
                raise ServiceTimeout("inventory", "No answer.")
    clock.advance(16)
    async with processes[0].call():
        for seconds in (0.0, 2.0):
            with pytest.raises(QuotaExhausted, match="limit of 1 call at once for") as full:
                await processes[1].make("b", seconds)
            assert full.value.limit_kind == "concurrent"
        with pytest.raises(QuotaExhausted, match="limit of 1 call at once for"):
            async with processes[1].guard.call(KEY, CallCause("check", "U1")):
                pass
    await processes[1].tasks.drain(PATIENCE)


async def test_client_that_has_used_less_goes_first(processes, clock):
    await use_up(processes[0], 40, "greedy")
    clock.advance(20)
    await use_up(processes[0], 30, "greedy")
    await use_up(processes[0], 10, "modest")
    log: list[str] = []
    async with asyncio.TaskGroup() as group:
        for name in ("greedy", "greedy", "modest", "modest", "new", "new"):
            process = processes[0]
            group.create_task(process.make(name, 45.0, log=log))
            await asyncio.sleep(0)
    assert sorted(log[:2]) == ["new", "new"]
    assert sorted(log[2:4]) == ["modest", "modest"]


async def test_client_that_arrives_while_calls_are_granted_waits_behind_one_with_less_use(
    processes,
):
    process = processes[0]
    await use_up(process, 20, "busy")
    log: list[str] = []
    granted = asyncio.Event()

    async def first() -> None:
        await process.make("modest", 45.0, log=log)
        granted.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(first())
        for _ in range(9):
            group.create_task(process.make("modest", 45.0, log=log))
        await granted.wait()
        for _ in range(5):
            group.create_task(process.make("busy", 45.0, log=log))
    assert log == ["modest"] * 10 + ["busy"] * 5


async def test_full_organization_declines_from_memory(processes, monkeypatch):
    process, asked = processes[0], []
    await use_up(process)
    reserve = process.guard.reserve

    async def counted(*what):
        asked.append(what)
        return await reserve(*what)

    monkeypatch.setattr(process.guard, "reserve", counted)
    for name in "abc" * 100:
        with pytest.raises(QuotaExhausted) as full:
            await process.make(name)
    assert full.value.limit_kind == "minute"
    assert len(asked) == 1
    await process.make("a", key=OrganizationKey("eu", "11"))


async def test_call_waits_for_a_slot_of_the_day_that_is_free_in_time(processes, clock, monkeypatch):
    process = processes[0]
    # With a sliding day, the slots become free one by one.
    monkeypatch.setitem(LIMITS, Plan.ENTERPRISE, Limits(100, 10, 10))
    await use_up(process, 8)
    async with process.guard.database.read_only() as tx:
        account = await accounts.load(tx, KEY, TERMS)
        free_at = await ledger.free_at(tx, account, Limit(LimitKind.DAY, 8))
    clock.advance(free_at - account.now - 20)
    with pytest.raises(QuotaExhausted):
        await process.make("a", 10.0)
    began = clock.monotonic()
    await process.make("a", 30.0)
    assert 19 <= clock.monotonic() - began <= 22


async def test_share_that_is_used_up_stands_in_nobodys_way(processes):
    process = processes[0]
    await use_up(process, 20, "quarter")
    waiting = asyncio.create_task(process.make("quarter", 70.0))
    await asyncio.sleep(0)
    await use_up(process, 10, "a")
    assert not waiting.done()
    await waiting
