"""A change that is approved for later is applied then, unless it is cancelled before."""

from datetime import UTC, datetime, timedelta

from bot.approvals.rules import Act, State
from bot.testusers import store
from tests.support.testusers import (
    ADA,
    OTTO,
    WELCOME,
    World,
)

# The clock of the tests stands at 9:00 UTC, which is 10:00 in the zone of everybody here.
HOUR = 3600


async def scheduled(world: World, text: str = "add welcome +1 from 12:00"):
    request = await world.approved(text)
    await world.work()
    return await world.stored(request)


async def test_a_scheduled_change_is_applied_at_its_start(world):
    request = await scheduled(world, "add welcome +1 for 2h from 12:00")
    assert request.state is State.SCHEDULED
    assert request.requested.starts_at == datetime(2026, 3, 2, 11, tzinfo=UTC)
    assert world.reported() == ["scheduled"]
    await world.pass_time(2 * HOUR - 1)
    assert world.service.lists[WELCOME] == []
    await world.pass_time(1)
    assert world.service.lists[WELCOME] == ["+1"]
    async with world.database.read_only() as tx:
        ends_at = (await store.grants_of_flow(tx, WELCOME))["+1"].ends_at
    assert ends_at == request.requested.starts_at + timedelta(hours=2)
    actions = [action for _, action in await world.audited()]
    assert actions[:3] == ["request.created", "request.approved", "request.started"]
    assert (await world.stored(request)).decided_by.slack_user_id == ADA


async def test_a_scheduled_change_outlives_its_expiry(world):
    request = await scheduled(world, "add welcome +1 from 2026-03-09 10:00")
    await world.pass_time(3 * 24 * HOUR)
    assert (await world.stored(request)).state is State.SCHEDULED
    await world.decide(Act.CANCEL, request, OTTO)
    assert (await world.stored(request)).state is State.CANCELLED
