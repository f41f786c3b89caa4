"""Batches: what many ask for at about the same time is done once for all of them."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST = 64


class Batches(Generic[K, V]):
    """Does one batch at a time; who asks meanwhile is in the next one.

    A batch begins after everybody in it has asked, so what it reads is never older than that.
    Who goes away ends nothing, and a failure reaches everybody in its batch.

    Args:
        work: Does a batch, and returns an answer for each item, in their order.
        every: Seconds from the begin of a batch to that of the next one, at least: a database that
            answers fast would otherwise see many small batches.
        most: How many items a batch has at most.
    """

    def __init__(
        self,
        work: Callable[[Sequence[K]], Awaitable[Sequence[V]]],
        *,
        every: float = 0.0,
        most: int = MOST,
    ) -> None:
        self._work = work
        self._every = every
        self._most = most
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
                if loop.time() < next_at:
                    await asyncio.sleep(next_at - loop.time())
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
