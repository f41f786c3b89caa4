"""What is old is forgotten; what waits is not."""

from bot.store import jobs, outbox
from bot.store.jobs import Job
from bot.store.outbox import Letter, SentCard
from bot.workflows.jobs import Lease
from bot.workflows.retention import Retention

DAY = 86_400


async def send(database, key):
    async with database.transaction() as tx:
        await outbox.put(tx, Letter(key, "note", "1"))
        (letter,) = await outbox.waiting(tx, key)
        await outbox.mark_sent(tx, [letter.id])
        await outbox.remember_card(tx, SentCard(key, "C1", "1.1", "f", await tx.now()))


async def forget(database, days):
    retention = Retention(database, days, [outbox.prune])
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
