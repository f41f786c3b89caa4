"""One look-up in flight per key, however many ask."""

import asyncio
import gc

import pytest
from cachetools import TTLCache

from bot.workflows.flights import Flights
from tests.support.clock import FakeClock


class Loader:
    """A look-up that a test holds."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.go_on = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, key: str) -> str:
        self.calls.append(key)
        number = len(self.calls)
        await self.go_on.wait()
        if self.error is not None:
            raise self.error
        return f"{key}{number}"


@pytest.fixture
def load():
    return Loader()


@pytest.fixture
def flights(clock: FakeClock):
    return Flights(TTLCache(10, 60, timer=clock.monotonic))


async def ask(flights, load, count, key="a"):
    tasks = [asyncio.create_task(flights.get(key, load)) for _ in range(count)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_all_who_ask_get_the_one_answer(flights, load):
    tasks = await ask(flights, load, 50)
    load.go_on.set()
    assert await asyncio.gather(*tasks) == ["a1"] * 50
    assert load.calls == ["a"]


async def test_keys_do_not_wait_for_each_other(flights, load):
    await ask(flights, load, 1, "a")
    await ask(flights, load, 1, "b")
    assert load.calls == ["a", "b"]
    load.go_on.set()


async def test_an_answer_is_kept_for_its_time(flights, load, clock):
    load.go_on.set()
    assert await flights.get("a", load) == "a1"
    clock.advance(59)
    assert await flights.get("a", load) == "a1"
    clock.advance(1)
    assert await flights.get("a", load) == "a2"


async def test_a_fresh_one_is_looked_up_and_kept(flights, load):
    load.go_on.set()
    await flights.get("a", load)
    assert await flights.get("a", load, fresh=True) == "a2"
    assert await flights.get("a", load) == "a2"


async def test_a_failure_reaches_everybody_who_waits_and_is_not_kept(flights, load):
    load.error = KeyError("x")
    tasks = await ask(flights, load, 3)
    load.go_on.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in results] == [KeyError] * 3
    load.error = None
    assert await flights.get("a", load) == "a2"


async def test_who_asked_first_may_go_away(flights, load):
    first, second = await ask(flights, load, 2)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    load.go_on.set()
    assert await second == "a1"


async def test_a_failure_that_nobody_waits_for_any_more_is_no_noise(flights, load):
    (only,) = await ask(flights, load, 1)
    only.cancel()
    await asyncio.gather(only, return_exceptions=True)
    load.error = KeyError("x")
    load.go_on.set()
    noise = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()
    assert noise == []


async def test_what_came_another_way_is_kept_and_may_be_forgotten(flights, load):
    flights.remember("a", "told")
    assert await flights.get("a", load) == "told"
    assert flights.cached("a") == "told"
    flights.forget("a")
    assert flights.cached("a") is None
