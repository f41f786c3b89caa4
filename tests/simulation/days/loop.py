"""An event loop with virtual time, in which a seed chooses the next step.

Nothing waits: when no callback is ready, time jumps to the next timer. Every callback belongs to
the simulated process in whose context it was made. Callbacks of a killed process never run again,
not even a `finally` block. Callbacks of a frozen process wait until the process wakes. The timers
of a process run by the process's own clock, which may be fast or slow.
"""

import asyncio
import asyncio.base_events
import heapq
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context, ContextVar
from hashlib import sha256
from random import Random
from typing import Any

PROCESS: ContextVar[str] = ContextVar("process", default="")
# A machine's clock may be fast or slow by this share.
MOST_DRIFT = 0.01
# With this margin, rounded readings of a clock never make a timer early.
ROUNDING_SECONDS = 1e-6


class Stuck(AssertionError):
    """No callback is ready, and none will ever be."""


class SimulationLoop(asyncio.base_events.BaseEventLoop):
    """Runs callbacks in virtual time, in an order that the seed chooses."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = Random(seed)
        self.steps = 0
        self.dead: set[str] = set()
        self.frozen: set[str] = set()
        # The rates of the inaccurate clocks, by process; all other clocks are accurate.
        self.rates: dict[str, float] = {}
        self._now = 0.0
        self._parked: deque[asyncio.Handle] = deque()
        self._fuses: dict[str, tuple[int, Callable[[], None]]] = {}
        # The work of killed processes is kept: collecting it would run its `finally` blocks.
        self.graveyard: list[Any] = []
        self._trace = sha256()
        self.set_task_factory(self._make_task)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Any:
        task = asyncio.Task(coro, loop=loop, **options)
        if PROCESS.get():
            self.graveyard.append(task)
        return task

    def time(self) -> float:
        """Return the virtual seconds since the beginning."""
        return self._now

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *arguments: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a timer, which runs by its process's own clock."""
        process = PROCESS.get() if context is None else context.get(PROCESS, "")
        if process in self.rates:
            seconds = (when - self._now) / self.rates[process]
            when = self._now + max(seconds, 0.0) + ROUNDING_SECONDS
        return super().call_at(when, callback, *arguments, context=context)

    def trace(self, word: str) -> None:
        """Add to the trace, which must be equal for the same seed."""
        self._trace.update(f"{self._now:.6f} {word}\n".encode())

    @property
    def trace_hash(self) -> str:
        """Return the hash of the trace."""
        return self._trace.hexdigest()[:16]

    def kill(self, process: str) -> None:
        """Never run a callback of this process again."""
        self.dead.add(process)
        self.frozen.discard(process)
        self.trace(f"kill {process}")

    def after_steps(self, process: str, steps: int, strike: Callable[[], None]) -> None:
        """Kill or freeze a process before its n-th step from now."""
        self._fuses[process] = (self.steps + steps, strike)

    def freeze(self, process: str) -> None:
        """Run no callback of this process until `wake`."""
        self.frozen.add(process)
        self.trace(f"freeze {process}")

    def wake(self, process: str) -> None:
        """Resume a frozen process."""
        self.frozen.discard(process)
        self._ready.extend(self._parked)
        self._parked.clear()
        self.trace(f"wake {process}")

    def _run_once(self) -> None:
        self._fire_timers()
        if not self._ready:
            if not self._scheduled:
                raise Stuck("nothing is ready, and no timer runs")
            self._now = max(self._now, self._scheduled[0].when())
            self._fire_timers()
        # No order is promised for callbacks that are ready at the same time.
        if len(self._ready) > 1:
            self._ready.rotate(-int(self.random.random() * len(self._ready)))
        handle = self._ready.popleft()
        process = handle._context.get(PROCESS, "")
        self._burn(process)
        if process in self.dead:
            self.graveyard.append(handle)
        elif process in self.frozen:
            self._parked.append(handle)
        elif not handle._cancelled:
            self.steps += 1
            handle._run()

    def _burn(self, process: str) -> None:
        at, strike = self._fuses.get(process, (0, None))
        if strike is not None and self.steps >= at:
            del self._fuses[process]
            strike()

    def _fire_timers(self) -> None:
        while self._scheduled and (
            self._scheduled[0]._cancelled or self._scheduled[0].when() <= self._now
        ):
            timer = heapq.heappop(self._scheduled)
            timer._scheduled = False
            if not timer._cancelled:
                self._ready.append(timer)

    def run_in_executor(self, executor: Any, function: Any, *arguments: Any) -> Any:
        """Call the function at once instead of in a thread."""
        done = self.create_future()
        try:
            done.set_result(function(*arguments))
        except Exception as error:  # noqa: BLE001 - as of whatever is done in a thread
            done.set_exception(error)
        return done

    def _process_events(self, event_list: Iterable[Any]) -> None:
        """Do nothing: there is no input or output."""

    def _write_to_self(self) -> None:
        """Do nothing: there is no other thread."""


def gather_alike() -> None:
    """Make `gather` take the same steps on every Python. Call this only in a separate process.

    Since Python 3.12, `gather` takes no step for finished tasks.
    """
    real = asyncio.gather

    def gather(*awaited: Any, **options: Any) -> Any:
        return real(*map(_still_to_come, awaited), **options)

    asyncio.gather = gather  # type: ignore[assignment]


def _still_to_come(awaited: Any) -> Any:
    if not (asyncio.isfuture(awaited) and awaited.done()):
        return awaited
    loop = asyncio.get_running_loop()
    coming = loop.create_future()

    def come() -> None:
        if coming.cancelled():
            return
        if awaited.cancelled():
            coming.cancel()
        elif (error := awaited.exception()) is not None:
            coming.set_exception(error)
        else:
            coming.set_result(awaited.result())

    loop.call_soon(come)
    return coming


class SharedLock:
    """The database's write lock for all processes, which is released when its holder dies."""

    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop
        self._holder: str | None = None
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    async def acquire(self) -> None:
        """Wait for the lock."""
        process = PROCESS.get()
        if self._holder is None:
            self._holder = process
            return
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((process, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give the lock to the next living process."""
        self._holder = None
        while self._waiting:
            process, turn = self._waiting.popleft()
            if process not in self._loop.dead and not turn.done():
                self._holder = process
                turn.set_result(None)
                return

    def drop(self, process: str) -> None:
        """End the session of a dead holder, as the server does."""
        if self._holder == process:
            self.release()
