"""A request is checked before anyone is asked, and what is asked is stored."""

import pytest

from bot.approvals.rules import Act
from bot.errors import Conflict
from bot.testusers import asking, store
from bot.testusers.parse.command import parse_testusers
from bot.testusers.rules.changes import Change
from tests.support.testusers import (
    ABEL,
    ADA,
    ADAM,
    OTTO,
    WELCOME,
    World,
)


async def asked(world: World, text: str, by: str = OTTO):
    return await asking.ask(world, await world.person(by), parse_testusers(text))


async def pending(world: World):
    async with world.database.read_only() as tx:
        return await store.pending_requests(tx, limit=10)


async def test_when_all_is_true_already_no_request_is_made(world):
    world.service.lists[WELCOME] = ["+1"]
    assert (await asked(world, "add welcome +1")).request is None
    assert (await asked(world, "remove welcome +2")).request is None
    assert await pending(world) == []


async def undo(world: World, request, by: str = OTTO):
    return await asking.undo(world, await world.person(by), request.id)


async def test_an_undo_takes_back_only_what_was_really_done(world):
    request = await world.ask("add welcome +1 +2")
    world.service.lists[WELCOME] = ["+1"]
    await world.decide(Act.APPROVE, request)
    await world.work()
    assert (await undo(world, request)).request.requested.change == Change((), ("+2",))


async def test_an_undo_gives_a_removed_person_the_time_that_was_left(world):
    await world.applied("add welcome +1 for 2h")
    removal = await world.applied("remove welcome +1")
    world.clock.advance(3600)
    inverse = (await undo(world, removal)).request
    await world.decide(Act.APPROVE, inverse, ABEL)
    await world.work()
    assert world.service.lists[WELCOME] == ["+1"]
    await world.pass_time(3601)
    assert world.service.lists[WELCOME] == []


@pytest.mark.parametrize("together", [True, False])
async def test_an_undo_restores_an_end_that_nobody_knew_when_it_was_asked(world, together):
    first, longer = [await world.ask(f"add welcome +1 for {hours}h") for hours in (2, 5)]
    await world.decide(Act.APPROVE, first)
    if not together:
        await world.work()
    world.clock.advance(1)
    if not together:
        with pytest.raises(Conflict, match="so this extends their access"):
            await world.decide(Act.APPROVE, longer)
    await world.decide(Act.APPROVE, longer)
    await world.work()
    inverse = (await undo(world, longer)).request
    assert inverse.requested.end_changes == ("+1",)
    await world.decide(Act.APPROVE, inverse)
    await world.work()
    assert world.service.lists[WELCOME] == ["+1"]
    await world.pass_time(7201)
    assert world.service.lists[WELCOME] == []


async def test_a_change_is_undone_once_unless_the_undo_is_given_up(world):
    request = await world.applied("add welcome +1")
    inverse = (await undo(world, request)).request
    for who in (ADA, OTTO):
        with pytest.raises(Conflict, match="Someone has already asked to undo this"):
            await undo(world, request, who)
    assert len(await pending(world)) == 1
    await world.decide(Act.DENY, inverse, ADA, "no")
    await world.pass_time(60)
    assert (await undo(world, request)).request is not None


async def test_only_an_applied_change_is_undone(world):
    request = await world.ask("add welcome +1")
    with pytest.raises(Conflict, match="still waiting for approval"):
        await undo(world, request)


async def test_an_undo_that_finds_nothing_to_take_back_says_so(world):
    request = await world.applied("add welcome +1")
    world.service.lists[WELCOME] = []
    assert (await undo(world, request, ADAM)).request is None


async def test_one_person_has_twenty_requests_waiting_at_most(world):
    for number in range(20):
        await world.ask(f"add welcome +1{number:03}")
    with pytest.raises(Conflict, match="already have 20 requests waiting"):
        await asked(world, "add welcome +2")
    await world.ask("add welcome +2", by=ADA)
    mine = next(item for item in await pending(world) if item.requester.slack_user_id == OTTO)
    await world.decide(Act.CANCEL, mine, by=OTTO)
    await world.ask("add welcome +2")
