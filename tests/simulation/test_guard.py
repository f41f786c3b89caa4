"""Tests the real guard and a real database with simulated callers and services."""

import random
from contextlib import AbstractAsyncContextManager

import pytest

from bot.errors import QuotaExhausted
from bot.organizations.rules import OrganizationKey
from bot.quotas.guard import Guard
from bot.quotas.rules.limits import Limit, LimitKind, Plan
from bot.quotas.rules.quota import NotNow, Terms
from bot.services.calls import CallCause, CallClass
from bot.tasks import Tasks
from tests.simulation.ledgers import Ticket
from tests.simulation.world import (
    Caller,
    FixedWindow,
    Network,
    Process,
    Service,
    SlidingLog,
    World,
    count_calls,
)
from tests.support.clock import FakeClock

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.ENTERPRISE)
STRAGGLING = Network(straggle=8.0, share=0.02)


class GuardLedger:
    """Uses several guards in turn, as if each ran in its own process. Unsettled calls stay open."""

    def __init__(self, guards: list[Guard], clock: FakeClock) -> None:
        self._guards, self._clock = guards, clock
        self._open: dict[int, tuple[AbstractAsyncContextManager, object]] = {}
        self._began = clock.now().timestamp()
        self.asked = 0

    def _go_to(self, now: float) -> None:
        self._clock.advance(now - self._clock.monotonic())

    async def reserve(self, now: float, call_class: CallClass) -> Ticket:
        self._go_to(now)
        self.asked += 1
        is_background = call_class is CallClass.BACKGROUND
        cause = CallCause("list", "U1", background=is_background)
        call = self._guards[self.asked % len(self._guards)].call(KEY, cause)
        try:
            grant = await call.__aenter__()
        except QuotaExhausted as error:
            free_at = self._clock.now().timestamp() + error.seconds - self._began
            limit = Limit(LimitKind(error.limit_kind), 0)
            return Ticket(NotNow(0.0, [limit], free_at=free_at))
        self._open[self.asked] = call, grant
        return Ticket(None, self.asked)

    async def settle(self, number: int, headers_at: float, ended_at: float) -> None:
        self._go_to(headers_at)
        call, grant = self._open.pop(number)
        await grant.responded()
        self._go_to(ended_at)
        await call.__aexit__(None, None, None)


@pytest.fixture
def ledger(database, clock, monkeypatch) -> GuardLedger:
    # The simulation decides who waits.
    monkeypatch.setattr("bot.quotas.guard.PERSON_WAITS_SECONDS", 0.0)
    guards = [Guard(database, clock, TERMS, Tasks()) for _process in range(4)]
    return GuardLedger(guards, clock)


ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "kind"),
    [
        ("sqlite", "sliding window"),
        pytest.param("postgres", "fixed window", marks=pytest.mark.postgres),
    ],
    indirect=["database_url"],
)
async def test_the_guard_provokes_no_refusal_and_uses_the_minute(ledger, database, kind):
    phase = random.Random(kind).uniform(0, 60)
    rule = FixedWindow(100, phase) if kind == "fixed window" else SlidingLog(100)
    service = Service([rule], concurrent=10)
    world = World(ledger, service, STRAGGLING, seed=1)
    processes = [Process() for _ in range(3)]
    for process in processes:
        world.start(Caller(process, CallClass.PERSON), world.dice.uniform(0, 1))
        world.start(Caller(process, CallClass.PERSON), world.dice.uniform(0, 1))
    world.restart_now_and_then(processes, every_seconds=60)
    await world.run(3 * 60)
    assert service.refused == 0
    assert service.peak <= 10
    # Each of the first two minutes is used fully, except for slots of slow calls and restarts.
    assert len(service.arrivals) >= 260
    # The count is the service's count and the calls in doubt.
    counted, in_doubt = await count_calls(database)
    assert counted - in_doubt <= len(service.arrivals) <= counted


@pytest.mark.slow
@ON_SQLITE
async def test_through_the_guard_people_get_their_fifth_at_once(ledger):
    world = World(ledger, Service([SlidingLog(100)], concurrent=10), Network(), seed=1)
    process = Process()
    for _ in range(3):
        world.start(Caller(process, CallClass.BACKGROUND), 0)
    person = Caller(process, CallClass.PERSON, pause=lambda: 4.0)
    world.start(person, 1.0)
    await world.run(130)
    assert world.service.refused == 0
    assert person.refusals == []
    assert max(person.waited) == 0
    assert 160 <= len(world.service.arrivals) - person.granted <= 240


async def stand_still(ledger, seconds: float, seed: int, *, counts_late: bool = False) -> int:
    """Run ten callers against a service that stalls. Return the number of refused calls."""
    service = Service([SlidingLog(100)], concurrent=10)
    world = World(ledger, service, Network(), seed)
    world.standstill, world.counts_late = (60.0, 60.0 + seconds), counts_late
    for _ in range(10):
        caller = Caller(Process(), CallClass.PERSON, pause=lambda: 4.0)
        world.start(caller, world.dice.uniform(0, 4))
    await world.run(200.0 + seconds)
    assert service.arrivals[-1] > 190.0 + seconds
    return service.refused


@pytest.mark.slow
@ON_SQLITE
@pytest.mark.parametrize(("seconds", "most"), [(14, 0), (120, 8)])
async def test_standstill_of_the_service_is_not_worked_against(ledger, seconds, most):
    assert await stand_still(ledger, seconds, seed=7) <= most


@pytest.mark.slow
@ON_SQLITE
async def test_a_standstill_counted_late_costs_only_the_held_calls(ledger):
    # All held calls are counted at the end at once, beside the calls that are granted then.
    assert await stand_still(ledger, 120, seed=7, counts_late=True) <= 24
