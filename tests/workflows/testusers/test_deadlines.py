"""A pending request is remembered once and ends at its time; a grant ends at its own."""

import pytest

from bot.approvals.rules import Act, State
from bot.errors import Conflict
from bot.services.errors import ServiceFailed
from bot.testusers import store
from tests.support.testusers import WELCOME

HOUR = 3600


async def test_an_approval_at_the_end_comes_too_late_even_before_the_job(world):
    request = await world.ask("add welcome +1")
    world.clock.advance(24 * HOUR)
    with pytest.raises(Conflict, match="Too late"):
        await world.decide(Act.APPROVE, request)
    assert (await world.stored(request)).state is State.EXPIRED
    await world.work()
    assert world.service.posts == []
    assert world.reported() == ["expired"]


async def test_a_later_add_extends(world):
    first = await world.applied("add welcome +1 for 2h")
    await world.pass_time(HOUR)
    await world.applied("add welcome +1 for 2h")
    assert (await world.stored(first)).progress.superseded == ("+1",)
    await world.pass_time(HOUR)
    assert world.service.lists[WELCOME] == ["+1"]
    await world.pass_time(HOUR)
    assert world.service.lists[WELCOME] == []


async def test_a_later_add_without_time_makes_permanent(world):
    await world.applied("add welcome +1 for 2h")
    permanent = await world.applied("add welcome +1")
    assert (await world.stored(permanent)).state is State.APPLIED
    await world.pass_time(48 * HOUR)
    assert world.service.lists[WELCOME] == ["+1"]
    async with world.database.read_only() as tx:
        assert (await store.grants_of_flow(tx, WELCOME))["+1"].ends_at is None


async def test_a_removed_person_ends_nothing_later(world):
    request = await world.applied("add welcome +1 for 2h")
    await world.applied("remove welcome +1")
    world.service.lists[WELCOME] = ["+1"]
    await world.pass_time(3 * HOUR)
    assert world.service.lists[WELCOME] == ["+1"]
    assert (await world.stored(request)).progress.superseded == ("+1",)


async def test_an_end_waits_for_the_service_and_the_card_says_so(world):
    request = await world.applied("add welcome +1 for 2h")
    down = [ServiceFailed("flow", "Down.", status=500) for _ in range(4)]
    world.service.read_faults = down
    await world.pass_time(2 * HOUR)
    assert world.service.lists[WELCOME] == ["+1"]
    assert (await world.stored(request)).progress.overdue.endswith("(HTTP 500).")
    for seconds in (10, 20, 40):
        await world.pass_time(seconds)
    assert world.service.reads == 6
    assert world.service.lists[WELCOME] == ["+1"]
    await world.pass_time(80)
    assert world.service.lists[WELCOME] == []
    assert (await world.stored(request)).progress.overdue == ""
    assert [action for _, action in await world.audited()].count("grant.end_failed") == 1
