"""Hours of callers that never stop, in virtual time: no refusal, and nothing left unused."""

import random

import pytest

from bot.quotas.rules.limits import CallClass, Limits
from tests.simulation.ledgers import ModelLedger
from tests.simulation.services import FixedWindow, Service, SlidingLog
from tests.simulation.world import TIMEOUT_SECONDS, Caller, Network, Process, World

HOUR = 3600.0
NO_DAY = 10**9
JITTER = Network()
STRAGGLING = Network(straggle=8.0, share=0.02)
RARELY_STRAGGLING = Network(straggle=8.0, share=0.001)


def rule_of(kind: str, seed: int) -> FixedWindow | SlidingLog:
    phase = random.Random(seed).uniform(0, 60)
    return FixedWindow(100, phase) if kind == "fixed window" else SlidingLog(100)


async def run(
    kind: str, network: Network, *, hours: float, seed: int, restarts: float = 0
) -> Service:
    """Four processes with two callers each, on one ledger."""
    service = Service([rule_of(kind, seed)], concurrent=5)
    ledger = ModelLedger(Limits(100, NO_DAY, 5), TIMEOUT_SECONDS)
    world = World(ledger, service, network, seed)
    processes = [Process() for _ in range(4)]
    for process in processes:
        for _ in range(2):
            world.start(Caller(process, CallClass.PERSON), world.dice.uniform(0, 1))
    if restarts:
        world.restart_now_and_then(processes, restarts)
    await world.run(hours * HOUR)
    return service


def utilisation(arrivals: list[float]) -> float:
    """The share of 100 a minute, from whole hundreds so that no edge counts; after ten minutes."""
    steady = [at for at in arrivals if at > 600]
    hundreds = (len(steady) - 1) // 100
    return hundreds * 60 / (steady[hundreds * 100] - steady[0])


KINDS = ["fixed window", "sliding window"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_hours_of_stragglers_and_restarts_provoke_no_refusal(kind):
    service = await run(kind, STRAGGLING, hours=0.5, seed=1, restarts=600)
    assert service.refused == 0
    assert service.peak <= 5
    assert len(service.arrivals) > 0.47 * 6000


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_nearly_all_that_is_allowed_is_used(kind):
    service = await run(kind, RARELY_STRAGGLING, hours=0.75, seed=2, restarts=2 * HOUR)
    assert service.refused == 0
    assert utilisation(service.arrivals) >= 0.989
