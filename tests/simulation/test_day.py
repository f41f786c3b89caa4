"""The day's limit, where the service's day begins at a local midnight nobody told us of."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from bot.quotas.rules.limits import CallClass, Limits
from tests.simulation.ledgers import ModelLedger
from tests.simulation.services import LocalDay, Service, SlidingLog
from tests.simulation.world import TIMEOUT_SECONDS, Caller, Network, Process, World

HOUR = 3600.0
DAY_LIMIT = 1000


async def saturate(zone: str, begin: datetime, *, hours: float, seed: int) -> LocalDay:
    """Call as much as the bot is let, from `begin` on; return what each local day saw."""
    day = LocalDay(DAY_LIMIT, zone)
    service = Service([SlidingLog(100), day], concurrent=5)
    world = World(
        ModelLedger(Limits(100, DAY_LIMIT, 5), TIMEOUT_SECONDS),
        service,
        Network(straggle=8.0, share=0.02),
        seed,
    )
    processes = [Process() for _ in range(2)]
    world.restart_now_and_then(processes, 6 * HOUR)
    first = world.now = begin.timestamp()
    for process in processes:
        for _ in range(3):
            world.start(Caller(process, CallClass.PERSON), first)
    await world.run(first + hours * HOUR)
    assert service.refused == 0
    return day


# Berlin's 25 hours are on 25 October 2026; Kolkata has none.
@pytest.mark.parametrize(
    ("zone", "before", "hour"),
    [
        ("Europe/Berlin", (10, 24), 23),
        ("Asia/Kolkata", (10, 24), 5),
    ],
)
async def test_limit_holds_on_local_days_when_summer_time_ends(zone, before, hour):
    begin = datetime(2026, *before, hour, 30, tzinfo=ZoneInfo(zone))
    day = await saturate(zone, begin, hours=4 * 24, seed=hour)
    assert max(day.days.values()) <= DAY_LIMIT
    # 1,000 each 25 hours: what is allowed to a bot that does not know where a day begins.
    assert sum(day.days.values()) >= 0.9 * 4 * DAY_LIMIT


async def test_a_burst_on_both_ends_of_the_long_day_stays_within_it():
    begin = datetime(2026, 10, 25, 0, 0, 5, tzinfo=ZoneInfo("Europe/Berlin"))
    day = await saturate("Europe/Berlin", begin, hours=24.95, seed=1)
    assert day.days == {"2026-10-25": DAY_LIMIT}
