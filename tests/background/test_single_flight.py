"""One look-up under way per key, however many ask."""

import asyncio
import gc

import pytest
from cachetools import TTLCache

from bot.tasks import SingleFlight
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
def lookups(clock: FakeClock):
    return SingleFlight(TTLCache(10, 60, timer=clock.monotonic))


async def ask(lookups, load, count, key="a"):
    tasks = [asyncio.create_task(lookups.get(key, load)) for _ in range(count)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_a_failure_reaches_everybody_who_waits_and_is_not_kept(lookups, load):
    load.error = KeyError("x")
    tasks = await ask(lookups, load, 3)
    load.go_on.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [KeyError] * 3
    load.error = None
    assert await lookups.get("a", load) == "a2"


async def test_who_asked_first_may_go_away(lookups, load):
    first, second = await ask(lookups, load, 2)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    load.go_on.set()
    assert await second == "a1"


async def test_a_failure_that_nobody_waits_for_any_more_is_no_noise(lookups, load):
    (only,) = await ask(lookups, load, 1)
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
