"""Jobs and their leases."""

from contextlib import suppress
from datetime import timedelta

from bot.store import jobs
from bot.store.jobs import Job


async def put(database, key="apply:1", seconds=0.0, **payload):
    async with database.transaction() as tx:
        due_at = await tx.now() + timedelta(seconds=seconds)
        await jobs.put(tx, Job(key, "apply", "1", due_at, payload))


async def claim(database, owner="a", count=10):
    async with database.transaction() as tx:
        return await jobs.claim(tx, owner, count)


async def test_who_runs_jobs_is_woken_once_for_what_is_due_and_committed(database):
    woken = []
    database.on_due_jobs(lambda: woken.append(1))
    await put(database, seconds=30)
    with suppress(KeyError):
        async with database.transaction() as tx:
            await jobs.put(tx, Job("undone", "apply", "1", await tx.now()))
            raise KeyError
    async with database.transaction() as tx:
        for key in ("one", "two"):
            await jobs.ensure(tx, Job(key, "apply", "1", await tx.now()))
        assert woken == []
    assert woken == [1]


async def test_a_job_is_claimed_by_one_owner(database):
    await put(database)
    assert [job.key for job in await claim(database, "a")] == ["apply:1"]
    assert await claim(database, "b") == []


async def test_leases_of_the_dead_are_ended_at_once(database):
    await put(database)
    await claim(database, "dead")
    async with database.transaction() as tx:
        await jobs.release_all(tx)
    assert len(await claim(database, "b")) == 1
