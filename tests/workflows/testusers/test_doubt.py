"""What became of a POST is decided by request and person, and looked for until it is known."""

import json

import pytest

from bot.model.testusers.approval import Act, State
from bot.model.testusers.changes import Change
from bot.service_errors import (
    CredentialsRefused,
    PermissionMissing,
    RateLimited,
    ServiceFailed,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.store import flows, grants
from tests.support.testusers import ADA, WELCOME, World

HOUR = 3600


def failed() -> ServiceFailed:
    return ServiceFailed("flow", "The flow service has a problem of its own.", status=502)


def unreachable(*, sent: bool) -> ServiceUnreachable:
    return ServiceUnreachable("flow", "The flow service cannot be reached.", sent=sent)


async def approved(world: World, text: str):
    request = await world.ask(text)
    await world.decide(Act.APPROVE, request, ADA)
    return request


async def in_doubt(world: World) -> int:
    async with world.database.read_only() as tx:
        return len(await flows.posts(tx, WELCOME))


async def state(world: World, request) -> State:
    return (await world.stored(request)).state


async def changes_audited(world: World) -> list[dict]:
    async with world.database.read_only() as tx:
        entries = await world.audit.latest(tx, 1000)
    return [json.loads(one.detail) for one in reversed(entries) if one.action == "flow.changed"]


async def look(world: World, seconds: int = 90) -> None:
    for _ in range(seconds // 5):
        await world.pass_time(5)


async def test_late_post_does_not_undo_what_was_added_since(world):
    world.service.lists[WELCOME], world.service.late = ["x"], 1
    first = await approved(world, "add welcome +1")
    await world.work()
    second = await approved(world, "add welcome +2")
    await world.pass_time(1)
    assert (await state(world, first), await state(world, second)) == (State.APPLIED,) * 2
    world.service.land()
    assert world.service.lists[WELCOME] == ["x", "+1"]
    await world.pass_time(5)
    assert set(world.service.lists[WELCOME]) == {"x", "+1", "+2"}
    await look(world)
    assert await in_doubt(world) == 0
    assert set(world.service.lists[WELCOME]) == {"x", "+1", "+2"}
    assert (await changes_audited(world))[-1]["repaired"] == ["+2"]


async def test_late_post_does_not_bring_back_who_was_removed_since(world):
    world.service.lists[WELCOME], world.service.late = ["bad"], 1
    await approved(world, "add welcome +1")
    await world.work()
    await approved(world, "remove welcome bad")
    await world.pass_time(1)
    world.service.land()
    assert "bad" in world.service.lists[WELCOME]
    await look(world)
    assert world.service.lists[WELCOME] == ["+1"]


async def test_late_post_does_not_bring_back_whose_time_is_over(world):
    timed = await approved(world, "add welcome +1 for 3s")
    await world.work()
    world.service.late = 1
    await approved(world, "add welcome +2")
    await world.work()
    await world.pass_time(4)
    assert world.service.lists[WELCOME] == ["+2"]
    world.service.land()
    assert "+1" in world.service.lists[WELCOME]
    await look(world)
    assert world.service.lists[WELCOME] == ["+2"]
    assert [one.identity for one in (await world.stored(timed)).progress.ended] == ["+1"]


async def test_late_post_does_not_undo_an_edit_that_was_seen(world):
    world.service.lists[WELCOME], world.service.late = ["x"], 1
    await approved(world, "add welcome +1")
    await world.work()
    world.service.lists[WELCOME].append("by hand")
    await world.pass_time(5)
    world.service.land()
    await look(world)
    assert set(world.service.lists[WELCOME]) == {"x", "+1", "by hand"}


async def test_late_post_is_expected_although_somebody_did_the_same(world):
    """Others add the person by hand, which looks as if the POST had arrived."""
    world.service.late = 1
    first = await approved(world, "add welcome +1")
    await world.work()
    world.service.lists[WELCOME] = ["+1"]
    await world.pass_time(5)
    assert await state(world, first) is State.APPLIED
    second = await approved(world, "add welcome +2")
    await world.work()
    assert await state(world, second) is State.APPLIED
    world.service.land()
    assert world.service.lists[WELCOME] == ["+1"]
    await look(world)
    assert set(world.service.lists[WELCOME]) == {"+1", "+2"}
    assert await in_doubt(world) == 0


async def test_repair_is_tried_until_the_service_takes_it(world):
    world.service.late = 1
    await approved(world, "add welcome +1")
    await world.work()
    await approved(world, "add welcome +2")
    await world.pass_time(1)
    world.service.land()
    world.service.post_faults = [failed() for _ in range(4)]
    await look(world, 600)
    assert set(world.service.lists[WELCOME]) == {"+1", "+2"}
    assert await in_doubt(world) == 0


async def test_repair_that_is_refused_makes_no_request_true(world):
    world.service.late = 1
    await approved(world, "add welcome +1")
    await world.work()
    await approved(world, "add welcome +2")
    await world.pass_time(1)
    world.service.land()
    assert world.service.lists[WELCOME] == ["+1"]
    request = await approved(world, "add welcome +2 for 2h")
    world.service.post_faults = [PermissionMissing("flow", "403")]
    await world.work()
    assert world.service.lists[WELCOME] == ["+1"]
    assert await state(world, request) is State.APPLYING
    await look(world)
    assert world.service.lists[WELCOME] == ["+1", "+2"]
    assert await state(world, request) is State.APPLIED


async def test_failure_takes_no_later_request_along_that_is_true(world):
    world.service.lists[WELCOME] = ["+2"]
    world.service.store_without("+1")
    first = await world.ask("add welcome +1 +2 for 2h")
    second = await world.ask("remove welcome +2")
    await world.decide(Act.APPROVE, first, ADA)
    world.clock.advance(1)
    await world.decide(Act.APPROVE, second, ADA)
    await look(world)
    assert world.service.lists[WELCOME] == []
    assert (await state(world, first), await state(world, second)) == (State.FAILED, State.APPLIED)
    assert sorted(world.reported()) == ["applied", "failed"]


async def test_looking_ends_when_nothing_is_in_doubt(world):
    world.service.post_faults = [failed()]
    request = await approved(world, "add welcome +1")
    await world.work()
    await look(world)
    assert await state(world, request) is State.APPLIED
    reads = world.service.reads
    await world.pass_time(HOUR)
    assert world.service.reads == reads
    assert await in_doubt(world) == 0


async def test_post_that_lands_is_not_taken_for_an_earlier_one(world):
    world.service.post_faults = [failed()]
    await approved(world, "add welcome +1")
    await world.work()
    await world.pass_time(1)
    await approved(world, "remove welcome +1")
    await world.work()
    assert world.service.lists[WELCOME] == []
    again = await approved(world, "add welcome +1")
    world.service.post_faults, world.service.late = [failed(), failed()], 1
    for seconds in (0, 1, 3):
        await world.pass_time(seconds)
    world.service.land()
    await look(world)
    assert await state(world, again) is State.APPLIED
    assert world.service.lists[WELCOME] == ["+1"]
    assert world.reported() == ["applied", "applied", "applied"]


async def test_applied_only_when_everybody_is_there(world):
    request = await approved(world, "add welcome +1 +2 +3")
    world.service.post_faults = [unreachable(sent=False)]
    await world.work()
    world.service.lists[WELCOME] = ["+1", "+2"]
    world.service.post_faults = [unreachable(sent=False)]
    await world.pass_time(1)
    assert await state(world, request) is State.APPLYING
    await world.pass_time(3)
    stored = await world.stored(request)
    assert set(world.service.lists[WELCOME]) == {"+1", "+2", "+3"}
    assert stored.progress.done.change == Change(("+3",))
    assert stored.progress.done.already == Change(("+1", "+2"))


async def test_request_that_is_true_in_part_is_not_applied(world):
    world.service.store_without("+3")
    request = await approved(world, "add welcome +1 +2 +3")
    await look(world)
    stored = await world.stored(request)
    assert stored.state is State.FAILED
    assert "a different list" in stored.progress.failure
    world.service.answers = list
    await world.decide(Act.RETRY, request)
    await world.work()
    stored = await world.stored(request)
    assert stored.state is State.APPLIED
    assert stored.progress.done.change == Change(("+1", "+2", "+3"))


async def test_identity_that_is_dropped_fails_only_its_own_request(world):
    world.service.store_without("bad")
    good, bad = await world.ask("add welcome +1 for 2h"), await world.ask("add welcome bad")
    await world.decide(Act.APPROVE, good)
    await world.decide(Act.APPROVE, bad)
    await look(world)
    assert (await state(world, good), await state(world, bad)) == (State.APPLIED, State.FAILED)
    async with world.database.read_only() as tx:
        assert list(await grants.of_flow(tx, WELCOME)) == ["+1"]
    await world.pass_time(2 * HOUR)
    assert world.service.lists[WELCOME] == []


async def test_spent_request_that_is_true_by_now_is_applied(world):
    request = await approved(world, "add welcome +1 for 2h")
    world.service.post_faults = [failed() for _ in range(3)]
    for _ in range(3):
        await world.pass_time(3.2)
    world.service.lists[WELCOME] = ["+1"]
    await look(world)
    assert await state(world, request) is State.APPLIED
    assert world.reported() == ["applied"]
    await world.pass_time(2 * HOUR)
    assert world.service.lists[WELCOME] == []


async def test_right_that_is_missing_for_one_fails_only_its_request(world):
    world.service.refuses = lambda identities: (
        PermissionMissing("flow", "Not that one.") if "bad" in identities else None
    )
    good, bad = await world.ask("add welcome +1"), await world.ask("add welcome bad")
    await world.decide(Act.APPROVE, good)
    await world.decide(Act.APPROVE, bad)
    await look(world)
    assert (await state(world, good), await state(world, bad)) == (State.APPLIED, State.FAILED)


def without_answer() -> ServiceTimeout:
    return ServiceTimeout("flow", "The flow service gave no answer in time.")


def spoils(identity: str, error):
    """Every update with the identity in it fails."""
    return lambda identities: error() if identity in identities else None


@pytest.mark.parametrize("error", [failed, without_answer])
async def test_service_that_fails_for_one_fails_only_its_request(world, error):
    world.service.lists[WELCOME] = ["x"]
    timed = await approved(world, "add welcome +9 for 1s")
    await world.work()
    world.service.refuses = spoils("bad", error)
    good, bad = await world.ask("add welcome +1 for 2h"), await world.ask("add welcome bad")
    leaving = await world.ask("remove welcome x")
    for one in (good, bad, leaving):
        await world.decide(Act.APPROVE, one)
    await look(world)
    states = [await state(world, one) for one in (good, bad, leaving)]
    assert states == [State.APPLIED, State.FAILED, State.APPLIED]
    assert world.service.lists[WELCOME] == ["+1"]
    assert [one.identity for one in (await world.stored(timed)).progress.ended] == ["+9"]
    assert await in_doubt(world) == 0
    assert sorted(world.reported()) == ["applied", "applied", "applied", "ended", "failed"]


async def test_failure_of_the_service_is_tried_alone_only_at_last(world):
    world.service.post_faults = [failed() for _ in range(2)]
    some = [await world.ask(f"add welcome +{number}") for number in range(3)]
    for one in some:
        await world.decide(Act.APPROVE, one)
    for seconds in (0, 1, 3):
        await world.pass_time(seconds)
    assert list(map(len, world.service.posts)) == [1, 2, 3]
    assert {await state(world, one) for one in some} == {State.APPLIED}


async def test_list_that_cannot_be_read_is_read_once_for_all(world):
    some = [await world.ask(f"add welcome +{number}") for number in range(3)]
    for one in some:
        await world.decide(Act.APPROVE, one)
    world.service.read_faults = [failed() for _ in range(9)]
    reads = world.service.reads
    for seconds in (0, 1, 3):
        await world.pass_time(seconds)
    assert world.service.reads - reads == 3
    assert {await state(world, one) for one in some} == {State.FAILED}


async def test_late_post_of_who_spoils_takes_nobody_along(world):
    world.service.refuses = spoils("bad", failed)
    good, bad = await world.ask("add welcome +1"), await world.ask("add welcome bad")
    await world.decide(Act.APPROVE, bad)
    world.clock.advance(1)
    await world.decide(Act.APPROVE, good)
    for seconds in (0, 1, 3):
        await world.pass_time(seconds)
    assert await state(world, good) is State.APPLIED
    world.service.refuses = lambda identities: None
    world.service.lists[WELCOME] = ["bad"]
    await look(world)
    assert sorted(world.service.lists[WELCOME]) == ["+1", "bad"]
    assert await state(world, bad) is State.APPLIED


@pytest.mark.parametrize(
    "error",
    [
        unreachable(sent=False),
        CredentialsRefused("flow", "401"),
        PermissionMissing("flow", "403"),
        RateLimited("flow", "429", code=None),
    ],
    ids=["connection refused", "401", "403", "429"],
)
async def test_what_certainly_did_not_arrive_is_not_in_doubt(world, error):
    request = await approved(world, "add welcome +1")
    world.service.post_faults = [error]
    await world.work()
    assert await in_doubt(world) == 0
    world.service.read_faults = [failed() for _ in range(2)]
    for _ in range(3):
        await world.pass_time(4)
    stored = await world.stored(request)
    assert stored.state is State.FAILED
    assert "don't know" not in stored.progress.failure


async def test_connection_that_broke_while_sending_is_in_doubt(world):
    await approved(world, "add welcome +1")
    world.service.post_faults = [unreachable(sent=True)]
    await world.work()
    assert await in_doubt(world) == 1
