"""A clock that stands still until a test moves it forward."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from uuid import uuid4

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class FakeClock:
    """A clock that the test controls. `advance` moves the time forward and wakes sleeping tasks."""

    def __init__(self, start: datetime = START) -> None:
        self.boot = uuid4().hex
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def since_boot(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._elapsed + seconds, self._count, future))
        await future

    def advance(self, seconds: float) -> None:
        """Move the clock forward, and wake the tasks whose sleep is over."""
        self._elapsed += seconds
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)

    def jump(self) -> bool:
        """Move the clock forward until a task wakes up. Return False if no task is sleeping."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        if not self._sleepers:
            return False
        self.advance(max(0.0, self._sleepers[0][0] - self._elapsed))
        return True


class JumpingClock(FakeClock):
    """A clock that jumps ahead instead of sleeping. `slept` lists the length of each sleep."""

    def __init__(self, start: datetime = START) -> None:
        super().__init__(start)
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)
