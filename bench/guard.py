"""Compares the quota guard with rate limiters, on simulated services in virtual time.

Five callers make one call after another. The network takes 20 to 400 ms in each direction, and the
service works for 30 to 150 ms. It accepts 100 calls a minute, counted either in fixed windows that
start at an unknown second, or over the last 60 s.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import mean
from typing import Protocol

from bench.figures import Figure
from bench.limiters import CONCURRENT, LIMIT, OURS, PEERS, Pacer
from bench.virtual import BEGIN, run
from tests.simulation.world import Network

COLD_SECONDS = 600.0
LONG_SECONDS = 4200.0
WARM_SECONDS = 600.0
COLD_SEEDS, LONG_SEEDS = 12, 2


class Window(Protocol):
    """A service's count of accepted calls."""

    def accepts(self, now: float) -> bool:
        """Return True and count the call if a call that arrives now is accepted."""
        ...


class Fixed:
    """Starts a new count each minute, at a second that callers don't know."""

    def __init__(self, phase: float) -> None:
        self._phase, self._window, self._count = phase, -1, 0

    def accepts(self, now: float) -> bool:
        """As `Window`."""
        window = int((now - self._phase) // 60)
        if window != self._window:
            self._window, self._count = window, 0
        self._count += self._count < LIMIT + 1
        return self._count <= LIMIT


class Sliding:
    """Counts the calls that were accepted in the last 60 s."""

    def __init__(self, _phase: float) -> None:
        self._accepted: deque[float] = deque()

    def accepts(self, now: float) -> bool:
        """As `Window`."""
        while self._accepted and self._accepted[0] <= now - 60:
            self._accepted.popleft()
        if len(self._accepted) >= LIMIT:
            return False
        self._accepted.append(now)
        return True


@dataclass
class Outcome:
    """The times of accepted calls, in seconds from the start, and the number of refused calls."""

    accepted: list[float] = field(default_factory=list)
    refused: int = 0

    def steady_share(self) -> float:
        """Return the share of the limit used after ten minutes, over whole hundreds of calls."""
        steady = [at for at in self.accepted if at > WARM_SECONDS]
        hundreds = (len(steady) - 1) // LIMIT
        return hundreds * 60 / (steady[hundreds * LIMIT] - steady[0])


async def _saturate(pacer: Pacer, window: Window, seed: int, seconds: float) -> Outcome:
    loop, dice, outcome = asyncio.get_running_loop(), random.Random(seed), Outcome()

    async def call_on_and_on() -> None:
        while True:
            number = await pacer.acquire()
            out, work, back = Network().trip(dice)
            await asyncio.sleep(out)
            if window.accepts(loop.time()):
                outcome.accepted.append(loop.time() - BEGIN)
            else:
                outcome.refused += 1
            await asyncio.sleep(work + back)
            await pacer.responded(number)

    callers = [asyncio.create_task(call_on_and_on()) for _ in range(CONCURRENT)]
    await asyncio.sleep(seconds)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    return outcome


def _play(
    pacer: Callable[[], Pacer], kind: Callable[[float], Window], seconds: float, seeds: int
) -> list[Outcome]:
    outcomes = []
    for seed in range(seeds):
        window = kind(random.Random(seed).uniform(0, 60))
        outcomes.append(run(lambda: _saturate(pacer(), window, seed, seconds)))  # noqa: B023
    return outcomes


def measure_all() -> list[Figure]:
    """Return the figures for each kind of service against each peer."""
    figures: list[Figure] = []
    for name, kind in (("fixed window", Fixed), ("sliding window", Sliding)):
        figures += _refusals(name, kind)
        figures += _steady(name, kind)
    return figures


def _refusals(name: str, kind: Callable[[float], Window]) -> list[Figure]:
    ours = [float(item.refused) for item in _play(OURS, kind, COLD_SECONDS, COLD_SEEDS)]
    return [
        Figure(
            f"{name}: refusals in the first 10 min",
            "",
            peer,
            ours,
            [float(item.refused) for item in _play(make, kind, COLD_SECONDS, COLD_SEEDS)],
            0,
            mean,
        )
        for peer, make in PEERS.items()
    ]


def _steady(name: str, kind: Callable[[float], Window]) -> list[Figure]:
    what = f"{name}: used in steady state"
    ours = _percent(_play(OURS, kind, LONG_SECONDS, LONG_SEEDS))
    theirs = {
        peer: _percent(_play(make, kind, LONG_SECONDS, LONG_SEEDS)) for peer, make in PEERS.items()
    }
    best = max(theirs, key=lambda peer: mean(theirs[peer]))
    return [
        Figure(what, "%", f"best: {best}", ours, theirs[best]),
        *(Figure(what, "%", peer, ours, shares) for peer, shares in theirs.items() if peer != best),
    ]


def _percent(outcomes: list[Outcome]) -> list[float]:
    return [100 * outcome.steady_share() for outcome in outcomes]


async def measure() -> list[Figure]:
    """Run `measure_all` in a thread, because virtual time needs its own event loop."""
    return await asyncio.to_thread(measure_all)
