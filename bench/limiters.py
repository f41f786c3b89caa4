"""The quota guard's rule and the alternative libraries, with the same interface."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from aiolimiter import AsyncLimiter
from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import (
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    RateLimiter,
    SlidingWindowCounterRateLimiter,
)
from pyrate_limiter import Duration, InMemoryBucket, Limiter, Rate
from pyrate_limiter.limiter import SingleBucketFactory

from bot.quotas.rules.limits import Limits
from bot.services.calls import CallClass
from tests.simulation.ledgers import ModelLedger

LIMIT = 100
CONCURRENT = 5
NO_DAY = 10**9
TIMEOUT_SECONDS = 10.0


class Pacer(Protocol):
    """Says when a call may be sent."""

    async def acquire(self) -> int:
        """Wait until a call may be sent. Return a number for `responded`."""
        ...

    async def responded(self, number: int) -> None:
        """Record that the headers of a call's response have arrived."""
        ...


class Gatehouse:
    """The rule of `bot.quotas.rules.quota`, which the guard keeps in the database."""

    def __init__(self) -> None:
        self._ledger = ModelLedger(Limits(LIMIT, NO_DAY, CONCURRENT), TIMEOUT_SECONDS)

    async def acquire(self) -> int:
        """Ask again at the time that the refusal names."""
        while True:
            now = asyncio.get_running_loop().time()
            ticket = await self._ledger.reserve(now, CallClass.PERSON)
            if ticket.decision is None:
                return ticket.number
            free_at = getattr(ticket.decision, "free_at", None) or now
            await asyncio.sleep(max(free_at - now, 0.001))

    async def responded(self, number: int) -> None:
        """Start the sixty seconds of the slot."""
        now = asyncio.get_running_loop().time()
        await self._ledger.settle(number, now, now)


class Aiolimiter:
    """The library aiolimiter: a leaky bucket."""

    def __init__(self, rate: float, seconds: float) -> None:
        self._limiter = AsyncLimiter(rate, seconds)

    async def acquire(self) -> int:
        """Wait as the library does."""
        await self._limiter.acquire()
        return 0

    async def responded(self, number: int) -> None:
        """Do nothing, because the library does not need this."""


class Pyrate:
    """The library pyrate-limiter: a log of the calls that were sent."""

    def __init__(self) -> None:
        bucket = InMemoryBucket([Rate(LIMIT, Duration.MINUTE)])
        # The library's cleaning thread would read the real clock.
        self._limiter = Limiter(SingleBucketFactory(bucket, schedule_leak=False))

    async def acquire(self) -> int:
        """Wait as the library does."""
        await self._limiter.try_acquire_async("organization")
        return 0

    async def responded(self, number: int) -> None:
        """Do nothing, because the library does not need this."""


class OfLimits:
    """The library limits: it allows or refuses a call, and says when to ask again."""

    def __init__(self, strategy: Callable[[MemoryStorage], RateLimiter]) -> None:
        self._limiter = strategy(MemoryStorage())
        self._item = RateLimitItemPerMinute(LIMIT)

    async def acquire(self) -> int:
        """Ask again at the time that the library names, or slightly later."""
        while not await self._limiter.hit(self._item, "organization"):
            stats = await self._limiter.get_window_stats(self._item, "organization")
            await asyncio.sleep(max(stats.reset_time - time.time(), 0.01))
        return 0

    async def responded(self, number: int) -> None:
        """Do nothing, because the library does not need this."""


OURS: Callable[[], Pacer] = Gatehouse
PEERS: dict[str, Callable[[], Pacer]] = {
    "aiolimiter 100 in 60 s": lambda: Aiolimiter(LIMIT, 60),
    "aiolimiter 1 in 0.6 s": lambda: Aiolimiter(1, 60 / LIMIT),
    "pyrate-limiter": Pyrate,
    "limits, fixed window": lambda: OfLimits(FixedWindowRateLimiter),
    "limits, moving window": lambda: OfLimits(MovingWindowRateLimiter),
    "limits, sliding counter": lambda: OfLimits(SlidingWindowCounterRateLimiter),
}
