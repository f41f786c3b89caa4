"""Old records are deleted, but pending work is kept."""

from collections import defaultdict

import pytest
from sqlalchemy import JSON, event, select

from bot.app import PRUNES
from bot.approvals.rules import Act, State
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.quota import IncidentDetail
from bot.quotas.store import accounts, incidents
from bot.quotas.tables import incidents as incidents_table
from bot.slack.tables import received_events
from bot.store import audit, outbox, tables
from bot.store.audit_entry import AuditEntry
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage, SentCard
from bot.store.retention import Retention
from bot.store.tables import EpochSeconds, UtcDateTime
from bot.testusers import store
from bot.testusers.rules.people import Over
from bot.testusers.tables import requests
from bot.testusers.work import card_key
from tests.conftest import BOTH
from tests.support.testusers import World

DAY = 86_400


async def send(database, key):
    async with database.transaction() as tx:
        await outbox.put(tx, OutboxMessage(key, "note", "1"))
        (message,) = (await outbox.waiting(tx, key)).messages
        await outbox.mark_sent(tx, [message.id], await tx.now())
        await outbox.record_card(tx, SentCard(key, "C1", "1.1", 1, await tx.now()), None)


async def forget(database, days):
    retention = Retention(database, days, PRUNES)
    async with database.read_only() as tx:
        job = Job("retain", "retain", "retain", await tx.now())
    return await retention.run(job, Lease(database, "a", job))


async def cards(database, *keys):
    async with database.read_only() as tx:
        return [key for key in keys if await outbox.sent_card(tx, key)]


async def test_an_unsent_letter_stays_whatever_its_age(database, clock):
    async with database.transaction() as tx:
        await outbox.put(tx, OutboxMessage("card", "note", "1"))
    clock.advance(1000 * DAY)
    await forget(database, days=4)
    async with database.read_only() as tx:
        assert len((await outbox.waiting(tx, "card")).messages) == 1


async def remember_card(world, request):
    """Record that a card was posted, as the sender does."""
    async with world.database.transaction() as tx:
        card = SentCard(card_key(request.id), "C1", "1.1", 1, await tx.now())
        await outbox.record_card(tx, card, None)


async def is_stored(world, request):
    async with world.database.read_only() as tx:
        return await store.load_request(tx, request.id) is not None


async def test_request_is_kept_until_its_last_grant_has_ended(database, clock):
    world = World(database, clock)
    request = await world.applied("add welcome +1 for 3d")
    await remember_card(world, request)
    for _ in range(2):
        await world.pass_time(DAY)
        await forget(database, days=1)
    assert await cards(database, card_key(request.id)) == [card_key(request.id)]
    await world.pass_time(DAY)
    await forget(database, days=1)
    assert world.reported() == ["applied", "ended"]
    assert [one.over for one in (await world.stored(request)).people] == [Over.ENDED]
    await world.pass_time(2 * DAY)
    await forget(database, days=1)
    assert not await is_stored(world, request)


async def test_a_request_is_kept_until_its_outcome_was_sent(database, clock):
    world = World(database, clock)
    request = await world.ask("add welcome +1")
    await world.decide(Act.DENY, request, reason="no")
    clock.advance(5 * DAY)
    await forget(database, days=4)
    assert await is_stored(world, request)


async def test_an_open_incidents_card_is_kept_as_long_as_the_incident(database, clock):
    async with database.transaction() as tx:
        at = (await tx.now()).timestamp()
        organization = await accounts.lock(tx, OrganizationKey("eu", "1"))
        await incidents.count_one(tx, organization, 44, IncidentDetail({}), at, at)
        incident_id = await tx.connection.scalar(select(incidents_table.c.id))
    await send(database, key := f"{incidents.CARD_PREFIX}{incident_id}")
    clock.advance(5 * DAY)
    await forget(database, days=4)
    assert await cards(database, key) == [key]
    async with database.transaction() as tx:
        (incident,) = await incidents.all_open(tx)
        await incidents.close(tx, incident)
    clock.advance(5 * DAY)
    await forget(database, days=4)
    assert await cards(database, key) == []


@pytest.fixture
def steps(database, monkeypatch):
    """Set the batch size to two rows, and record how many rows each `DELETE` removes."""
    monkeypatch.setattr("bot.store.engine.BATCH", 2)
    monkeypatch.setattr("bot.testusers.store.BATCH", 2)
    removed = defaultdict(list)

    def note(_connection, cursor, statement, *_):
        words = statement.split(maxsplit=3)
        if words[0] == "DELETE":
            removed[words[2]].append(cursor.rowcount)

    event.listen(database.engine.sync_engine, "after_cursor_execute", note)
    return removed


def old_row(table, number, now):
    """Return a row for the given table. The row is old and has no pending work."""
    values = {
        column.name: now
        if isinstance(column.type, UtcDateTime)
        else now.timestamp() - number
        if isinstance(column.type, EpochSeconds)
        else column.type.python_type(number)
        for column in table.c
        if not isinstance(column.type, JSON)
    }
    jsons = {column.name: {} for column in table.c if isinstance(column.type, JSON)}
    return values | jsons | ({"state": State.DENIED} if "state" in values else {})


async def rows_of(database, table):
    async with database.read_only() as tx:
        return (await tx.connection.execute(table.select())).all()


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_all_that_is_old_but_the_audit_goes_in_small_steps(database, clock, steps):
    forgotten = [
        requests,
        incidents_table,
        received_events,
        tables.outbox_messages,
        tables.cards,
    ]
    async with database.transaction() as tx:
        for table in forgotten:
            rows = [old_row(table, number, clock.now()) for number in range(1, 6)]
            await tx.connection.execute(table.insert(), rows)
        await audit.append(tx, AuditEntry("U1", "request.approved", "r1"))
    clock.advance(500 * DAY)
    await Retention(database, 400, PRUNES).run(None, None)
    async with database.read_only() as tx:
        verdict = await audit.verify(tx)
    assert (verdict.is_intact, verdict.entries) == (True, 1)
    left = {table.name: len(await rows_of(database, table)) for table in forgotten}
    assert left == dict.fromkeys(left, 0)
    # psycopg doesn't count the rows of statements whose result nobody awaits.
    counted = {name: max(steps[name]) for name in left if name != "requests"}
    assert counted == dict.fromkeys(counted, 2)
