"""Long work in portions, with pauses in which others are answered."""

from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import TypeVar

from bot.ops.clock import Clock

# A portion has so much of the event loop's time, and others have the rest. With no pause each step
# of an acknowledgement would wait for another portion.
SHARE = 0.125
LONGEST_PAUSE_SECONDS = 0.05

Item = TypeVar("Item")
Portion = TypeVar("Portion")


async def in_portions(items: Iterable[Item], count: int) -> AsyncIterator[list[Item]]:
    """Yield so many of the items at a time."""
    rest = iter(items)
    while portion := list(islice(rest, count)):
        yield portion


async def with_pauses(portions: AsyncIterator[Portion], clock: Clock) -> AsyncIterator[Portion]:
    """Yield the portions; before each but the first, a pause for as long as its share asks for.

    What is one portion is there at once.
    """
    began, is_first = clock.monotonic(), True
    async for portion in portions:
        if not is_first:
            took = clock.monotonic() - began
            await clock.sleep(min(took * (1 / SHARE - 1), LONGEST_PAUSE_SECONDS))
            began = clock.monotonic()
        is_first = False
        yield portion
