"""What is old is forgotten; what waits is not."""

from bot.errors import ServiceFailed
from bot.model.approval import Act, State
from bot.store import incidents, jobs, outbox, requests
from bot.store.jobs import Job
from bot.store.outbox import Letter, SentCard
from bot.workflows.jobs import Lease
from bot.workflows.retention import Retention
from bot.workflows.testusers.moves import card_key
from tests.support.testusers import FakeFlowService, World, default_rules

DAY = 86_400


async def send(database, key):
    async with database.transaction() as tx:
        await outbox.put(tx, Letter(key, "note", "1"))
        (letter,) = await outbox.waiting(tx, key)
        await outbox.mark_sent(tx, [letter.id])
        await outbox.remember_card(tx, SentCard(key, "C1", "1.1", "f", await tx.now()))


async def forget(database, days):
    retention = Retention(database, days, [requests.forget, incidents.forget, outbox.prune])
    async with database.reading() as tx:
        job = Job("retain", "retain", "retain", await tx.now())
    return await retention.run(job, Lease(database, "a", job))


async def cards(database, *keys):
    async with database.reading() as tx:
        return [key for key in keys if await outbox.sent_card(tx, key)]


async def test_old_messages_go_and_newer_ones_stay(database, clock):
    await send(database, "old")
    clock.advance(3 * DAY)
    await send(database, "new")
    clock.advance(3 * DAY)
    await forget(database, days=4)
    assert await cards(database, "old", "new") == ["new"]


async def test_an_unsent_letter_stays_whatever_its_age(database, clock):
    async with database.transaction() as tx:
        await outbox.put(tx, Letter("card", "note", "1"))
    clock.advance(1000 * DAY)
    await forget(database, days=4)
    async with database.reading() as tx:
        assert len(await outbox.waiting(tx, "card")) == 1


async def test_it_is_done_again_a_day_later(database, clock):
    assert (await forget(database, days=4) - clock.now()).total_seconds() == DAY


async def test_planning_twice_keeps_one_job_at_its_time(database, clock):
    retention = Retention(database, 4, [])
    async with database.transaction() as tx:
        await retention.plan(tx)
    clock.advance(10)
    async with database.transaction() as tx:
        await retention.plan(tx)
        (job,) = await jobs.claim(tx, "a", 10)
    assert (clock.now() - job.due_at).total_seconds() == 10


async def remember_card(world, request):
    """As the sender does once it has posted the card."""
    async with world.database.transaction() as tx:
        card = SentCard(card_key(request.id), "C1", "1.1", "f", await tx.now())
        await outbox.remember_card(tx, card)


async def is_stored(world, request):
    async with world.database.reading() as tx:
        return await requests.load(tx, request.id) is not None


async def test_a_decided_request_goes_with_its_card(database, clock):
    world = World(database, clock)
    request = await world.ask("add welcome +1")
    await world.decide(Act.DENY, request, reason="no")
    await world.work()
    await remember_card(world, request)
    await world.pass_time(5 * DAY)
    await forget(database, days=4)
    assert not await is_stored(world, request)
    assert await cards(database, card_key(request.id)) == []


async def test_a_request_stays_until_its_last_grant_has_ended_and_that_is_told(database, clock):
    world = World(database, clock)
    request = await world.ask("add welcome +1 for 3d")
    await world.decide(Act.APPROVE, request)
    await world.work()
    await remember_card(world, request)
    for _ in range(2):
        await world.pass_time(DAY)
        await forget(database, days=1)
    assert await cards(database, card_key(request.id)) == [card_key(request.id)]
    await world.pass_time(DAY)
    await forget(database, days=1)
    assert world.told() == ["applied", "ended"]
    assert (await world.stored(request)).progress.ended
    await world.pass_time(2 * DAY)
    await forget(database, days=1)
    assert not await is_stored(world, request)


async def test_what_nobody_wants_back_does_not_keep_its_request(database, clock):
    world = World(database, clock)
    request = await world.ask("add welcome +1")
    await world.decide(Act.APPROVE, request)
    await world.work()
    await world.pass_time(2 * DAY)
    await forget(database, days=1)
    assert not await is_stored(world, request)


async def test_a_request_that_is_retried_late_is_kept_for_as_long_from_then(database, clock):
    trouble = ServiceFailed("flow", "The flow service has a problem of its own.", status=500)
    world = World(database, clock, FakeFlowService(post_faults=[trouble] * 3))
    request = await world.ask("add welcome +1")
    await world.decide(Act.APPROVE, request)
    for _ in range(5):
        await world.pass_time(30)
    assert (await world.stored(request)).state is State.FAILED
    clock.advance(5 * DAY)
    await world.decide(Act.RETRY, request)
    await world.work()
    await forget(database, days=4)
    assert (await world.stored(request)).state is State.APPLIED
    await world.pass_time(5 * DAY)
    await forget(database, days=4)
    assert not await is_stored(world, request)


async def test_a_request_whose_outcome_is_not_told_yet_stays(database, clock):
    world = World(database, clock)
    request = await world.ask("add welcome +1")
    await world.decide(Act.DENY, request, reason="no")
    clock.advance(5 * DAY)
    await forget(database, days=4)
    assert await is_stored(world, request)


async def test_the_card_of_an_open_incident_stays_and_goes_with_it(database, clock):
    async with database.transaction() as tx:
        incident_id, _ = await incidents.count_one(tx, 1, 44, {})
    await send(database, key := f"{outbox.INCIDENT_CARD}{incident_id}")
    clock.advance(5 * DAY)
    await forget(database, days=4)
    assert await cards(database, key) == [key]
    async with database.transaction() as tx:
        assert await incidents.close_all(tx, 1) == [incident_id]
    clock.advance(5 * DAY)
    await forget(database, days=4)
    assert await cards(database, key) == []


async def test_the_card_of_a_request_that_waits_stays_however_long_that_is(database, clock):
    world = World(database, clock, rules=default_rules(request_hours=24 * 10, remind_hours=24 * 9))
    request = await world.ask("add welcome +1")
    await world.work()
    await remember_card(world, request)
    await world.pass_time(5 * DAY)
    await forget(database, days=4)
    assert await cards(database, card_key(request.id)) == [card_key(request.id)]
