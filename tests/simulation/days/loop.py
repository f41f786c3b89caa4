"""Provides an event loop that runs in virtual time. A seed determines the order of callbacks.

When no callback is ready, virtual time jumps to the next timer, so no test really waits. Each
callback belongs to the simulated process that created it, even if it runs in a new context. After a
process is killed, none of its callbacks run again, and its `finally` blocks don't run either. The
callbacks of a frozen process wait until the process wakes up. A process's timers follow that
process's clock, which may run fast or slow.
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

# Empty for everything outside the processes, such as the services.
PROCESS: ContextVar[str] = ContextVar("process", default="")
# A machine's clock may be fast or slow by this share.
MOST_DRIFT = 0.01
# With this margin, rounded readings of a clock never make a timer early.
ROUNDING_SECONDS = 1e-6


class Stuck(AssertionError):
    """Raised when no callback is ready and no timer is set."""


class SimulationLoop(asyncio.base_events.BaseEventLoop):
    """Runs callbacks in virtual time, in an order determined by a seed."""

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
        # The bot starts jobs in an empty context, and they must die with their process as well.
        context = options.get("context")
        if context is not None and PROCESS not in context:
            context.run(PROCESS.set, PROCESS.get())
        task = asyncio.Task(coro, loop=loop, **options)
        if PROCESS.get():
            self.graveyard.append(task)
        return task

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *arguments: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a timer that follows the clock of the callback's process."""
        process = PROCESS.get() if context is None else context.get(PROCESS, "")
        if process in self.rates:
            seconds = (when - self._now) / self.rates[process]
            when = self._now + max(seconds, 0.0) + ROUNDING_SECONDS
        return super().call_at(when, callback, *arguments, context=context)

    def trace(self, word: str) -> None:
        """Add a line to the trace. The same seed must always produce the same trace."""
        self._trace.update(f"{self._now:.6f} {word}\n".encode())

    @property
    def trace_hash(self) -> str:
        """Return the hash of the trace."""
        return self._trace.hexdigest()[:16]

    def kill(self, process: str) -> None:
        """Kill a process, so that none of its callbacks run again."""
        self.dead.add(process)
        self.frozen.discard(process)
        self.trace(f"kill {process}")

    def after_steps(self, process: str, steps: int, strike: Callable[[], None]) -> None:
        """Kill or freeze a process after the loop has taken `steps` more steps."""
        self._fuses[process] = (self.steps + steps, strike)

    def freeze(self, process: str) -> None:
        """Pause a process until `wake` is called."""
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
        """Call the function immediately instead of in another thread."""
        done = self.create_future()
        try:
            done.set_result(function(*arguments))
        except Exception as error:  # noqa: BLE001 - as of whatever is done in a thread
            done.set_exception(error)
        return done

    def _process_events(self, event_list: Iterable[Any]) -> None:
        """Do nothing, because the loop has no input or output."""

    def _write_to_self(self) -> None:
        """Do nothing, because there are no other threads."""


def gather_alike() -> None:
    """Make `gather` behave the same on every Python version.

    Since Python 3.12, `gather` handles finished tasks immediately, without a step of the event
    loop. Call this function only in a separate process, because it replaces `asyncio.gather`.
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
    """Simulates the database's write lock.

    If a process dies while it holds the lock, the lock is released.
    """

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
        """Give the lock to the next waiting process that is still alive."""
        self._holder = None
        while self._waiting:
            process, turn = self._waiting.popleft()
            if process not in self._loop.dead and not turn.done():
                self._holder = process
                turn.set_result(None)
                return

    def drop(self, process: str) -> None:
        """Release the lock if the process died while holding it, as a database server would."""
        if self._holder == process:
            self.release()
