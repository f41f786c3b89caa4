"""The clock, as a value that is passed in, so that tests own the time."""

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """What the bot needs of time."""

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
        """Return after so many seconds."""
        ...


def since_boot() -> float:
    """Return seconds since boot, time asleep included where the system counts it (Linux)."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


def boot_id() -> str:
    """Return what names this boot of the machine; "" where the system doesn't (not Linux)."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""


def machine_offset() -> float:
    """Return the machine's wall-clock time of now less the seconds since boot."""
    return time.time() - since_boot()


class SystemClock:
    """The machine's clock.

    The wall time is read at the start and carried on by the clock of the time since boot, so a
    clock that is set while the bot runs moves nothing: a slot of a minute stays a minute long.
    `bot.workflows.clock_watch` renews it where the machine's clock was set right.
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
