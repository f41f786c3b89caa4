"""Signed rows and the key of the audit: what somebody else wrote is known, on both databases."""

import json
from datetime import timedelta

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy import text as text_of

from bot.background.outbox import SEND_KIND
from bot.errors import RecordEdited
from bot.model.audit import AuditEntry
from bot.model.signatures import Seal
from bot.model.testusers.approval import Act
from bot.store import audit_keys, grants, jobs, requests, seals
from bot.store.audit import GENESIS, AuditStore
from bot.store.audit_keys import WrongAuditKey
from bot.store.tables import audit_entries, audit_head
from bot.store.tables import grants as grants_table
from bot.store.tables import jobs as jobs_table
from bot.store.tables import requests as requests_table
from bot.workflows.testusers.endings import Endings
from bot.workflows.testusers.rendering import RequestMessages
from tests.support.testusers import OTTO, WELCOME, World

OLD, NEW = b"the old key of the audit", b"the new key of the audit"


@pytest.fixture
def sealed(database):
    database.seal = Seal(OLD)
    return database


@pytest.fixture
async def world(sealed, clock):
    world = World(sealed, clock)
    world.audit = world.setup.audit
    return world


async def change(database, statement):
    async with database.transaction() as tx:
        await tx.connection.execute(statement)


async def edited(database):
    async with database.read_only() as tx:
        return [(row.noun, row.name) for row in await seals.edited(tx)]


async def load(database, request_id):
    async with database.read_only() as tx:
        return await requests.load(tx, request_id)


async def test_rows_hold_from_request_to_grant(world, sealed):
    request = await world.ask("add welcome +1 for 2h")
    assert await edited(sealed) == []
    await world.decide(Act.APPROVE, request)
    assert await edited(sealed) == []
    assert (await load(sealed, request.id)).is_genuine


EDITS = [
    {"requested": {"change": {"additions": ["+666"], "removals": []}}},
    {"state": "applying"},
    {"requester_id": "U0OTHER"},
    {"requested": {"nonsense": True}},
    {"signature": None},
    {"signature": "0" * 64},
]


@pytest.mark.parametrize("values", EDITS, ids=range(len(EDITS)))
async def test_edited_request_is_known_and_cannot_be_written(world, sealed, values):
    request = await world.ask("add welcome +1")
    if "requested" in values and "change" in values["requested"]:
        stored = await stored_change(sealed, request.id)
        values = {"requested": {**stored, **values["requested"]}}
    where = requests_table.c.id == request.id
    await change(sealed, update(requests_table).where(where).values(values))
    assert await edited(sealed) == [("request", request.id)]
    with pytest.raises(RecordEdited):
        await world.decide(Act.APPROVE, request)
    async with sealed.transaction() as tx:
        assert await requests.applying(tx, WELCOME) == []
        with pytest.raises(RecordEdited):
            await write_again(tx, request.id)


async def write_again(tx, request_id):
    await requests.replace(tx, await requests.load(tx, request_id))


async def stored_change(database, request_id):
    async with database.read_only() as tx:
        query = select(requests_table.c.requested).where(requests_table.c.id == request_id)
        return await tx.connection.scalar(query)


async def test_row_moved_to_another_id_does_not_hold(world, sealed):
    request = await world.ask("add welcome +1")
    where = requests_table.c.id == request.id
    await change(sealed, update(requests_table).where(where).values(id="0" * 16))
    assert ("request", "0" * 16) in await edited(sealed)


async def test_grant_whose_end_was_edited_is_not_ended(world, sealed, clock):
    request = await world.ask("add welcome +1 for 2h")
    await world.decide(Act.APPROVE, request)
    await world.work()
    await change(sealed, update(grants_table).values(ends_at=request.created_at))
    clock.advance(60)
    async with sealed.read_only() as tx:
        assert await grants.due(tx, WELCOME) == []
    assert [noun for noun, _ in await edited(sealed)] == ["grant"]


WRONG_FORM = [
    ("requests", "progress", '{"approvals": ["U0ABEL"]}'),
    ("requests", "requested", "null"),
    ("grants", "identity", "+1666"),
]
# PostgreSQL holds these columns to their types.
NO_FORM = [
    ("requests", "progress", "no JSON"),
    ("requests", "created_at", "no time"),
    ("grants", "approved_by", "no JSON"),
    ("grants", "ends_at", "no time"),
    ("jobs", "payload", "no JSON"),
]


@pytest.mark.parametrize(("table", "column", "value"), WRONG_FORM)
async def test_edit_of_another_form_stops_that_row_alone(world, sealed, table, column, value):
    assert await left_after_edit(world, sealed, table, column, value) == all_but(table, world)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("table", "column", "value"), NO_FORM)
async def test_edit_of_no_form_stops_that_row_alone(world, sealed, table, column, value):
    assert await left_after_edit(world, sealed, table, column, value) == all_but(table, world)


def all_but(table, world):
    """What is told as edited; which jobs are run; when the next grant ends; who has one."""
    granted = ["+1"] if table == "grants" else ["+1", "+2"]
    next_end = world.clock.now() + timedelta(hours=5)
    return [table.removesuffix("s")], [SEND_KIND], next_end, granted


async def left_after_edit(world, sealed, table, column, value):
    for text in ("add welcome +1 for 5h", "add welcome +2 for 5h"):
        await world.decide(Act.APPROVE, await world.ask(text))
    await world.work()
    await world.ask("add welcome +3")
    key = {"requests": "id", "grants": "identity", "jobs": "key"}[table]
    which = f"{key} = (SELECT max({key}) FROM {table})"  # noqa: S608 - names of this page
    edit = f"UPDATE {table} SET {column} = '{value}' WHERE {which}"  # noqa: S608
    await change(sealed, text_of(edit.replace(":", "\\:")))
    told = [noun for noun, _ in await edited(sealed)]
    async with sealed.transaction() as tx:
        await RequestMessages(world.setup).plan(tx)
        await Endings(world.setup).plan(tx)
        claimed = await jobs.claim(tx, "me", 100)
        next_end = await grants.next_end(tx, WELCOME)
        granted = await grants.of_flow(tx, WELCOME)
    return told, [job.kind for job in claimed], next_end, sorted(granted)


OVER_ALREADY = [{"state": "denied"}, {"state": "applied"}, {"state": "nonsense"}]


@pytest.mark.parametrize("values", OVER_ALREADY, ids=lambda values: values["state"])
async def test_request_made_to_look_over_is_told_of(world, sealed, values, clock):
    await world.ask("add welcome +1")
    await change(sealed, update(requests_table).values(**values, decided_at=clock.now()))
    async with sealed.read_only() as tx:
        assert [row.noun for row in await seals.edited(tx, all_requests=False)] == ["request"]


async def test_job_of_somebody_else_is_claimed_as_such(sealed):
    async with sealed.transaction() as tx:
        now = await tx.now()
        await jobs.put(tx, jobs.Job("ours", "work", "x", now))
    values = {"kind": "work", "subject": "x", "payload": {}, "due_at": now, "tries": 0}
    await change(sealed, jobs_table.insert().values(key="theirs", generation=1, **values))
    async with sealed.transaction() as tx:
        claimed = await jobs.claim(tx, "me", 10)
    assert {job.key: job.is_genuine for job in claimed} == {"ours": True, "theirs": False}


async def test_without_a_key_everything_holds(database, clock):
    world = World(database, clock)
    request = await world.ask("add welcome +1")
    await change(database, update(requests_table).values(requester_name="X"))
    assert (await load(database, request.id)).is_genuine
    assert await edited(database) == []


async def begin(database, key):
    database.seal = Seal(key)
    async with database.transaction() as tx:
        await audit_keys.begin(tx, AuditStore(key))


async def verdict(database, key, head=None):
    async with database.read_only() as tx:
        return await AuditStore(key).verify(tx, head)


@pytest.mark.parametrize("key_before", [None, OLD], ids=["plain", "keyed"])
async def test_upgrade_signs_what_waits_once(database, clock, key_before):
    world = World(database, clock)
    world.setup.audit._key = key_before
    request = await world.ask("add welcome +1")
    await begin(database, OLD)
    assert (await load(database, request.id)).is_genuine
    assert (await verdict(database, OLD)).is_intact
    await change(database, update(requests_table).values(signature=None))
    await begin(database, OLD)
    assert await edited(database) != []


async def test_start_with_another_key_is_refused(database):
    await begin(database, OLD)
    for key in (NEW, None):
        with pytest.raises(WrongAuditKey):
            await begin(database, key)


async def test_broken_audit_has_nothing_signed(database, clock):
    world = World(database, clock)
    await world.ask("add welcome +1")
    await change(database, update(audit_entries).values(actor="U0OTHER"))
    with pytest.raises(WrongAuditKey):
        await begin(database, OLD)


async def rotate(database, old=OLD, new=NEW):
    database.seal = Seal(new)
    async with database.transaction() as tx:
        await audit_keys.rotate(tx, AuditStore(old), AuditStore(new), Seal(old))


async def test_rotated_key_counts_from_its_entry(world, sealed):
    await begin(sealed, OLD)
    world.setup.audit._key = OLD
    request = await world.ask("add welcome +1")
    await rotate(sealed)
    assert (await load(sealed, request.id)).is_genuine
    assert (await verdict(sealed, NEW)).is_intact
    assert not (await verdict(sealed, OLD)).is_intact
    world.setup.audit._key = NEW
    await world.decide(Act.APPROVE, request)
    await world.work()
    assert world.service.lists[WELCOME] == ["+1"]
    await begin(sealed, NEW)


async def test_entry_from_before_a_rotation_cannot_be_edited(world, sealed):
    await begin(sealed, OLD)
    world.setup.audit._key = OLD
    await world.ask("add welcome +1")
    await rotate(sealed)
    where = audit_entries.c.position == 2
    await change(sealed, update(audit_entries).where(where).values(actor="U0OTHER"))
    found = await verdict(sealed, NEW)
    assert not found.is_intact


async def test_row_that_was_edited_stays_so_after_a_rotation(world, sealed):
    await begin(sealed, OLD)
    world.setup.audit._key = OLD
    request = await world.ask("add welcome +1")
    await change(sealed, update(requests_table).values(requester_id="U0OTHER"))
    await rotate(sealed)
    assert await edited(sealed) == [("request", request.id)]


async def test_emptied_audit_does_not_verify_against_a_head(sealed):
    await begin(sealed, OLD)
    head = (await verdict(sealed, OLD)).head
    await change(sealed, delete(audit_entries))
    await change(sealed, update(audit_head).values(position=0, hash=GENESIS))
    assert not (await verdict(sealed, OLD, head)).is_intact
    assert not (await verdict(sealed, OLD, "0" * 64)).is_intact


async def test_approval_must_be_in_the_chain(sealed):
    audit = AuditStore(OLD)
    entries = [
        ("request.created", OTTO, "r1"),
        ("request.approved", "U0ADA", "r1"),
        ("request.created", OTTO, "r2"),
        ("request.created_without_approval", "U0ADAM", "r3"),
        ("request.created", OTTO, "r4"),
        ("request.approved", "U0ADA", "r4"),
        ("request.applied", "gatehouse", "r4"),
    ]
    async with sealed.transaction() as tx:
        for action, actor, subject in entries:
            await audit.append(tx, AuditEntry(actor, action, subject))
        allowed = {
            one: await audit.allows(tx, one, {"U0ADA"}) for one in ("r1", "r2", "r3", "r4", "r5")
        }
        assert not await audit.allows(tx, "r1", {"U0ADA", "U0EVE"})
    assert allowed == {"r1": True, "r2": False, "r3": True, "r4": False, "r5": False}
    await change(
        sealed, update(audit_entries).where(audit_entries.c.position == 2).values(detail="{}x")
    )
    async with sealed.read_only() as tx:
        assert not await audit.allows(tx, "r1", {"U0ADA"})


async def test_older_row_has_no_part_applied_a_second_time(sealed):
    audit = AuditStore(OLD)
    part = {"additions": ["+1"], "removals": ["+2"]}
    async with sealed.transaction() as tx:
        await audit.append(tx, AuditEntry("U0ADAM", "request.created_without_approval", "r1"))
        await audit.append(tx, AuditEntry("gatehouse", "request.applied_in_part", "r1", part))
        allowed = [await audit.allows(tx, "r1", set(), some) for some in (set(), {"+1"})]
        assert allowed == [False, False]
        assert await audit.allows(tx, "r1", set(), {"+1", "+2", "+3"})


async def test_exported_entries_are_all_of_them(sealed):
    audit = AuditStore(OLD)
    async with sealed.transaction() as tx:
        for number in range(5):
            await audit.append(tx, AuditEntry("U1", "x", f"r{number}", {"n": number}))
    async with sealed.read_only() as tx:
        assert [one.position for one in await audit.after(tx, 2)] == [3, 4, 5]
        assert json.loads((await audit.after(tx, 4))[0].detail) == {"n": 4}
        assert await audit.after(tx, 5) == []
