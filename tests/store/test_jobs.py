"""Tests that only one process handles each job, card and delivery."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, text

from bot.errors import Replayed
from bot.ops.logs import following
from bot.slack import received_events
from bot.slack.tables import received_events as table
from bot.store import jobs, outbox
from bot.store.engine import Database
from bot.store.jobs import Job
from bot.store.outbox import SentCard
from bot.store.tables import EPOCH


async def put(database, key="apply:1", seconds=0.0, **payload):
    async with database.transaction() as tx:
        due_at = await tx.now() + timedelta(seconds=seconds)
        await jobs.put(tx, Job(key, "apply", "1", due_at, payload))


async def claim(database, owner="a", count=10):
    async with database.transaction() as tx:
        return await jobs.claim(tx, owner, count)


async def test_due_jobs_are_claimed_once_with_the_commit_that_stores_them(database):
    claimed, started = [], []

    async def claim_due(tx):
        claimed.append([job.key for job in await jobs.claim(tx, "me", 10)])
        tx.after_commit.append(lambda: started.append(1))

    database.claim_due_jobs = claim_due
    await put(database, seconds=30)
    with suppress(KeyError):
        async with database.transaction() as tx:
            await jobs.put(tx, Job("undone", "apply", "1", await tx.now()))
            raise KeyError
    async with database.transaction() as tx:
        for key in ("one", "two"):
            await jobs.ensure(tx, Job(key, "apply", "1", await tx.now()))
        assert claimed == started == []
    # A job that is stored for later makes no transaction look for due jobs.
    assert claimed == [["one", "two"]]
    assert started == [1]


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


async def taken(database, digest) -> bool:
    with following(digest):
        return await received_events.ReceivedEvents(database).take()


async def kept(database) -> set[str]:
    async with database.read_only() as tx:
        return set(await tx.connection.scalars(select(table.c.event_id)))


async def test_signature_is_taken_once_by_whoever_comes_first(database):
    at_once = await asyncio.gather(*(taken(database, "a") for _ in range(5)))
    assert sorted(at_once) == [False, False, False, False, True]
    assert await taken(database, "b")
    assert not await taken(database, "b")


async def test_a_rolled_back_grant_was_not_taken(database):
    async def break_off() -> None:
        async with received_events.taking_in(database):
            raise KeyError

    with pytest.raises(KeyError), following("a"):
        await break_off()
    assert await taken(database, "a")


async def test_what_comes_twice_is_stored_once(database):
    async def store(number: int) -> None:
        with following("a"):
            async with received_events.taking_in(database) as tx:
                await jobs.put_after(tx, Job(f"click:{number}", "click", "1", EPOCH))

    at_once = await asyncio.gather(*map(store, range(5)), return_exceptions=True)
    assert [type(result) for result in at_once].count(Replayed) == 4
    assert at_once.count(None) == 1
    assert len(await claim(database, "a")) == 1


async def test_signatures_and_events_are_forgotten_in_time(database, clock):
    await taken(database, "old")
    assert await received_events.ReceivedEvents(database).claim("Ev1")
    clock.advance(86_401)
    await taken(database, "new")
    async with database.transaction() as tx:
        assert await received_events.forget(tx, await tx.now() - timedelta(days=400)) == 2
    assert [item.partition(":")[0] for item in await kept(database)] == ["signature"]


AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
CARD = SentCard("request:1", "C0APPROVALS", "1.0", 1, AT)
BLOCKED = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


async def note(database: Database, card: SentCard, read: SentCard | None) -> bool:
    async with database.transaction() as tx:
        return await outbox.record_card(tx, card, read)


async def noted(database: Database) -> SentCard | None:
    async with database.read_only() as tx:
        found = await outbox.sent_card(tx, CARD.key)
        return found and replace(found, sent_at=AT)


async def test_a_card_is_saved_only_if_its_stored_version_was_read(database):
    edited = replace(CARD, version=2)
    assert await note(database, CARD, None)
    assert not await note(database, edited, None)
    assert await noted(database) == CARD
    assert await note(database, edited, CARD)
    assert not await note(database, replace(CARD, version=3), CARD)
    assert await noted(database) == edited


async def test_card_that_was_forgotten_is_not_noted_again(database):
    assert not await note(database, CARD, replace(CARD, version=4))
    assert await noted(database) is None


async def somebody_waits(database: Database) -> None:
    """Wait until one transaction is blocked by another."""
    blocked = False
    async with asyncio.timeout(30):
        while not blocked:
            # Within a transaction, PostgreSQL shows the same activity each time.
            async with database.read_only() as tx:
                blocked = bool(await tx.connection.scalar(BLOCKED))


@pytest.mark.postgres
@pytest.mark.parametrize("read", [None, CARD], ids=["post", "edit"])
async def test_one_of_two_notes_at_once_counts(postgres_url, clock, read):
    """The second transaction uses data that was read before the first one committed."""
    one, two = Database(postgres_url, clock), Database(postgres_url, clock)
    if read:
        await note(one, read, None)
    first, second = replace(CARD, version=5), replace(CARD, version=6)
    async with one.transaction() as tx:
        assert await outbox.record_card(tx, first, read)
        late = asyncio.create_task(note(two, second, read))
        await somebody_waits(two)
    assert not await late
    assert await noted(one) == first
    await one.close()
    await two.close()
