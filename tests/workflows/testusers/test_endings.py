"""The announcement that a grant ends: an hour before, once, and only while it is true."""

from bot.testusers.rendering import RequestMessages
from bot.testusers.transitions import ENDING
from tests.support.testusers import World

HOUR = 3600


def announced(world: World) -> list[str]:
    return [message.subject for message in world.messages if message.kind == ENDING]


async def test_short_grant_is_not_announced(world):
    await world.applied("add welcome +1 for 3h")
    await world.pass_time(4 * HOUR)
    assert announced(world) == []


async def test_grant_that_was_extended_is_announced_at_its_new_end(world):
    await world.applied("add welcome +1 for 4h")
    await world.pass_time(2 * HOUR)
    later = await world.applied("add welcome +1 for 5h")
    await world.pass_time(3 * HOUR)
    assert announced(world) == []
    await world.pass_time(HOUR)
    assert announced(world) == [later.id]


async def test_announcement_that_is_not_true_any_more_is_not_sent(world):
    await world.applied("add welcome +1 for 4h")
    await world.pass_time(3 * HOUR)
    (message,) = [item for item in world.messages if item.kind == ENDING]
    await world.applied("remove welcome +1")
    assert await RequestMessages(world).ending(message) is None
