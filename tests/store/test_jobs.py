"""Jobs and their leases."""

from contextlib import suppress
from datetime import timedelta

from bot.model.status import JobCount
from bot.store import jobs
from bot.store.jobs import Job


async def put(database, key="apply:1", seconds=0.0, **payload):
    async with database.transaction() as tx:
        due_at = await tx.now() + timedelta(seconds=seconds)
        await jobs.put(tx, Job(key, "apply", "1", due_at, payload))


async def claim(database, owner="a", count=10):
    async with database.transaction() as tx:
        return await jobs.claim(tx, owner, count)


async def finish(database, job, owner="a", again_at=None):
    async with database.transaction() as tx:
        await jobs.finish(tx, owner, job, again_at)


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


async def test_a_job_is_not_claimed_before_it_is_due(database, clock):
    await put(database, seconds=30)
    assert await claim(database) == []
    clock.advance(30)
    assert len(await claim(database)) == 1


async def test_the_job_of_a_dead_owner_is_taken_over_when_its_lease_lapses(database, clock):
    await put(database)
    await claim(database, "dead")
    clock.advance(jobs.LEASE_SECONDS - 1)
    assert await claim(database, "b") == []
    clock.advance(1)
    assert len(await claim(database, "b")) == 1


async def test_a_renewed_lease_does_not_lapse_and_a_lapsed_one_cannot_be_renewed(database, clock):
    await put(database)
    await claim(database, "a")
    clock.advance(15)
    async with database.transaction() as tx:
        assert await jobs.renew(tx, "a", ["apply:1"]) == {"apply:1"}
    clock.advance(15)
    assert await claim(database, "b") == []
    clock.advance(15)
    async with database.transaction() as tx:
        assert await jobs.renew(tx, "a", ["apply:1"]) == set()


async def test_a_finished_job_is_gone(database):
    await put(database)
    (job,) = await claim(database)
    await finish(database, job)
    async with database.read_only() as tx:
        assert (await jobs.count(tx)).total == 0


async def test_a_job_put_again_while_it_runs_runs_again(database):
    await put(database, n=1)
    (job,) = await claim(database)
    await put(database, n=2)
    await finish(database, job)
    (again,) = await claim(database)
    assert again.payload == {"n": 2}


async def test_a_failed_job_waits_and_counts_its_tries(database, clock):
    await put(database)
    (job,) = await claim(database)
    async with database.transaction() as tx:
        await jobs.fail(tx, "a", job, await tx.now() + timedelta(seconds=4), "it broke")
    assert await claim(database) == []
    clock.advance(4)
    (again,) = await claim(database)
    assert again.tries == 1


async def test_late_jobs_are_counted(database, clock):
    await put(database)
    await put(database, "apply:2", seconds=600)
    clock.advance(61)
    async with database.read_only() as tx:
        assert await jobs.count(tx) == JobCount(total=2, due=1, late=1)


async def test_leases_of_the_dead_are_ended_at_once(database):
    await put(database)
    await claim(database, "dead")
    async with database.transaction() as tx:
        await jobs.release_all(tx)
    assert len(await claim(database, "b")) == 1


async def test_runs_that_end_together_end_as_each_alone_would(database, clock):
    keys = ["again", "done", "put-done", "put-again", "lost"]
    for key in keys:
        await put(database, key)
    found = {job.key: job for job in await claim(database)}
    for key in ("put-done", "put-again"):
        await put(database, key, n=2)
    clock.advance(jobs.LEASE_SECONDS)
    async with database.transaction() as tx:
        # Another process has taken one over.
        assert {job.key for job in await jobs.claim(tx, "b", 10)} == set(keys)
        await jobs.release(tx, "b", [key for key in keys if key != "lost"])
        await tx.connection.execute(
            jobs.jobs.update().where(jobs.jobs.c.key != "lost").values(owner="a")
        )
        later = await tx.now() + timedelta(seconds=60)
        ends = {key: None if "done" in key else later for key in keys}
        runs = [jobs.Finished("a", job, ends[key], tries=3) for key, job in found.items()]
        await jobs.finish_all(tx, runs)
        rows = {row.key: row for row in await tx.connection.execute(jobs.jobs.select())}
    assert set(rows) == set(keys) - {"done"}
    assert (rows["again"].due_at, rows["again"].tries) == (later, 3)
    assert all(rows[key].tries == 0 for key in ("put-done", "put-again"))
    assert {key for key, row in rows.items() if row.owner} == {"lost"}
