"""Virtual time for unchanged libraries: an event loop that jumps to the next timer.

Two simulated hours of a waiting limiter take a second or two.
"""

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from unittest.mock import patch

Result = TypeVar("Result")
# Not 0, because some libraries take 0 to mean "never".
BEGIN = 1_000_000.0
# Each turn of the loop takes time, so that a library can't keep asking forever at the same instant.
STEP_SECONDS = 1e-6


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock advances when there is nothing left to do."""

    def __init__(self) -> None:
        self.now = BEGIN
        super().__init__(_Jumping(self))

    def time(self) -> float:
        """Return the virtual time, in seconds."""
        return self.now

    def run_in_executor(  # type: ignore[override]
        self, _executor: object, work: Callable[..., Result], *args: object
    ) -> asyncio.Future[Result]:
        """Call the function at once, because no virtual time passes in a thread."""
        future: asyncio.Future[Result] = self.create_future()
        future.set_result(work(*args))
        return future


class _Jumping(selectors.SelectSelector):
    """A selector that advances the clock instead of waiting."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("nothing is left to wait for")
        self._loop.now += max(STEP_SECONDS, timeout)
        return super().select(0)


def run(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run `work()` in virtual time, with the libraries' clocks patched to show it."""
    loop = VirtualLoop()
    with (
        patch.object(time, "time", loop.time),
        patch("pyrate_limiter.clocks.monotonic_ns", lambda: int(loop.now * 1e9)),
        patch("pyrate_limiter.limiter.monotonic", loop.time),
        asyncio.Runner(loop_factory=lambda: loop) as runner,
    ):
        return runner.run(work())
