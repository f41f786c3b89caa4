"""Background work that never stops, and people: who waits for whom."""

from bot.quotas.rules.plans import CallClass, Limits
from tests.simulation.ledgers import ModelLedger
from tests.simulation.services import Service, SlidingLog
from tests.simulation.world import TIMEOUT_SECONDS, Caller, Network, Process, World

HOUR = 3600.0
NO_DAY = 10**9


def a_world(limits: Limits, seed: int) -> tuple[World, Process]:
    service = Service([SlidingLog(limits.minute)], concurrent=limits.concurrent)
    return World(ModelLedger(limits, TIMEOUT_SECONDS), service, Network(), seed), Process()


async def test_people_get_their_fifth_of_the_minute_at_once():
    world, process = a_world(Limits(100, NO_DAY, 5), 1)
    for _ in range(6):
        world.start(Caller(process, CallClass.BACKGROUND), 0)
    # One person who asks every 4 s and more: under 20 a minute, as many as they are due.
    person = Caller(process, CallClass.PERSON, pause=lambda: 4.0)
    world.start(person, 1.0)
    await world.run(2 * HOUR)
    assert person.granted > 1400
    assert person.refusals == []
    assert max(person.waited) == 0
    assert world.service.refused == 0


async def test_the_background_gets_four_fifths_and_not_less():
    world, process = a_world(Limits(100, NO_DAY, 5), 1)
    for _ in range(6):
        world.start(Caller(process, CallClass.BACKGROUND), 0)
    await world.run(HOUR)
    assert 0.97 * 80 * 60 < len(world.service.arrivals) <= 80 * 61


async def test_a_fifth_of_the_day_is_left_to_people():
    world, process = a_world(Limits(100, 1000, 5), 1)
    background = Caller(process, CallClass.BACKGROUND)
    world.start(background, 0)
    await world.run(5 * HOUR)
    assert background.granted == 800
    person = Caller(process, CallClass.PERSON)
    world.start(person, world.now)
    await world.run(10 * HOUR)
    assert person.granted == 200
    assert person.refusals[-1].kind == "day"
