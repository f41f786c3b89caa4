"""The clock, which is passed as an argument so that tests can control the time."""

import asyncio
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from uuid import uuid4

# Linux chooses this ID when it starts. Containers on the machine share it.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def since_boot() -> float:
    """Return the seconds since boot. On Linux, time spent suspended counts too."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


def boot() -> str:
    """Return the ID of the machine's start or, where there is none, of this process."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return uuid4().hex


def machine_offset() -> float:
    """Return the wall-clock time minus the seconds since boot."""
    return time.time() - since_boot()


def read_date(text: str) -> datetime | None:
    """Return the time of a date in an HTTP header, or None if it isn't one."""
    try:
        at = parsedate_to_datetime(text)
    except (OverflowError, TypeError, ValueError):
        return None
    # One of the forms of a date (RFC 9110, section 5.6.7) names no time zone.
    return at.replace(tzinfo=at.tzinfo or UTC)


class SystemClock:
    """The machine's clock.

    The wall-clock time is read once, and later times are computed from the time since boot, so
    changing the machine's clock doesn't make a minute longer or shorter. `bot.checks.checks`
    updates `offset` after the machine's clock is corrected.
    """

    def __init__(self) -> None:
        self.offset = machine_offset()
        """The wall-clock time minus the seconds since boot."""
        self.boot = boot()
        """Identifies the start of the machine from which `since_boot` counts."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.fromtimestamp(self.offset + since_boot(), UTC)

    def monotonic(self) -> float:
        """Return the time in seconds on a clock that never goes backward."""
        return time.monotonic()

    def since_boot(self) -> float:
        """Return the seconds since boot. On Linux, time spent suspended counts too."""
        return since_boot()

    async def sleep(self, seconds: float) -> None:
        """Wait for the given number of seconds."""
        await asyncio.sleep(seconds)


# Tests pass other clocks with the same methods.
Clock = SystemClock
