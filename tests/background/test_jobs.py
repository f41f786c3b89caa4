"""The job loop runs each job once when the job is due.

If a process dies while it is running a job, another process takes over the job.
"""

import asyncio
import errno
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from bot.errors import NotFound
from bot.store import jobs
from bot.store.job_loop import RENEW_SECONDS, JobLoop, Kind, LeaseLost
from bot.store.jobs import LEASE_SECONDS, Again, Job
from tests.conftest import BOTH
from tests.support.databases import ClockedDatabase

PATIENCE = 10


class Work:
    """A job runner that records each job that it runs. A test can pause the runner."""

    def __init__(self, *results: object) -> None:
        self.runs: list[Job] = []
        self.leases = []
        self.results = list(results)
        self.go_on = asyncio.Event()
        self.go_on.set()
        self._seen = asyncio.Event()

    async def __call__(self, job, lease):
        self.runs.append(job)
        self.leases.append(lease)
        self._seen.set()
        await self.go_on.wait()
        result = self.results.pop(0) if self.results else None
        if isinstance(result, Exception):
            raise result
        return result

    async def seen(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self.runs) < count:
                self._seen.clear()
                await self._seen.wait()


async def put(database, key="a", *, after=0.0, kind="work"):
    async with database.transaction() as tx:
        due_at = await tx.now() + timedelta(seconds=after)
        await jobs.put(tx, Job(key, kind, "subject", due_at, {"n": 1}))


async def rows(database):
    async with database.read_only() as tx:
        return list(await tx.connection.execute(jobs.jobs.select()))


async def until(loop, is_true):
    """Wait until `is_true` returns True for the stored jobs."""
    async with asyncio.timeout(PATIENCE):
        while not is_true(await rows(loop._database)):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.fixture
async def another_database(database_url, clock):
    """Open the same database again, as another process would."""
    database = ClockedDatabase(database_url, clock)
    yield database
    await database.close()


@asynccontextmanager
async def running(database, clock, work, owner="me", slow=None):
    loop = JobLoop(database, clock, owner, {"work": Kind(work), "slow": Kind(slow, at_once=3)})
    task = asyncio.create_task(loop.run())
    try:
        yield loop
    finally:
        await loop.stop(PATIENCE)
        await task


async def test_a_job_of_another_process_is_seen_within_a_second(database, another_database, clock):
    work = Work()
    async with running(database, clock, work):
        await until_asleep(clock)
        await put(another_database)
        assert work.runs == []
        clock.advance(1)
        await work.seen(1)


async def test_a_job_runs_at_once_whatever_else_is_due(database, another_database, clock):
    work = Work()
    async with running(database, clock, work, slow=work):
        await until_asleep(clock)
        for nth in range(10):
            await put(another_database, f"card {nth}", kind="slow")
        clock.advance(0.5)
        assert work.runs == []
        await put(database, "click")
        await work.seen(11)
    assert "click" in [job.key for job in work.runs[:8]]


async def test_a_job_that_is_claimed_as_the_loop_ends_may_end_too(database, clock):
    work = Work()
    work.go_on.clear()
    async with running(database, clock, work) as loop:
        await until_asleep(clock)
        async with database.transaction() as tx:
            await jobs.put(tx, Job("a", "work", "subject", await tx.now()))
            await loop._claim(tx)
            await loop.stop(PATIENCE)
        await work.seen(1)
        stopping = asyncio.create_task(loop.stop(PATIENCE))
        await asyncio.sleep(0)
        assert not stopping.done()
        work.go_on.set()
        await stopping
        assert await rows(database) == []


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_a_process_leases_a_job_when_it_stores_it(database, clock):
    work = Work()
    work.go_on.clear()
    async with running(database, clock, work) as loop:
        await until_asleep(clock)
        with suppress(KeyError):
            async with database.transaction() as tx:
                await jobs.put(tx, Job("undone", "work", "subject", await tx.now()))
                raise KeyError
        await put(database)
        (row,) = await rows(database)
        assert row.owner is not None
        await work.seen(1)
        work.go_on.set()
        await until(loop, lambda found: found == [])
    assert [job.key for job in work.runs] == ["a"]


async def test_a_job_whose_claim_had_begun_before_the_stop_is_finished(
    database, clock, monkeypatch
):
    work, claim, go_on = Work(), jobs.claim, asyncio.Event()

    async def claim_slowly(*arguments, **options):
        claimed = await claim(*arguments, **options)
        await go_on.wait()
        return claimed

    await put(database)
    monkeypatch.setattr(jobs, "claim", claim_slowly)
    async with running(database, clock, work) as loop:
        await asyncio.sleep(0.05)
        stopping = asyncio.create_task(loop.stop(PATIENCE))
        await asyncio.sleep(0)
        go_on.set()
        await stopping
        assert await rows(database) == []
    assert [job.key for job in work.runs] == ["a"]


async def test_a_loop_that_is_stopped_before_it_runs_claims_nothing(database, clock):
    work = Work()
    await put(database)
    loop = JobLoop(database, clock, "me", {"work": Kind(work)})
    await loop.stop(PATIENCE)
    async with asyncio.timeout(PATIENCE):
        await loop.run()
    assert work.runs == []


async def until_asleep(clock, count=2):
    """Wait until at least this many tasks, such as the job loop, are sleeping."""
    async with asyncio.timeout(PATIENCE):
        while len(clock._sleepers) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_lease_grows_old_while_the_machine_sleeps(database, clock, monkeypatch):
    """The monotonic clock and the event loop's clock stop while the machine is asleep."""
    asleep = [0.0]
    monkeypatch.setattr(clock, "since_boot", lambda: clock.monotonic() + asleep[0])
    work = Work()
    await put(database)
    async with running(database, clock, work):
        await work.seen(1)
        (lease,) = work.leases
        lease.check()
        asleep[0] = 3600.0
        with pytest.raises(LeaseLost):
            lease.check()


@pytest.mark.parametrize("error", [NotFound("gone"), KeyError("x")])
async def test_a_job_that_fails_is_tried_again_with_growing_pauses(database, clock, error):
    work = Work(*[error] * 7)
    await put(database)
    pauses = []
    async with running(database, clock, work) as loop:
        for tries in range(1, 8):
            await work.seen(tries)
            await until(loop, lambda found, tries=tries: found[0].tries == tries)
            (row,) = await rows(database)
            assert row.owner is None
            pauses.append((row.due_at - clock.now()).total_seconds())
            clock.advance(pauses[-1])
            loop.wake()
        await until(loop, lambda found: found == [])
    assert pauses == [1, 2, 4, 8, 16, 20, 20]


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_a_job_put_again_while_it_runs_runs_again(database, clock):
    work = Work()
    work.go_on.clear()
    await put(database)
    async with running(database, clock, work) as loop:
        await work.seen(1)
        await put(database)
        work.go_on.set()
        await work.seen(2)
        await until(loop, lambda found: found == [])
    assert [job.generation for job in work.runs] == [1, 3]


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_a_long_run_keeps_its_lease(database, clock):
    work, other = Work(), Work()
    work.go_on.clear()
    other.go_on.clear()
    await put(database)
    async with (
        running(database, clock, work) as loop,
        running(database, clock, other, "other") as second,
    ):
        await work_of_either(work, other)
        for _ in range(8):
            await until_asleep(clock, 4)
            before = (await rows(database))[0].leased_until
            clock.advance(RENEW_SECONDS)
            await until(loop, lambda found, before=before: found[0].leased_until > before)
            loop.wake()
            second.wake()
        assert len(work.runs) + len(other.runs) == 1
        work.go_on.set()
        other.go_on.set()


async def work_of_either(*works):
    async with asyncio.timeout(PATIENCE):
        while not any(work.runs for work in works):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_work_of_a_dead_process_is_taken_over_within_thirty_seconds(database, clock):
    await put(database)
    async with database.transaction() as tx:
        assert await jobs.claim(tx, "dead", 1)
    work = Work()
    async with running(database, clock, work) as loop:
        clock.advance(LEASE_SECONDS - 1)
        loop.wake()
        await until_asleep(clock)
        assert work.runs == []
        clock.advance(2)
        loop.wake()
        await work.seen(1)
    assert LEASE_SECONDS + 1 <= 30


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_who_lost_the_lease_changes_nothing(database, clock):
    work = Work()
    work.go_on.clear()
    await put(database)
    async with running(database, clock, work):
        await work.seen(1)
        async with database.transaction() as tx:
            await tx.connection.execute(jobs.jobs.update().values(owner="another"))
        with pytest.raises(LeaseLost):
            await work.leases[0].confirm()
        work.go_on.set()
    (row,) = await rows(database)
    assert row.owner == "another"


async def test_a_database_that_is_away_for_a_while_is_logged_once(database, clock, monkeypatch):
    work = Work()
    broken = True
    asked = asyncio.Event()
    real_claim = jobs.claim

    async def claim(*args, **options):
        asked.set()
        if broken:
            raise OSError(errno.ECONNRESET, "away")
        return await real_claim(*args, **options)

    monkeypatch.setattr(jobs, "claim", claim)
    await put(database)
    with capture_logs() as lines:
        async with running(database, clock, work) as loop:
            for _ in range(4):
                await asked.wait()
                asked.clear()
                loop.wake()
            assert work.runs == []
            broken = False
            loop.wake()
            await work.seen(1)
    assert [line["event"] for line in lines].count("database.failed") == 1


def leases(found):
    return {row.key: row.leased_until for row in found}


@pytest.mark.postgres
async def test_a_renewal_takes_no_lock_that_its_waiters_hold(postgres_url, clock):
    database, work = ClockedDatabase(postgres_url, clock), Work()
    try:
        for key in ("a", "b"):
            await put(database, key)
        work.go_on.clear()
        async with running(database, clock, work) as loop:
            await work.seen(2)
            await until_asleep(clock)
            async with database.transaction() as tx:
                lock = jobs.jobs.select().where(jobs.jobs.c.key == "b").with_for_update()
                await tx.connection.execute(lock)
                clock.advance(RENEW_SECONDS)
                renewed = clock.now() + timedelta(seconds=LEASE_SECONDS)
                await until(loop, lambda found: leases(found)["a"] == renewed)
                assert leases(await rows(database))["b"] < renewed
            work.go_on.set()
    finally:
        await database.close()


async def test_leases_are_renewed_while_other_jobs_end(database, clock, monkeypatch):
    work, ended, renew = Work(), {}, jobs.renew
    for key in ("a", "b"):
        await put(database, key)
    work.go_on.clear()
    async with running(database, clock, work) as loop:
        await work.seen(2)
        await until_asleep(clock)

        async def renew_as_a_job_ends(tx, owner, key, **options):
            ended.update([loop._running.popitem()])
            await renew(tx, owner, key, **options)

        monkeypatch.setattr(jobs, "renew", renew_as_a_job_ends)
        clock.advance(RENEW_SECONDS)
        renewed = clock.now() + timedelta(seconds=LEASE_SECONDS)
        await until(loop, lambda found: set(leases(found).values()) == {renewed})
        assert {lease.job.key for lease in ended} == {"a", "b"}
        loop._running.update(ended)
        work.go_on.set()


async def test_a_failed_run_counts_its_tries(database, clock):
    async def fails(job, lease):
        return Again(clock.now() + timedelta(seconds=10), job.tries + 1)

    await put(database, "apply")
    async with running(database, clock, fails) as loop:
        await until(loop, lambda found: bool(found) and found[0].tries == 1)
    (row,) = await rows(database)
    assert (row.owner, row.due_at) == (None, clock.now() + timedelta(seconds=10))


async def test_hanging_jobs_do_not_delay_another_kind(database, clock, monkeypatch):
    monkeypatch.setattr("bot.store.job_loop.CLAIMED_AT_ONCE", 2)
    hanging, work = Work(), Work()
    hanging.go_on.clear()
    for number in range(6):
        await put(database, f"hanging {number}", kind="slow")
    await put(database)
    async with running(database, clock, work, slow=hanging) as loop:
        await work.seen(1)
        assert len(hanging.runs) == 4
        hanging.go_on.set()
        await until(loop, lambda found: found == [])
