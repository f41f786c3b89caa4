"""The audit's head is posted once a day, and an edited row is told of once."""

import pytest

from bot.background.jobs import Lease
from bot.model.audit import AuditEntry
from bot.model.signatures import Seal
from bot.store import jobs, outbox
from bot.store.audit import AuditStore
from bot.store.seals import EditedRow
from bot.workflows.record_watch import A_DAY, EDITED, HEAD, WITNESS_KIND, RecordWatch

KEY = b"the key of the audit"


@pytest.fixture
def audit():
    return AuditStore(KEY)


@pytest.fixture
def watch(database, audit):
    database.seal = Seal(KEY)
    return RecordWatch(database, audit, "C0ALERTS", is_witnessed=True)


async def waiting(database, key):
    async with database.read_only() as tx:
        return await outbox.waiting(tx, key)


async def test_head_is_posted_a_day_after_the_start_and_every_day(watch, database, audit, clock):
    async with database.transaction() as tx:
        await audit.append(tx, AuditEntry("U1", "request.created", "r1"))
        await watch.plan(tx)
        _, head = await audit.head(tx)
        assert WITNESS_KIND not in {job.key for job in await jobs.claim(tx, "me", 10)}
    clock.advance(A_DAY.total_seconds())
    async with database.transaction() as tx:
        (job,) = [one for one in await jobs.claim(tx, "me", 10) if one.kind == WITNESS_KIND]
    again_at = await watch.witness(job, Lease(database, "me", job))
    assert again_at == clock.now() + A_DAY
    (message,) = await waiting(database, f"{HEAD}:1")
    note = await watch.head_note(message)
    assert note.channel_id == "C0ALERTS"
    assert f"audit verify --head {head}" in note.message.text


async def test_witness_that_is_off_posts_nothing(database, audit):
    quiet = RecordWatch(database, audit, "C0ALERTS", is_witnessed=False)
    async with database.transaction() as tx:
        await quiet.plan(tx)
        assert (await jobs.count(tx)).total == 0


async def test_edited_row_is_told_of_once_until_it_is_edited_again(watch, database, audit):
    for mark in ("one", "one", "two"):
        await watch.tell(EditedRow("job", "click:1", mark))
    async with database.read_only() as tx:
        entries = await audit.latest(tx, 10)
    assert [entry.action for entry in entries] == [EDITED, EDITED]
    (message,) = await waiting(database, "edited:job:click:1:one")
    assert "click:1" in (await watch.edited_note(message)).message.text
