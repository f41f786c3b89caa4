"""Long work in portions leaves the event loop to others in between."""

import pytest

from bot.ops.portions import LONGEST_PAUSE_SECONDS, SHARE, in_portions, with_pauses
from tests.support.clock import JumpingClock


async def taken(items, count, seconds):
    """The portions, each of which takes so many seconds; and how long the pauses were."""
    clock, found = JumpingClock(), []
    async for portion in with_pauses(in_portions(items, count), clock):
        found.append(list(portion))
        clock.advance(seconds)
    return found, clock.slept


async def test_portions_are_all_there_in_order():
    found, _ = await taken([1, 2, 3, 4, 5], 2, 0.001)
    assert found == [[1, 2], [3, 4], [5]]


async def test_pause_lasts_as_long_as_leaves_others_their_share():
    _, pauses = await taken(range(6), 2, 0.001)
    assert pauses == pytest.approx([0.001 * (1 / SHARE - 1)] * 2)


async def test_what_is_one_portion_waits_for_nothing():
    assert await taken([1, 2], 2, 1.0) == ([[1, 2]], [])


async def test_slow_portion_is_not_followed_by_a_long_pause():
    _, pauses = await taken(range(4), 2, 9.0)
    assert pauses == [LONGEST_PAUSE_SECONDS]
