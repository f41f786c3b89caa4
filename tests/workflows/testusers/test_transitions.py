"""A step and its entry in the audit are written together, or neither is."""

import pytest

from bot.approvals.rules import Act, State
from bot.errors import DatabaseUnavailable
from bot.store import jobs, outbox
from bot.store.audit import AuditStore
from bot.testusers import store
from tests.support.testusers import ABEL, ADA, OTTO, World

DAY = 24 * 3600
DECISIONS = [(Act.APPROVE, ADA), (Act.DENY, ABEL), (Act.CANCEL, OTTO)]


class FullAudit(AuditStore):
    """An audit that takes no more entries of one action, or of any."""

    def __init__(self, action: str | None) -> None:
        self._action = action

    async def append(self, tx, entry) -> None:
        if self._action in (None, entry.action):
            raise DatabaseUnavailable
        await super().append(tx, entry)


def fill_audit(world: World, action: str | None = None) -> None:
    world.audit = FullAudit(action)


def empty_audit(world: World) -> None:
    world.audit = AuditStore()
    world.clock.advance(jobs.LEASE_SECONDS)


async def waiting_messages(world: World, request) -> int:
    async with world.database.read_only() as tx:
        return len(await outbox.waiting(tx, f"request:{request.id}"))


async def test_no_request_without_its_entry(world):
    fill_audit(world)
    with pytest.raises(DatabaseUnavailable):
        await world.ask("add welcome +1")
    async with world.database.read_only() as tx:
        assert await store.count_pending(tx) == 0
    await world.pass_time(DAY)
    assert world.messages == []


@pytest.mark.parametrize(("act", "by"), DECISIONS)
async def test_no_decision_without_its_entry(world, act, by):
    request = await world.ask("add welcome +1")
    await world.work()
    fill_audit(world)
    with pytest.raises(DatabaseUnavailable):
        await world.decide(act, request, by, "no")
    assert (await world.stored(request)).state is State.PENDING
    assert await waiting_messages(world, request) == 0
    await world.work()
    assert world.service.posts == []
    assert world.reported() == []


@pytest.mark.parametrize("action", ["flow.changed", "request.applied"])
async def test_no_change_is_called_applied_without_its_entries(world, action):
    request = await world.approved("add welcome +1")
    fill_audit(world, action)
    with pytest.raises(DatabaseUnavailable):
        await world.work()
    assert (await world.stored(request)).state is State.APPLYING
    assert world.reported() == []
    empty_audit(world)
    await world.work()
    assert (await world.stored(request)).state is State.APPLIED
    assert world.service.posts == [("+1",)]
    assert [action for _, action in await world.audited()][-2:] == [
        "flow.changed",
        "request.applied",
    ]
