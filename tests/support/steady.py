"""Provides an event loop and clocks that pause while the process gets no CPU time."""

import asyncio
import selectors
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import uuid4

from bot.ops.clock import SystemClock

SORTED = 60_000


def seconds_now() -> float:
    """Return the event loop's time, which stands still while the process is stopped."""
    return asyncio.get_running_loop().time()


def yardstick_seconds() -> float:
    """Return how many seconds of CPU time a fixed task takes.

    On an idle machine, the task takes about 50 ms.
    """
    began = time.thread_time()
    sorted((number * 7919 % 10_007, str(number)) for number in range(SORTED))
    return time.thread_time() - began


# A thread that wakes up later than this did not get the CPU in time.
NOTICED_SECONDS = 0.2
# A sleeping thread checks the time this often, to see how long it was stopped.
LONGEST_SLEEP_SECONDS = 0.1

Result = TypeVar("Result")
Events = list[tuple[selectors.SelectorKey, int]]


class SteadyTime:
    """Counts seconds, except while this thread is ready to run but is waiting for the CPU.

    `lost` is the number of seconds that have been left out so far.
    """

    def __init__(self) -> None:
        self.lost = 0.0
        self._waited = 0.0
        self._asked = time.monotonic()
        self._seen = self._asked, time.thread_time()
        self._thread = threading.get_ident()

    def __call__(self, wanted: float = 0.0) -> float:
        """Return the time in seconds.

        `wanted` is the number of seconds that this thread meant to sleep after the previous call.
        """
        passed = time.monotonic()
        if threading.get_ident() != self._thread:
            return passed - self.lost
        self._waited += min(wanted, passed - self._asked)
        self._asked = passed
        stood = passed - self._seen[0] - self._waited
        # Reading a thread's CPU time requires a system call.
        if stood > NOTICED_SECONDS:
            worked = time.thread_time()
            stood -= worked - self._seen[1]
            if stood > NOTICED_SECONDS:
                self.lost += stood
            self._seen, self._waited = (passed, worked), 0.0
        return passed - self.lost


class SteadySelector(selectors.DefaultSelector):
    """A selector that splits long waits into short ones.

    `heard` is the number of times that `select` has returned events.
    """

    def __init__(self, steady_time: SteadyTime) -> None:
        super().__init__()
        self._time = steady_time
        self.heard = 0

    def select(self, timeout: float | None = None) -> Events:
        """Wait for events, but extend the timeout if the process is stopped in the meantime."""
        if timeout is not None and timeout <= 0:
            events = super().select(0)
            self.heard += bool(events)
            return events
        now = self._time()
        until = None if timeout is None else now + timeout
        while True:
            left = LONGEST_SLEEP_SECONDS if until is None else until - now
            piece = max(0.0, min(left, LONGEST_SLEEP_SECONDS))
            events = super().select(piece)
            now = self._time(wanted=piece)
            if events or (until is not None and now >= until):
                self.heard += bool(events)
                return events


class SteadyLoop(asyncio.SelectorEventLoop):
    """The event loop that tests use."""

    def __init__(self) -> None:
        self.steady_time = SteadyTime()
        self.selector = SteadySelector(self.steady_time)
        super().__init__(self.selector)

    def time(self) -> float:
        """Return the loop's current time in seconds."""
        return self.steady_time()

    @property
    def is_busy(self) -> bool:
        """True if another task can run now, without waiting for a timer, socket or thread."""
        return bool(self._ready)  # type: ignore[attr-defined]


def run_steadily(program: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine as `asyncio.run` does, but in a `SteadyLoop`."""
    with asyncio.Runner(loop_factory=SteadyLoop) as runner:
        return runner.run(program)


class SteadyClock(SystemClock):
    """A clock that follows the system clock, but stands still while the process is stopped."""

    def __init__(self) -> None:
        super().__init__()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SteadyLoop)
        self._steady_time = loop.steady_time
        self._lost = loop.steady_time.lost
        self.boot = uuid4().hex

    def now(self) -> datetime:
        """Return the wall-clock time as a timezone-aware datetime in UTC."""
        self._steady_time()
        return super().now() - timedelta(seconds=self._steady_time.lost - self._lost)

    def since_boot(self) -> float:
        """Return a time in seconds that never goes backward."""
        return self._steady_time()

    def monotonic(self) -> float:
        """Return a time in seconds that never goes backward."""
        return self._steady_time()


class LaterClock(SteadyClock):
    """A steady clock that a test can move forward to wake sleeping tasks."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead = timedelta()
        self._moved = asyncio.Event()

    @property
    def ahead(self) -> timedelta:
        """The amount of time by which the clock has been moved forward."""
        return self._ahead

    @ahead.setter
    def ahead(self, ahead: timedelta) -> None:
        self._ahead = ahead
        self._moved.set()
        self._moved = asyncio.Event()

    def now(self) -> datetime:
        """Return the wall-clock time as a timezone-aware datetime in UTC."""
        return super().now() + self._ahead

    def since_boot(self) -> float:
        """Return a time in seconds that never goes backward."""
        return super().since_boot() + self._ahead.total_seconds()

    def monotonic(self) -> float:
        """Return a time in seconds that never goes backward."""
        return super().monotonic() + self._ahead.total_seconds()

    async def sleep(self, seconds: float) -> None:
        """Sleep until this clock has advanced by the given number of seconds."""
        until = self.monotonic() + seconds
        await asyncio.sleep(0)
        while (left := until - self.monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._moved.wait()
