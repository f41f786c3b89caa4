"""What is over ends, whatever the service, people and settings do meanwhile."""

import pytest

from bot.approvals.rules import Act, State
from bot.errors import Conflict
from bot.services.errors import ServiceFailed, ServiceRefused
from bot.testusers import store
from bot.testusers.asking import undo
from tests.support.testusers import OTTO, WELCOME, World

HOUR = 3600


async def pass_hours(world: World, hours: float) -> None:
    for _ in range(int(hours * 60)):
        await world.pass_time(60)


def failed() -> ServiceFailed:
    return ServiceFailed("flow", "Down.", status=503)


def refusing(error):
    return lambda identities: error


@pytest.mark.parametrize(
    "error",
    [
        ServiceRefused("flow", "400", status=400),
        failed(),
    ],
    ids=["400", "503"],
)
async def test_end_that_is_refused_neither_hammers_nor_fills_the_audit(world, error):
    await world.applied("add welcome +1 for 2h")
    await world.applied("add welcome +2")
    before = len(await world.audited())
    world.service.refuses = refusing(error)
    reads = world.service.reads
    await pass_hours(world, 3)
    assert len(await world.audited()) - before <= 2
    assert world.service.reads - reads < 30
    world.service.refuses = lambda identities: None
    await pass_hours(world, 0.2)
    assert world.service.lists[WELCOME] == ["+2"]


async def test_extension_of_an_overdue_grant_clears_the_card(world):
    first = await world.applied("add welcome +1 for 2h")
    world.service.refuses = refusing(ServiceRefused("flow", "An empty list.", status=400))
    await world.pass_time(2 * HOUR)
    assert (await world.stored(first)).progress.overdue == "An empty list."
    second = await world.ask("add welcome +1 for 5h")
    # The card said that the person stays; now it says that they come back.
    with pytest.raises(Conflict, match="so this adds them"):
        await world.decide(Act.APPROVE, second)
    await world.decide(Act.APPROVE, await world.stored(second))
    await world.work()
    assert (await world.stored(first)).progress.overdue == ""
    assert (await world.stored(second)).state is State.APPLIED


async def granted(world: World) -> list[str]:
    async with world.database.read_only() as tx:
        return sorted(await store.grants_of_flow(tx, WELCOME))


async def test_flow_that_is_missing_for_a_moment_keeps_its_grants(world):
    """As when a gateway answers while the service behind it is replaced."""
    await world.applied("add welcome +1 for 2h")
    listed = world.service.lists.pop(WELCOME)
    await world.pass_time(2 * HOUR)
    for _ in range(28):
        await world.pass_time(10)
    assert await granted(world) == ["+1"]
    world.service.lists[WELCOME] = listed
    await pass_hours(world, 0.1)
    assert (world.service.lists[WELCOME], await granted(world)) == ([], [])


async def undone(world: World, request):
    return (await undo(world, await world.person(OTTO), request.id)).request


async def test_undo_approved_after_the_end_it_restores_lets_nobody_in(world):
    await world.applied("add welcome +1 for 2h")
    undo = await undone(world, await world.applied("remove welcome +1"))
    world.clock.advance(3 * HOUR)
    with pytest.raises(Conflict, match="expired"):
        await world.decide(Act.APPROVE, undo)
    await world.work()
    assert (world.service.lists[WELCOME], await granted(world)) == ([], [])
