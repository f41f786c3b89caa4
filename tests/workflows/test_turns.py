"""The turns of the gateway's clients, over all processes, on SQLite and PostgreSQL."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from bot.background.tasks import Tasks
from bot.errors import OrganizationBlocked, QuotaExhausted
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.calls import GATEWAY, CallCause
from bot.model.quotas.plans import Plan
from bot.model.quotas.quota import Terms
from bot.model.quotas.reported import ReportedLimits
from bot.service_errors import RateLimited, ServiceTimeout
from bot.store import accounts, gateway_waits
from bot.workflows.quotas.guard import Guard
from bot.workflows.quotas.incidents import Incidents
from bot.workflows.turns import ClientGone, Stopping, Turns, Wait
from tests.support.virtual import CountedDatabase, virtual_time

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.ENTERPRISE, timeout_seconds=10.0)
SHARES = {"quarter": 0.25}
PATIENCE = 60


@pytest.fixture
async def database(database_url, clock):
    database = CountedDatabase(database_url, clock, own_clock=False)
    async with virtual_time(clock, database):
        yield database
    await database.close()


class Process:
    """A guard and a line of its own, on the shared database."""

    def __init__(self, database, clock) -> None:
        self.tasks = Tasks()
        self.guard = Guard(database, clock, TERMS, Incidents(TERMS), self.tasks)
        self.turns = Turns(database, clock, TERMS, SHARES, self.tasks)

    def call(self, client="a", seconds=0.0, **rest):
        wait = Wait(KEY, client, seconds, **rest)
        cause = CallCause(GATEWAY, background=True, client=client)
        return self.guard.call(KEY, cause, lambda attempt: self.turns.take(wait, attempt))

    async def make(self, client="a", seconds=0.0, *, log=None, **rest) -> None:
        async with self.call(client, seconds, **rest) as grant:
            await grant.responded()
            if log is not None:
                log.append(client)
        self.turns.call_ended(KEY)


@pytest.fixture
async def processes(database, clock):
    processes = [Process(database, clock) for _ in range(3)]
    yield processes
    for process in processes:
        await process.tasks.drain(PATIENCE)


async def left(process, database) -> int:
    """How many wait once the process has tidied up after those who do not."""
    await process.tasks.drain(PATIENCE)
    return await waiting(database)


async def waiting(database) -> int:
    async with database.read_only() as tx:
        return await gateway_waits.count_waiting(tx)


async def use_up(process, calls=80, client="a") -> None:
    for _ in range(calls):
        await process.make(client)


async def test_client_without_room_is_told_when_there_is_some(processes, clock):
    await use_up(processes[0])
    with pytest.raises(QuotaExhausted) as full:
        await processes[1].make("b")
    assert full.value.limit_kind == "minute"
    assert full.value.seconds == pytest.approx(60.05, abs=0.1)


async def test_client_that_waits_gets_the_slot_when_it_is_free(processes, clock, database):
    await use_up(processes[0])
    clock.advance(1)
    await processes[1].make("b", 60.0)
    await processes[1].make("b", 60.0)
    assert clock.monotonic() == pytest.approx(60.05, abs=0.2)
    assert await left(processes[1], database) == 0


async def test_client_that_waited_in_vain_is_told_the_same(processes, clock, database):
    await use_up(processes[0])
    with pytest.raises(QuotaExhausted) as full:
        await processes[1].make("b", 10.0)
    assert full.value.seconds == pytest.approx(50.05, abs=0.7)
    assert 10 <= clock.monotonic() < 11
    assert await left(processes[1], database) == 0


async def test_people_have_a_fifth_whatever_clients_want(processes):
    await use_up(processes[0])
    with pytest.raises(QuotaExhausted):
        await processes[0].make()
    for _ in range(20):
        await check(processes[1])
    with pytest.raises(QuotaExhausted) as full:
        await check(processes[1])
    assert full.value.limit_kind == "minute"


async def check(process) -> None:
    async with process.guard.call(KEY, CallCause("check", "U1")) as grant:
        await grant.responded()


async def test_crowd_of_clients_leaves_connections_to_people(database_url, clock):
    database = CountedDatabase(database_url, clock, own_clock=False, pool_size=4)
    process = Process(database, clock)
    await use_up(process)
    crowd = [process.make(f"client-{number % 12}") for number in range(60)]
    results = await asyncio.gather(*crowd, return_exceptions=True)
    assert {type(one) for one in results} == {QuotaExhausted}
    assert database.most_under_way == 2
    await process.tasks.drain(PATIENCE)
    await database.close()


async def test_share_bounds_a_client_and_nobody_else(processes):
    await use_up(processes[0], 20, "quarter")
    with pytest.raises(QuotaExhausted) as full:
        await processes[1].make("quarter")
    assert full.value.limit_kind == "minute"
    assert "all 20 calls" in full.value.sentence
    await processes[1].make("other")


async def test_share_of_the_day_is_whole_again_after_a_reset(processes, clock):
    await use_up(processes[0], 19, "quarter")
    async with processes[0].call("quarter") as grant:
        await grant.responded()
        await grant.reported(ReportedLimits(120, 100, 3600))
    clock.advance(61)
    await use_up(processes[0], 4, "quarter")
    with pytest.raises(QuotaExhausted) as full:
        await processes[0].make("quarter")
    assert full.value.limit_kind == "day"
    clock.advance(3600)
    await use_up(processes[0], 4, "quarter")


async def test_share_bounds_calls_at_once(processes):
    async with AsyncExitStack() as running:
        for _ in range(2):
            grant = await running.enter_async_context(processes[0].call("quarter"))
            await grant.responded()
        with pytest.raises(QuotaExhausted) as full:
            await processes[1].make("quarter")
        assert full.value.limit_kind == "concurrent"


async def test_clients_wait_for_one_call_at_a_time_while_the_service_stands_still(
    processes, database, clock
):
    for _ in range(4):
        with pytest.raises(ServiceTimeout):
            async with processes[0].call():
                raise ServiceTimeout("inventory", "No answer.")
    clock.advance(16)
    async with processes[0].call():
        async with database.read_only() as tx:
            account = await accounts.load(tx, KEY, TERMS)
            assert (await gateway_waits.standing(tx, account)).room == 0
        for seconds in (0.0, 2.0):
            with pytest.raises(QuotaExhausted, match="isn't answering calls") as full:
                await processes[1].make("b", seconds)
            assert full.value.limit_kind == "concurrent"
        with pytest.raises(QuotaExhausted, match="so Gatehouse makes one at a time"):
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
            process = processes[len(name) % 3]
            group.create_task(process.make(name, 45.0, log=log))
            await asyncio.sleep(0)
    assert sorted(log[:2]) == ["new", "new"]
    assert sorted(log[2:4]) == ["modest", "modest"]


async def test_newcomer_does_not_go_before_those_who_wait(processes, clock, database):
    async with AsyncExitStack() as running:
        for _ in range(8):
            await (await running.enter_async_context(processes[0].call("a"))).responded()
        waiter = asyncio.create_task(processes[1].make("b", 30.0))
        while not await waiting(database):
            await asyncio.wait({waiter}, timeout=0)
        with pytest.raises(QuotaExhausted):
            await processes[2].make("a")
    processes[1].turns.call_ended(KEY)
    await waiter


async def test_place_of_a_dead_process_is_free_soon(processes, database, clock):
    await use_up(processes[0], 1)
    async with database.autocommit() as tx:
        await gateway_waits.join(tx, KEY, "dead", (await tx.now()).timestamp())
    assert await waiting(database) == 1
    clock.advance(2.1)
    assert await waiting(database) == 0
    await processes[0].make("a")


async def test_block_by_the_service_stops_clients_too(processes, database):
    with pytest.raises(RateLimited):
        await refused(processes[0])
    with pytest.raises(OrganizationBlocked) as blocked:
        await processes[1].make("b", 5.0)
    assert (blocked.value.code, blocked.value.seconds) == (44, pytest.approx(55, abs=1))


async def refused(process) -> None:
    async with process.call("a") as grant:
        await grant.responded()
        error = RateLimited("inventory", "Declined.", code=44, message="too many")
        await grant.refused(error)
        raise error


async def test_client_that_goes_away_leaves_the_line(processes, database):
    await use_up(processes[0])
    with pytest.raises(ClientGone):
        await processes[1].make("b", 60.0, is_gone=lambda: True)
    assert await left(processes[1], database) == 0


async def test_stop_sends_away_whoever_waits(database, clock):
    process = Process(database, clock)
    await use_up(process)
    waiter = asyncio.create_task(process.make("b", 60.0))
    while not process.turns.waiting:
        await asyncio.wait({waiter}, timeout=0)
    process.turns.stop()
    with pytest.raises(Stopping):
        await waiter
    await process.tasks.drain(PATIENCE)


async def test_ledger_names_the_client(processes, database):
    await use_up(processes[0], 3, "a")
    await use_up(processes[0], 2, "b")
    async with database.read_only() as tx:
        account = await accounts.load(tx, KEY, TERMS)
        use = await gateway_waits.use_by_client(tx, account, account.now)
        assert use == {"a": [3, 3], "b": [2, 2]}
