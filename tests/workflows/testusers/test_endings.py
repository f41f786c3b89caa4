"""The announcement that a grant ends: an hour before, once, and only while it is true."""

from bot.model.testusers.approval import Act
from bot.store import jobs
from bot.workflows.testusers.endings import ENDING, Endings
from tests.support.testusers import OTTO, World

HOUR = 3600


async def applied(world: World, text: str):
    request = await world.ask(text)
    await world.decide(Act.APPROVE, request)
    await world.work()
    return request


def announced(world: World) -> list[str]:
    return [one.subject for one in world.messages if one.kind == ENDING]


async def test_grant_is_announced_an_hour_before_its_end(world):
    request = await applied(world, "add welcome +1 +2 for 4h")
    await world.pass_time(3 * HOUR - 1)
    assert announced(world) == []
    await world.pass_time(1)
    assert announced(world) == [request.id]
    (message,) = [one for one in world.messages if one.kind == ENDING]
    note = await Endings(world.setup).message(message)
    assert note.channel_id == OTTO
    assert "`+1`, `+2`" in note.message.text
    assert note.message.slack_blocks[-1]["elements"][0]["text"]["text"] == "Extend"
    await world.pass_time(2 * HOUR)
    assert announced(world) == [request.id]


async def test_short_grant_is_not_announced(world):
    await applied(world, "add welcome +1 for 3h")
    await world.pass_time(4 * HOUR)
    assert announced(world) == []


async def test_grant_that_was_extended_is_announced_at_its_new_end(world):
    await applied(world, "add welcome +1 for 4h")
    await world.pass_time(2 * HOUR)
    later = await applied(world, "add welcome +1 for 5h")
    await world.pass_time(3 * HOUR)
    assert announced(world) == []
    await world.pass_time(HOUR)
    assert announced(world) == [later.id]


async def test_announcement_that_is_not_true_any_more_is_not_sent(world):
    await applied(world, "add welcome +1 for 4h")
    await world.pass_time(3 * HOUR)
    (message,) = [one for one in world.messages if one.kind == ENDING]
    await applied(world, "remove welcome +1")
    assert await Endings(world.setup).message(message) is None


async def test_job_that_runs_twice_announces_once(world):
    await applied(world, "add welcome +1 for 4h")
    async with world.database.transaction() as tx:
        await Endings(world.setup).plan(tx)
    await world.pass_time(3 * HOUR)
    async with world.database.transaction() as tx:
        await Endings(world.setup).plan(tx)
    await world.pass_time(60)
    assert len(announced(world)) == 1


async def test_grants_of_before_are_announced_too(world):
    request = await applied(world, "add welcome +1 for 4h")
    async with world.database.transaction() as tx:
        await jobs.drop(tx, f"ending:{request.id}")
        await Endings(world.setup).plan(tx)
    await world.pass_time(3 * HOUR)
    assert announced(world) == [request.id]
