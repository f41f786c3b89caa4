"""The clock, passed in as a value so that tests control the time."""

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """The clock functions that the bot needs."""

    def now(self) -> datetime:
        """Return the wall-clock time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""
        ...

    def since_boot(self) -> float:
        """Return seconds that never go backwards and go on while the machine sleeps."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep for the given seconds."""
        ...


def since_boot() -> float:
    """Return seconds since boot, time asleep included where the system counts it (Linux)."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


def boot_id() -> str:
    """Return an id of this boot of the machine; "" where the system has none (not Linux)."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""


def machine_offset() -> float:
    """Return the wall-clock time minus the seconds since boot."""
    return time.time() - since_boot()


class SystemClock:
    """The machine's clock.

    The wall time is read once and carried on by the clock that counts from boot, so resetting the
    machine's clock doesn't stretch or shrink a running minute. `bot.checks.clocks` adopts a
    corrected clock.
    """

    def __init__(self) -> None:
        self.offset = machine_offset()
        """The wall-clock time less the seconds since boot."""

    def now(self) -> datetime:
        """Return the wall-clock time, aware, in UTC."""
        return datetime.fromtimestamp(self.offset + since_boot(), UTC)

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""
        return time.monotonic()

    def since_boot(self) -> float:
        """Return seconds that never go backwards and go on while the machine sleeps."""
        return since_boot()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        await asyncio.sleep(seconds)
