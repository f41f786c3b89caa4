"""What many ask for at once is done once, and never from before they asked."""

import asyncio
from collections.abc import Sequence

import pytest

from bot.store.batches import Batches


class Doubling:
    """Doubles numbers, a batch at a time, when it is released."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.release = asyncio.Event()

    async def __call__(self, numbers: Sequence[int]) -> Sequence[int]:
        self.batches.append(list(numbers))
        await self.release.wait()
        if 0 in numbers:
            raise ValueError("zero")
        return [2 * one for one in numbers]


@pytest.fixture
def doubling():
    return Doubling()


def asking(batches, *numbers):
    return [asyncio.ensure_future(batches.do(one)) for one in numbers]


async def a_little_later():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_asks_at_once_is_in_one_batch(doubling):
    waiting = asking(Batches(doubling), *range(1, 51))
    doubling.release.set()
    assert await asyncio.gather(*waiting) == [2 * one for one in range(1, 51)]
    assert doubling.batches == [list(range(1, 51))]


async def test_who_asks_meanwhile_is_in_the_next_batch(doubling):
    batches = Batches(doubling)
    first = asking(batches, 1)
    await a_little_later()
    second = asking(batches, 2, 3)
    await a_little_later()
    assert doubling.batches == [[1]]
    doubling.release.set()
    assert await asyncio.gather(*first, *second) == [2, 4, 6]
    assert doubling.batches == [[1], [2, 3]]


async def test_batch_has_so_many_items_at_most(doubling):
    waiting = asking(Batches(doubling, most=2), 1, 2, 3)
    doubling.release.set()
    await asyncio.gather(*waiting)
    assert doubling.batches == [[1, 2], [3]]


async def test_failure_reaches_its_batch_and_no_other(doubling):
    batches = Batches(doubling)
    failing = asking(batches, 1, 0)
    await a_little_later()
    well = asking(batches, 2)
    doubling.release.set()
    answers = await asyncio.gather(*failing, *well, return_exceptions=True)
    assert [str(one) for one in answers] == ["zero", "zero", "4"]


async def test_who_goes_away_takes_nothing_from_the_others(doubling):
    first, second = asking(Batches(doubling), 1, 2)
    await a_little_later()
    first.cancel()
    doubling.release.set()
    assert await second == 4
    assert doubling.batches == [[1, 2]]


async def test_batches_do_not_follow_each_other_too_fast(doubling):
    doubling.release.set()
    batches = Batches(doubling, every=0.05)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await batches.do(1)
    await asyncio.gather(*asking(batches, 2, 3))
    assert loop.time() - began >= 0.05
    assert doubling.batches == [[1], [2, 3]]


async def test_batches_wait_while_the_event_loop_is_late():
    loop = asyncio.get_running_loop()
    began: list[float] = []

    def hold_everybody_up():
        until = loop.time() + 0.05
        while loop.time() < until:
            pass

    async def work(numbers):
        if not began:
            loop.call_soon(hold_everybody_up)
        began.append(loop.time())
        return numbers

    batches = Batches(work, every=0.01, yields_for=0.1)
    await batches.do(1)
    await batches.do(2)
    assert began[1] - began[0] >= 0.05 + 0.1
