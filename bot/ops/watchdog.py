"""The watchdog: detects loops and jobs that have work but make no progress."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

log = structlog.get_logger(__name__)


class Watchdog:
    """Watches this process's loops and jobs.

    Args:
        count: Called for each stall.
    """

    def __init__(self, count: Callable[[], None] = lambda: None) -> None:
        self._count = count
        self.stuck: dict[object, str] = {}
        """Names of what stands still now."""

    @contextmanager
    def watch(self, name: str, longest_seconds: float) -> Iterator[Callable[[], None]]:
        """Watch a loop until the block ends; the loop calls the yielded function on progress.

        `longest_seconds` must exceed the loop's longest pause while it has work.
        """
        loop, token = asyncio.get_running_loop(), object()
        moved_at = loop.time()
        timer: asyncio.TimerHandle | None = None

        def move() -> None:
            nonlocal moved_at
            moved_at = loop.time()
            if self.stuck.pop(token, None):
                log.warning("watchdog.moves_again", what=name)

        def look() -> None:
            nonlocal timer
            left = moved_at + longest_seconds - loop.time()
            if left <= 0 and token not in self.stuck:
                self.stuck[token] = name
                self._count()
                log.error("watchdog.stuck", what=name, seconds=longest_seconds)
            timer = loop.call_later(left if left > 0 else longest_seconds, look)

        look()
        try:
            yield move
        finally:
            if timer is not None:
                timer.cancel()
            self.stuck.pop(token, None)
