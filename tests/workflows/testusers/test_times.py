"""Tests that access ends on time and requests expire on time, even if calls fail."""

from collections import Counter

import pytest

from bot.approvals.rules import Act, State
from bot.errors import Conflict
from bot.services.errors import ServiceFailed, ServiceRefused
from bot.testusers import store
from bot.testusers.rendering import RequestMessages
from bot.testusers.work import ENDING
from tests.support.testusers import (
    WELCOME,
    World,
    replaced,
)

# The tests' clock starts at 9:00 UTC, which is 10:00 in every test person's time zone.
HOUR = 3600


async def test_an_approval_at_the_end_comes_too_late_even_before_the_job(world):
    request = await world.ask("add welcome +1")
    world.clock.advance(24 * HOUR)
    with pytest.raises(Conflict, match="This request expired"):
        await world.decide(Act.APPROVE, request)
    assert (await world.stored(request)).state is State.EXPIRED
    await world.work()
    assert world.service.posts == []
    assert world.reported() == ["expired"]


async def test_a_later_add_extends(world):
    first = await world.applied("add welcome +1 for 2h")
    await world.pass_time(HOUR)
    await world.applied("add welcome +1 for 2h")
    assert replaced(await world.stored(first)) == ["+1"]
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
        assert (await store.access_in(tx, WELCOME))["+1"].ends_at is None


async def test_a_removed_person_ends_nothing_later(world):
    request = await world.applied("add welcome +1 for 2h")
    await world.applied("remove welcome +1")
    world.service.lists[WELCOME] = ["+1"]
    await world.pass_time(3 * HOUR)
    assert world.service.lists[WELCOME] == ["+1"]
    assert replaced(await world.stored(request)) == ["+1"]


async def test_an_end_waits_for_the_service_and_the_card_says_so(world):
    request = await world.applied("add welcome +1 for 2h")
    down = [ServiceFailed("flow", "Down.", status=500) for _ in range(4)]
    world.service.read_faults = down
    await world.pass_time(2 * HOUR)
    assert world.service.lists[WELCOME] == ["+1"]
    assert (await world.stored(request)).result.overdue.endswith("(HTTP 500).")
    for seconds in (10, 20, 40):
        await world.pass_time(seconds)
    assert world.service.reads == 6
    assert world.service.lists[WELCOME] == ["+1"]
    await world.pass_time(80)
    assert world.service.lists[WELCOME] == []
    assert (await world.stored(request)).result.overdue == ""
    assert [action for _, action in await world.audited()].count("grant.end_failed") == 1


def announced(world: World) -> list[str]:
    return [message.subject for message in world.messages if message.kind == ENDING]


@pytest.mark.parametrize(("minutes", "is_announced"), [(180, False), (181, True)])
async def test_end_of_more_than_three_hours_is_announced_an_hour_before(
    world, minutes, is_announced
):
    await world.applied(f"add welcome +1 for {minutes}m")
    await world.pass_time((minutes - 60) * 60 - 1)
    assert announced(world) == []
    await world.pass_time(1)
    assert bool(announced(world)) == is_announced


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
    async with world.database.read_only() as tx:
        assert await RequestMessages(world).notes[ENDING](tx, message) is None


async def pass_hours(world: World, hours: float) -> None:
    for _ in range(int(hours * 60)):
        await world.pass_time(60)


def failed() -> ServiceFailed:
    return ServiceFailed("flow", "Down.", status=503)


def refusing(error):
    return lambda identities: error


@pytest.mark.parametrize(
    ("error", "most"),
    [
        (ServiceRefused("flow", "400", status=400), 30),
        (failed(), 3 * HOUR / 40 + 10),
    ],
    ids=["400", "503"],
)
async def test_end_that_is_refused_neither_hammers_nor_fills_the_audit(world, error, most):
    await world.applied("add welcome +1 for 2h")
    await world.applied("add welcome +2")
    before = len(await world.audited())
    world.service.refuses = refusing(error)
    reads = world.service.reads
    await pass_hours(world, 3)
    new = Counter(action for _, action in (await world.audited())[before:])
    # Each attempt reads the list, and its POST is on record before it is sent.
    assert new.pop("flow.sent") <= world.service.reads - reads < most
    assert new.total() <= 2
    world.service.refuses = lambda identities: None
    await pass_hours(world, 0.2)
    assert world.service.lists[WELCOME] == ["+2"]


async def test_extension_of_an_overdue_grant_clears_the_card(world):
    first = await world.applied("add welcome +1 for 2h")
    world.service.refuses = refusing(ServiceRefused("flow", "An empty list.", status=400))
    await world.pass_time(2 * HOUR)
    assert (await world.stored(first)).result.overdue == "An empty list."
    second = await world.ask("add welcome +1 for 5h")
    await world.decide(Act.APPROVE, second)
    await world.work()
    assert (await world.stored(first)).result.overdue == ""
    assert (await world.stored(second)).state is State.APPLIED


async def granted(world: World) -> list[str]:
    async with world.database.read_only() as tx:
        return sorted(await store.access_in(tx, WELCOME))


async def test_flow_that_is_missing_for_a_moment_keeps_its_grants(world):
    """A gateway may return 404 while the service behind the gateway is being replaced."""
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
    return await world.undo(request)


async def test_a_late_undo_restores_no_ended_access(world):
    await world.applied("add welcome +1 for 2h")
    undo = await undone(world, await world.applied("remove welcome +1"))
    world.clock.advance(3 * HOUR)
    with pytest.raises(Conflict, match="expired"):
        await world.decide(Act.APPROVE, undo)
    await world.work()
    assert (world.service.lists[WELCOME], await granted(world)) == ([], [])
