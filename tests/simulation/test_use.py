"""Tests that callers can use nearly all of a limit without being refused."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from bot.quotas.rules.limits import Limits
from bot.services.calls import CallClass
from tests.simulation.ledgers import ModelLedger
from tests.simulation.world import (
    TIMEOUT_SECONDS,
    Caller,
    FixedWindow,
    Network,
    Process,
    Service,
    SlidingLog,
    World,
)

HOUR, MINUTE, DAY = 3600.0, 100, 1000
BERLIN = ZoneInfo("Europe/Berlin")
# The 25th of the month has 25 hours.
BEFORE_THE_LONG_DAY = datetime(2026, 10, 24, 23, 30, tzinfo=BERLIN)


class BerlinDays:
    """Simulates a daily limit that resets at midnight in Berlin.

    The bot doesn't know when the limit resets.
    """

    def __init__(self) -> None:
        self.days: dict[str, int] = {}

    def accepts(self, now: float) -> bool:
        day = datetime.fromtimestamp(now, BERLIN).date().isoformat()
        self.days[day] = self.days.get(day, 0) + 1
        return self.days[day] <= DAY


async def called(rules, share, *, begin=0.0, hours, daily=10**9, restarts):
    """Make as many calls as possible from four processes.

    Return the times at which the calls arrived.
    """
    service = Service(rules, concurrent=5)
    ledger = ModelLedger(Limits(MINUTE, daily, 5), TIMEOUT_SECONDS)
    world = World(ledger, service, Network(straggle=8.0, share=share), seed=2)
    world.now = begin
    processes = [Process() for _ in range(4)]
    for process in processes * 2:
        world.start(Caller(process, CallClass.PERSON), begin + world.dice.uniform(0, 1))
    world.restart_now_and_then(processes, restarts)
    await world.run(begin + hours * HOUR)
    assert service.refused == 0
    assert service.peak <= 5
    return service.arrivals


@pytest.mark.slow
@pytest.mark.parametrize("rule", [FixedWindow(MINUTE, phase=17.0), SlidingLog(MINUTE)])
async def test_nearly_every_call_that_is_allowed_is_made(rule):
    calls = await called([rule], 0.001, hours=0.75, restarts=2 * HOUR)
    steady = [at for at in calls if at > 600]
    hundreds = (len(steady) - 1) // MINUTE
    assert hundreds * 60 / (steady[hundreds * MINUTE] - steady[0]) >= 0.989


async def test_daily_limit_holds_when_summer_time_ends():
    local, begin = BerlinDays(), BEFORE_THE_LONG_DAY.timestamp()
    rules = [SlidingLog(MINUTE), local]
    await called(rules, 0.02, begin=begin, hours=4 * 24, daily=DAY, restarts=6 * HOUR)
    assert max(local.days.values()) <= DAY
    # A bot that doesn't know the start of the day can use 1,000 calls every 25 hours.
    assert sum(local.days.values()) >= 0.9 * 4 * DAY
