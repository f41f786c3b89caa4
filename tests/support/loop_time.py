"""What time it is for the event loop, and for how long it is held: nobody is answered meanwhile."""

import asyncio
import time

SORTED = 60_000


def seconds_now() -> float:
    """As timeouts count it; in a test, time in which the whole process stood still is none."""
    return asyncio.get_running_loop().time()


def yardstick_seconds() -> float:
    """Return what a piece of work takes now that takes 50 ms on a quiet machine."""
    began = time.thread_time()
    sorted((number * 7919 % 10_007, str(number)) for number in range(SORTED))
    return time.thread_time() - began
