"""Long work in portions, with pauses for other work."""

from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import TypeVar

from bot.ops.clock import Clock

# The share of the event loop's time for portions. Without pauses, each step of an acknowledgement
# would wait for another portion.
SHARE = 0.125
LONGEST_PAUSE_SECONDS = 0.05

Item = TypeVar("Item")
Portion = TypeVar("Portion")


async def in_portions(items: Iterable[Item], count: int) -> AsyncIterator[list[Item]]:
    """Yield the items, `count` at a time."""
    rest = iter(items)
    while portion := list(islice(rest, count)):
        yield portion


async def with_pauses(portions: AsyncIterator[Portion], clock: Clock) -> AsyncIterator[Portion]:
    """Yield the portions, pausing before all but the first to keep to their share of time.

    A single portion is yielded at once.
    """
    began, is_first = clock.monotonic(), True
    async for portion in portions:
        if not is_first:
            took = clock.monotonic() - began
            await clock.sleep(min(took * (1 / SHARE - 1), LONGEST_PAUSE_SECONDS))
            began = clock.monotonic()
        is_first = False
        yield portion
