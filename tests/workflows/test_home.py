"""What many Home tabs read at once is read once, and never from before they wanted it."""

import asyncio

from bot.workflows.home import SharedReading
from tests.support.clock import FakeClock


class Counting:
    """Reads that wait to be released, each with a number."""

    def __init__(self) -> None:
        self.count = 0
        self.release = asyncio.Event()

    async def __call__(self) -> int:
        self.count += 1
        mine = self.count
        await self.release.wait()
        return mine


async def test_readers_of_one_moment_share_a_reading(clock: FakeClock):
    reads = Counting()
    shared = SharedReading(reads, clock)
    moment = clock.monotonic()
    waiting = [asyncio.ensure_future(shared.since(moment)) for _ in range(50)]
    await asyncio.sleep(0)
    reads.release.set()
    assert await asyncio.gather(*waiting) == [1] * 50


async def test_reader_gets_nothing_from_before_it_came(clock: FakeClock):
    reads = Counting()
    shared = SharedReading(reads, clock)
    first = asyncio.ensure_future(shared.since(clock.monotonic()))
    await asyncio.sleep(0)
    clock.advance(0.001)
    second = asyncio.ensure_future(shared.since(clock.monotonic()))
    await asyncio.sleep(0)
    reads.release.set()
    assert await asyncio.gather(first, second) == [1, 2]
