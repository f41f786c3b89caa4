"""Batches: requests that arrive at about the same time are handled together."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST = 64
# An idle event loop is late by a few milliseconds.
LATE_SECONDS = 0.02
YIELD_FACTOR = 10


class Batches(Generic[K, V]):
    """Runs one batch at a time; requests made meanwhile go into the next.

    A batch starts after all of its requests were made, so it never reads older data. A cancelled
    request doesn't end its batch, and a failure reaches everyone in the batch.

    Args:
        work: Handles a batch, and returns an answer for each item, in order.
        every: The least seconds between the starts of two batches, which limits the number of
            small batches on a fast database.
        most: The most items in a batch.
        yields_for: The most seconds the next batch waits for a busy event loop, so that
            acknowledgements go first.
    """

    def __init__(
        self,
        work: Callable[[Sequence[K]], Awaitable[Sequence[V]]],
        *,
        every: float = 0.0,
        most: int = MOST,
        yields_for: float = 0.0,
    ) -> None:
        self._work = work
        self._every = every
        self._most = most
        self._yields_for = yields_for
        self._waiting: deque[tuple[K, asyncio.Future[V]]] = deque()
        self._working: asyncio.Task[None] | None = None

    async def do(self, item: K) -> V:
        """Return the answer for the item; raise as `work` does."""
        answer: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._working is None:
            self._working = asyncio.create_task(self._work_until_none_waits(), name="batches")
        return await answer

    async def _work_until_none_waits(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                next_at = loop.time() + self._every
                size = min(self._most, len(self._waiting))
                await self._do_batch([self._waiting.popleft() for _ in range(size)])
                late = await _late_after(next_at)
                if late > LATE_SECONDS and self._yields_for:
                    await asyncio.sleep(min(self._yields_for, late * YIELD_FACTOR))
        finally:
            self._working = None

    async def _do_batch(self, batch: Sequence[tuple[K, asyncio.Future[V]]]) -> None:
        try:
            answers = await self._work([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            for _, waiting in batch:
                if not waiting.done():
                    waiting.set_exception(error)
            return
        for (_, waiting), answer in zip(batch, answers, strict=True):
            if not waiting.done():
                waiting.set_result(answer)


async def _late_after(moment: float) -> float:
    """Wait until a time of the event loop; return the seconds by which it was late.

    For a time in the past, return how long the loop took for the work already due.
    """
    loop = asyncio.get_running_loop()
    due_at = max(moment, loop.time())
    await asyncio.sleep(due_at - loop.time())
    return loop.time() - due_at
