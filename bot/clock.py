"""The clock, as a value that is passed in, so that tests own the time."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the bot needs of time."""

    def now(self) -> datetime:
        """Return the wall-clock time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...


def _since_boot() -> float:
    """Seconds since boot, time asleep included where the system counts it (Linux)."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


class SystemClock:
    """The machine's clock.

    The wall time is read once and carried on by the clock of the time since boot, so a clock that
    is set while the bot runs moves nothing: a slot of a minute stays a minute long.
    """

    def __init__(self) -> None:
        self._offset = time.time() - _since_boot()

    def now(self) -> datetime:
        """Return the wall-clock time, aware, in UTC."""
        return datetime.fromtimestamp(self._offset + _since_boot(), UTC)

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        await asyncio.sleep(seconds)
