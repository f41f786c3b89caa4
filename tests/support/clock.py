"""A clock that stands still until a test moves it."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class FakeClock:
    """A clock controlled by the test: `advance` moves the time forward and wakes sleepers."""

    def __init__(self, start: datetime = START) -> None:
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
        """Move the time forward, and wake the sleepers that are due."""
        self._elapsed += seconds
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)

    def jump(self) -> bool:
        """Move the time to the end of the next sleep. Return False if nothing is sleeping."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        if not self._sleepers:
            return False
        self.advance(max(0.0, self._sleepers[0][0] - self._elapsed))
        return True


class JumpingClock(FakeClock):
    """A clock that jumps to the end of every sleep; `slept` lists their lengths in seconds."""

    def __init__(self, start: datetime = START) -> None:
        super().__init__(start)
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)
