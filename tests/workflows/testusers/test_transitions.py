"""A step and its entry in the audit are written together, or neither is."""

import pytest

from bot.approvals.rules import Act, State
from bot.errors import DatabaseUnavailable
from bot.store import audit, jobs, outbox
from bot.testusers import store
from tests.support.testusers import ABEL, ADA, OTTO, World

DAY = 24 * 3600
DECISIONS = [(Act.APPROVE, ADA), (Act.DENY, ABEL), (Act.CANCEL, OTTO)]


@pytest.fixture
def fill_audit(monkeypatch):
    """Let the audit take no more entries of one action, or of any; until `monkeypatch.undo`."""
    append = audit.append

    def fill(action: str | None = None) -> None:
        async def refuse(tx, entry) -> None:
            if action in (None, entry.action):
                raise DatabaseUnavailable
            await append(tx, entry)

        monkeypatch.setattr(audit, "append", refuse)

    return fill


async def waiting_messages(world: World, request) -> int:
    async with world.database.read_only() as tx:
        return len(await outbox.waiting(tx, f"request:{request.id}"))


async def test_no_request_without_its_entry(world, fill_audit):
    fill_audit()
    with pytest.raises(DatabaseUnavailable):
        await world.ask("add welcome +1")
    async with world.database.read_only() as tx:
        assert await store.count_pending(tx) == 0
    await world.pass_time(DAY)
    assert world.messages == []


@pytest.mark.parametrize(("act", "by"), DECISIONS)
async def test_no_decision_without_its_entry(world, fill_audit, act, by):
    request = await world.ask("add welcome +1")
    await world.work()
    fill_audit()
    with pytest.raises(DatabaseUnavailable):
        await world.decide(act, request, by, "no")
    assert (await world.stored(request)).state is State.PENDING
    assert await waiting_messages(world, request) == 0
    await world.work()
    assert world.service.posts == []
    assert world.reported() == []


@pytest.mark.parametrize("action", ["flow.changed", "request.applied"])
async def test_no_change_is_called_applied_without_its_entries(
    world, fill_audit, monkeypatch, action
):
    request = await world.approved("add welcome +1")
    fill_audit(action)
    with pytest.raises(DatabaseUnavailable):
        await world.work()
    assert (await world.stored(request)).state is State.APPLYING
    assert world.reported() == []
    monkeypatch.undo()
    world.clock.advance(jobs.LEASE_SECONDS)
    await world.work()
    assert (await world.stored(request)).state is State.APPLIED
    assert world.service.posts == [("+1",)]
    assert [action for _, action in await world.audited()][-2:] == [
        "flow.changed",
        "request.applied",
    ]
