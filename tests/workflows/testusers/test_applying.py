"""An approved change takes effect once, on the list that stands then, and nobody else is lost."""

import json

import pytest

from bot.approvals.rules import Act, State
from bot.services.errors import ServiceTimeout
from bot.store import audit, jobs
from bot.store.job_loop import Lease, LeaseLost
from bot.testusers import store
from bot.testusers.applying import Applying
from bot.testusers.rules.changes import Change
from tests.conftest import BOTH
from tests.support.testusers import WELCOME, World


def timed_out() -> ServiceTimeout:
    return ServiceTimeout("flow", "The flow service gave no answer in time.")


async def test_an_approval_during_the_read_rides_along(world):
    first, second = await world.ask("add welcome +1"), await world.ask("add welcome +2")
    await world.decide(Act.APPROVE, first)

    async def approve_second(call: str) -> None:
        world.service.on_call = None
        await world.decide(Act.APPROVE, second)

    world.service.on_call = approve_second
    await world.work()
    assert [set(post) for post in world.service.posts] == [{"+1", "+2"}]


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_flow_is_changed_by_one_process_at_a_time(world):
    first, second = await world.ask("add welcome +1"), await world.ask("add welcome +2")
    await world.decide(Act.APPROVE, first)
    other = World(world.database, world.clock, world.service, owner="two")
    seen = []

    async def other_works(call: str) -> None:
        if call == "replace":
            world.service.on_call = None
            reads = world.service.reads
            await other.decide(Act.APPROVE, second)
            await other.work()
            seen.append((world.service.reads - reads, list(world.service.posts)))

    world.service.on_call = other_works
    await world.work()
    assert seen == [(0, [])]
    assert world.service.posts == [("+1",), ("+1", "+2")]


async def test_an_edit_after_a_lost_answer_is_kept(world):
    request = await world.approved("add welcome +1")
    world.service.lost_answers = [timed_out()]
    await world.work()
    world.service.lists[WELCOME] = ["new", "+1"]
    await world.pass_time(1)
    assert world.service.lists[WELCOME] == ["new", "+1"]
    assert (await world.stored(request)).progress.done.outside == Change(("new",))


async def test_a_lost_lease_never_sends(world):
    await world.approved("add welcome +1")
    async with world.database.transaction() as tx:
        (job,) = [
            item for item in await jobs.claim(tx, "slow", 9) if item.kind == "testusers.apply"
        ]
    world.clock.advance(jobs.LEASE_SECONDS + 1)
    with pytest.raises(LeaseLost):
        await Applying(world).run(job, Lease(world.database, "slow", job))
    assert world.service.posts == []
    await world.work()
    assert world.service.posts == [("+1",)]


async def test_a_machine_that_slept_while_connecting_does_not_send(world):
    """The event loop's time stands still then, and so do its time-outs."""
    request = await world.approved("add welcome +1")

    async def sleep(call: str) -> None:
        if call == "replace":
            world.service.on_call = None
            world.clock.advance(6)

    world.service.on_call = sleep
    await world.work()
    assert world.service.posts == []
    async with world.database.read_only() as tx:
        assert await store.post_of(tx, WELCOME) is None
    await world.pass_time(1)
    assert world.service.posts == [("+1",)]
    assert (await world.stored(request)).state is State.APPLIED


async def test_the_audit_has_the_list_before_and_after_every_change(world):
    world.service.lists[WELCOME] = ["old"]
    request = await world.approved("add welcome +1")
    world.clock.advance(60)
    at = world.clock.now()
    await world.work()
    async with world.database.read_only() as tx:
        entries = await audit.latest(tx, 9)
    (changed,) = [entry for entry in entries if entry.action == "flow.changed"]
    detail = json.loads(changed.detail)
    assert (detail["before"], detail["after"]) == (["old"], ["old", "+1"])
    assert (changed.at, detail["requests"]) == (at, [request.id])
