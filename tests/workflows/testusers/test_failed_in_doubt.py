"""What failed while a POST for it was in doubt, and is found on the list later."""

import pytest

from bot.model.testusers.approval import Act, State
from bot.model.testusers.changes import Change
from bot.service_errors import ServiceFailed
from tests.support.testusers import ADA, WELCOME, World

HOUR = 3600


def failed() -> ServiceFailed:
    return ServiceFailed("flow", "The flow service has a problem of its own.", status=502)


async def approved(world: World, text: str):
    request = await world.ask(text)
    await world.decide(Act.APPROVE, request, ADA)
    return request


async def state(world: World, request) -> State:
    return (await world.stored(request)).state


async def look(world: World, seconds: int = 90) -> None:
    for _ in range(seconds // 5):
        await world.pass_time(5)


async def fail_unknown(world: World, text: str):
    """The third POST has its effect, its answer is lost, and then nobody can look."""
    request = await approved(world, text)
    world.service.post_faults, world.service.late = [failed(), failed()], 1
    for _ in range(3):
        await world.pass_time(3.2)
    world.service.land()
    world.service.read_faults = [failed()] * 2
    for _ in range(3):
        await world.pass_time(4)
    assert await state(world, request) is State.FAILED
    assert "don't know whether" in (await world.stored(request)).progress.failure
    return request


async def test_failed_request_that_arrived_becomes_applied_and_ends(world):
    request = await fail_unknown(world, "add welcome +1 for 2h")
    assert world.service.lists[WELCOME] == ["+1"]
    await look(world)
    stored = await world.stored(request)
    assert stored.state is State.APPLIED
    assert stored.progress.done.change == Change(("+1",))
    assert world.reported() == ["failed", "applied"]
    await world.pass_time(2 * HOUR)
    assert world.service.lists[WELCOME] == []


async def test_undo_of_what_was_found_later_removes_it(world):
    request = await fail_unknown(world, "add welcome +1 for 2h")
    await look(world)
    undo = (await world.asking.undo(await world.person("U0OTTO"), request.id)).request
    assert undo.requested.change == Change(removals=("+1",))


async def test_failed_request_says_so_plainly_once_it_is_known(world):
    request = await approved(world, "add welcome +1")
    world.service.post_faults = [failed() for _ in range(3)]
    for _ in range(4):
        await world.pass_time(4)
    assert "still carries it out" in (await world.stored(request)).progress.failure
    await look(world)
    stored = await world.stored(request)
    assert stored.state is State.FAILED
    assert stored.progress.failure == "The flow service has a problem of its own."
    assert world.reported() == ["failed"]


async def test_late_post_of_a_failed_request_loses_to_a_later_removal(world):
    request = await approved(world, "add welcome +1")
    world.service.refuses = lambda identities: None
    world.service.post_faults, world.service.late = [failed(), failed()], 1
    for _ in range(4):
        await world.pass_time(4)
    assert await state(world, request) is State.FAILED
    world.service.lists[WELCOME] = ["+1"]
    removal = await world.ask("remove welcome +1")
    world.service.lists[WELCOME] = []
    await world.decide(Act.APPROVE, removal)
    await world.work()
    world.service.land()
    await look(world)
    assert world.service.lists[WELCOME] == []
    assert await state(world, request) is State.FAILED


@pytest.mark.parametrize("until", [" for 2h", ""], ids=["timed", "permanent"])
async def test_failed_request_that_arrived_leaves_a_later_grant_alone(world, until):
    request = await approved(world, f"add welcome +1 +2{until}")
    world.service.refuses = lambda identities: None
    world.service.post_faults, world.service.late = [failed(), failed()], 1
    for _ in range(4):
        await world.pass_time(4)
    assert await state(world, request) is State.FAILED
    await approved(world, "add welcome +1 for 1h")
    await world.work()
    assert world.service.lists[WELCOME] == ["+1"]
    world.service.land()
    await look(world)
    stored = await world.stored(request)
    assert (stored.state, stored.progress.superseded) == (State.APPLIED, ("+1",))
    assert world.service.lists[WELCOME] == ["+1", "+2"]
    await world.pass_time(HOUR)
    assert world.service.lists[WELCOME] == ["+2"]
    await world.pass_time(HOUR)
    assert world.service.lists[WELCOME] == ([] if until else ["+2"])


@pytest.mark.parametrize("until", [" for 2h", ""], ids=["timed", "permanent"])
async def test_failed_extension_that_arrived_keeps_who_was_there(world, until):
    earlier = await approved(world, "add welcome +1 for 30s")
    await world.work()
    await world.pass_time(15)
    extension = await fail_unknown(world, f"add welcome +1 +2{until}")
    world.service.read_faults = [failed()] * 2
    await look(world)
    assert world.service.lists[WELCOME] == ["+1", "+2"]
    assert await state(world, extension) is State.APPLIED
    assert (await world.stored(earlier)).progress.superseded == ("+1",)
    assert "ended" not in world.reported()
    await world.pass_time(2 * HOUR)
    assert world.service.lists[WELCOME] == ([] if until else ["+1", "+2"])


async def test_failed_removal_that_arrived_is_told_as_no_end(world):
    await approved(world, "add welcome +1 for 30s")
    await world.work()
    await world.pass_time(15)
    removal = await fail_unknown(world, "remove welcome +1")
    world.service.read_faults = [failed()] * 2
    await look(world)
    assert world.service.lists[WELCOME] == []
    assert await state(world, removal) is State.APPLIED
    assert world.reported() == ["applied", "failed", "applied"]


async def test_part_of_a_failed_extension_that_arrived_keeps_who_got_in(world):
    await approved(world, "add welcome +1 for 30s")
    await world.pass_time(15)
    world.service.lists[WELCOME] = []
    extension = await fail_unknown(world, "add welcome +1 +2 for 2h")
    world.service.lists[WELCOME] = ["+1"]
    world.service.read_faults = [failed()] * 2
    await look(world)
    assert world.service.lists[WELCOME] == ["+1"]
    assert (await world.stored(extension)).progress.part.change == Change(("+1",))
    assert await state(world, extension) is State.FAILED
    assert "ended" not in world.reported()
    await world.pass_time(2 * HOUR)
    assert world.service.lists[WELCOME] == []
