"""What time it is for the event loop, and for how long it is held: nobody is answered meanwhile."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SORTED = 60_000


def seconds_now() -> float:
    """As timeouts count it; in a test, time in which the whole process stood still is none."""
    return asyncio.get_running_loop().time()


def yardstick_seconds() -> float:
    """Return what a piece of work takes now that takes 50 ms on a quiet machine."""
    began = time.thread_time()
    sorted((number * 7919 % 10_007, str(number)) for number in range(SORTED))
    return time.thread_time() - began


@dataclass
class Held:
    """The longest turn of the loop, in seconds: `worked` of processor, `passed` by the clock.

    What other programs of the machine do counts in `passed` only.
    """

    worked: float = 0.0
    passed: float = 0.0


@contextmanager
def held_loop() -> Iterator[Held]:
    """Measure every turn of the running loop until the block ends."""
    loop, held = asyncio.get_running_loop(), Held()
    turn = loop._run_once  # type: ignore[attr-defined]

    def measured() -> None:
        # The wait for events is part of a turn, and costs neither.
        select, waited = loop._selector.select, 0.0  # type: ignore[attr-defined]

        def waiting(timeout: float | None) -> object:
            nonlocal waited
            began = time.perf_counter()
            try:
                return select(timeout)
            finally:
                waited += time.perf_counter() - began

        loop._selector.select = waiting  # type: ignore[attr-defined]
        worked, passed = time.thread_time(), time.perf_counter()
        try:
            turn()
        finally:
            loop._selector.select = select  # type: ignore[attr-defined]
            held.worked = max(held.worked, time.thread_time() - worked)
            held.passed = max(held.passed, time.perf_counter() - passed - waited)

    loop._run_once = measured  # type: ignore[attr-defined]
    try:
        yield held
    finally:
        loop._run_once = turn  # type: ignore[attr-defined]
