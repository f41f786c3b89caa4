"""Tests how the gateway shares calls among clients that never stop calling."""

import asyncio
import math
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from bot.errors import QuotaError
from bot.gateway.turns import Turns
from bot.organizations.rules import API, OrganizationKey
from bot.quotas.guard import Guard
from bot.quotas.rules.limits import Limits, Plan
from bot.quotas.rules.quota import Terms
from bot.quotas.store import incidents
from bot.quotas.tables import incidents as incidents_table
from bot.quotas.tables import quota_calls
from bot.services.calls import PROBE, CallCause
from bot.services.errors import RateLimited
from bot.tasks import Tasks
from tests.simulation.world import Network, Service, SlidingLog, count_calls
from tests.support.clock import FakeClock
from tests.support.virtual import CountedDatabase, virtual_time

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.ENTERPRISE, apis={"xero": Limits(minute=30)})
XERO = OrganizationKey(API, "xero")
NETWORK = Network()
SHARES = {"quarter": 0.25}


class Process:
    """Simulates a bot process that also runs the gateway."""

    def __init__(self, database, clock) -> None:
        self.tasks = Tasks()
        self.guard = Guard(database, clock, TERMS, self.tasks)
        self.turns = Turns(self.guard, SHARES)

    def call(self, client: str, seconds: float, key=KEY):
        return self.turns.call(key, client, seconds)


@dataclass
class Sim:
    """Simulates a service and clients that call the service nonstop."""

    clock: FakeClock
    database: CountedDatabase
    processes: list[Process]
    service: Service = field(default_factory=lambda: Service([SlidingLog(100)], concurrent=10))
    dice: random.Random = field(default_factory=lambda: random.Random(17))
    made: Counter[str] = field(default_factory=Counter)
    minutes: Counter[tuple[str, int]] = field(default_factory=Counter)
    key: OrganizationKey = KEY

    async def greedy(self, client: str, seconds: float = 60.0) -> None:
        """Call the service nonstop. After a refusal, wait until the next call is allowed."""
        while True:
            process = self.dice.choice(self.processes)
            try:
                await self.call(process, client, seconds)
            except QuotaError as declined:
                await self.clock.sleep(max(1, math.ceil(declined.seconds)))

    async def call(self, process: Process, client: str, seconds: float) -> None:
        async with process.call(client, seconds, self.key) as grant:
            is_refused = not await self._answered(client)
            await grant.responded()
            if is_refused:
                await grant.refused(RateLimited("api", "Slow down."))

    async def person(self, waited: list[float]) -> None:
        """Make a call every four seconds, and record how long each call has to wait."""
        while True:
            began = self.clock.monotonic()
            async with self.processes[0].guard.call(KEY, CallCause("check", "U1")) as grant:
                waited.append(self.clock.monotonic() - began)
                await self._answered("a person")
                await grant.responded()
            await self.clock.sleep(4.0)

    async def _answered(self, client: str) -> bool:
        out, work, back = NETWORK.trip(self.dice)
        await self.clock.sleep(out)
        accepts = self.service.arrives(self.clock.monotonic())
        await self.clock.sleep(work)
        self.service.leaves()
        await self.clock.sleep(back)
        self.made[client] += accepts
        self.minutes[client, int(self.clock.monotonic() // 60)] += 1
        return accepts

    async def run(self, seconds: float, *callers) -> None:
        tasks = [asyncio.create_task(caller) for caller in callers]
        end = asyncio.create_task(self.clock.sleep(seconds))
        await asyncio.wait([end, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for task in (*tasks, end):
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture
async def sim(sqlite_url, clock):
    database = CountedDatabase(sqlite_url, clock)
    async with virtual_time(clock, database):
        sim = Sim(clock, database, [Process(database, clock) for _ in range(3)])
        yield sim
        for process in sim.processes:
            process.turns.stop()
            await process.tasks.drain(10)
    await database.close()


def parts(made: Counter[str]) -> list[float]:
    """Return each client's number of calls divided by the average for all clients."""
    clients = [calls for name, calls in made.items() if name != "a person"]
    return [calls * len(clients) / sum(clients) for calls in clients]


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_twelve_clients_that_wait_get_equal_parts(sim):
    # Each process has its own queue, so over several processes the parts are only nearly equal.
    del sim.processes[1:]
    waited: list[float] = []
    callers = [sim.greedy(f"client-{number}") for number in range(12)]
    await sim.run(125, *callers, sim.person(waited))
    assert sim.service.refused == 0
    assert min(parts(sim.made)) >= 0.9
    assert max(parts(sim.made)) <= 1.1
    counted, in_doubt = await count_calls(sim.database)
    assert counted - in_doubt <= len(sim.service.arrivals) <= counted
    # The clients use 80 calls a minute in total, and people never wait.
    assert sum(sim.made.values()) >= 0.98 * 80 * 2
    assert max(waited) <= 2.0


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_share_is_never_exceeded(sim):
    quarter = [sim.greedy("quarter") for _ in range(4)]
    await sim.run(70, *quarter, sim.greedy("other"))
    assert sim.service.refused == 0
    assert max(calls for (name, _), calls in sim.minutes.items() if name == "quarter") <= 20
    assert sim.made["quarter"] >= 20


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_clients_that_obey_retry_after_are_not_starved(sim):
    callers = [sim.greedy(f"client-{number}", 0.0) for number in range(12)]
    await sim.run(125, *callers)
    assert sim.service.refused == 0
    assert sum(sim.made.values()) >= 0.9 * 80 * 2
    assert min(parts(sim.made)) >= 0.5


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_another_api_is_used_in_full_and_never_provoked(sim):
    del sim.processes[2:]
    sim.key, sim.service = XERO, Service([SlidingLog(30)], concurrent=30)
    await sim.run(600, *(sim.greedy(f"client-{number}") for number in range(4)))
    assert sim.service.refused == 0
    assert sum(sim.made.values()) >= 297


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_429_that_others_cause_is_one_incident_and_one_test(sim):
    del sim.processes[2:]
    sim.key, sim.service = XERO, Service([SlidingLog(30)], concurrent=30)

    async def others() -> None:
        await sim.clock.sleep(30)
        # The next call of a client is one too many.
        while sim.service.arrives(sim.clock.monotonic()):
            sim.service.leaves()
        sim.service.leaves()
        await asyncio.Event().wait()

    callers = [sim.greedy(f"client-{number}") for number in range(4)]
    await sim.run(200, *callers, others())
    async with sim.database.read_only() as tx:
        rows = list(await tx.connection.execute(quota_calls.select()))
        opened = list(await tx.connection.execute(incidents_table.select()))
        still_open = await incidents.all_open(tx)
    # A refusal of the calls in flight, besides that of the other program.
    assert 2 <= sim.service.refused <= 1 + 4
    assert [row.code for row in opened] == [0]
    assert still_open == []
    assert [row.kind for row in rows].count(PROBE) == 1
