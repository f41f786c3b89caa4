"""A POST whose outcome is unknown: the flow waits for it, and what is found later counts."""

import pytest

from bot.approvals.rules import Act, State
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    RateLimited,
    ServiceFailed,
    ServiceRefused,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.testusers import store
from bot.testusers.rules.changes import Change
from tests.support.testusers import WELCOME, World

HOUR = 3600


async def state(world: World, request) -> State:
    return (await world.stored(request)).state


async def is_in_doubt(world: World) -> bool:
    async with world.database.read_only() as tx:
        return await store.post_of(tx, WELCOME) is not None


async def test_failed_request_that_arrives_is_applied_and_ends(world):
    world.service.late = 1
    request = await world.approved("add welcome +1 for 2h")
    await world.work()
    world.service.read_faults = [ServiceFailed("flow", "x", status=502) for _ in range(20)]
    await world.look(40)
    stored = await world.stored(request)
    assert (stored.state, stored.progress.is_unsure) == (State.FAILED, True)
    world.service.land()
    world.service.read_faults.clear()
    await world.look(120)
    assert await state(world, request) is State.APPLIED
    assert world.reported() == ["failed", "applied"]
    await world.pass_time(2 * HOUR)
    assert world.service.lists[WELCOME] == []


async def test_failed_request_that_never_arrives_says_so(world):
    world.service.late = 1
    request = await world.approved("add welcome +1")
    await world.work()
    world.service.read_faults = [ServiceFailed("flow", "x", status=502) for _ in range(20)]
    await world.look(90)
    world.service.read_faults.clear()
    await world.look(600)
    stored = await world.stored(request)
    assert (stored.state, stored.progress.is_unsure) == (State.FAILED, False)
    assert not await is_in_doubt(world)


async def test_part_that_is_stored_takes_effect_and_the_rest_is_sent_again(world):
    world.service.late = 1
    request = await world.approved("add welcome +1 +2 for 2h")
    await world.work()
    world.service.in_the_air.clear()
    world.service.lists[WELCOME] = ["+2"]
    await world.look(65)
    assert world.service.posts == [("+2", "+1")]
    stored = await world.stored(request)
    assert stored.state is State.APPLIED
    assert stored.progress.done.change == Change(("+2", "+1"))
    async with world.database.read_only() as tx:
        assert {*await store.grants_of_flow(tx, WELCOME)} == {"+1", "+2"}


@pytest.mark.parametrize(
    "error",
    [
        ServiceUnreachable("flow", "Not there.", sent=False),
        CredentialsRefused("flow", "No."),
        PermissionMissing("flow", "No."),
        RateLimited("flow", "Too many.", code=None),
        ServiceRefused("flow", "No.", status=400),
    ],
    ids=lambda error: error.outcome,
)
async def test_refused_post_is_not_in_doubt(world, error):
    world.service.post_faults = [error]
    await world.approved("add welcome +1")
    await world.work()
    assert not await is_in_doubt(world)


@pytest.mark.parametrize(
    "error",
    [
        ServiceTimeout("flow", "No answer."),
        ServiceUnreachable("flow", "It broke."),
        ServiceRefused("flow", "Timeout.", status=408),
        ServiceFailed("flow", "Bad gateway.", status=502),
    ],
    ids=lambda error: error.outcome,
)
async def test_post_without_an_answer_is_not_sent_again_for_a_minute(world, error):
    world.service.post_faults = [error]
    await world.approved("add welcome +1")
    await world.look(60)
    assert world.service.posts == []
    await world.look(10)
    assert world.service.posts == [("+1",)]


async def test_service_that_fails_for_one_fails_only_its_request(world):
    world.service.lists[WELCOME] = ["x"]
    down = ServiceFailed("flow", "x", status=503)
    world.service.refuses = lambda identities: down if "bad" in identities else None
    some = [await world.ask(f"add welcome {who}") for who in ("+1", "“bad”")]
    some.append(await world.ask("remove welcome “x”"))
    for one in some:
        await world.decide(Act.APPROVE, one)
    await world.look(30)
    states = [await state(world, item) for item in some]
    assert states == [State.APPLIED, State.FAILED, State.APPLIED]
    assert world.service.lists[WELCOME] == ["+1"]
