"""Tests that the audit log detects when entries are edited, removed or moved."""

import asyncio

import pytest
from sqlalchemy import delete, literal, literal_column, update

from bot.store import audit
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Database
from bot.store.tables import audit_entries, audit_head


async def fill(database, count=5):
    for number in range(count):
        async with database.transaction() as tx:
            entry = AuditEntry("U1", "request.approved", f"r{number}", {"n": number, "é": "ü"})
            await audit.append(tx, entry)


async def verdict(database, head=None):
    async with database.read_only() as tx:
        return await audit.verify(tx, head)


async def change(database, statement):
    async with database.transaction() as tx:
        await tx.connection.execute(statement)


async def test_an_untouched_chain_holds(database):
    await fill(database)
    found = await verdict(database)
    assert (found.is_intact, found.entries) == (True, 5)


def at(position: int):
    return audit_entries.c.position == position


def moved(old: int, new: int):
    return update(audit_entries).where(at(old)).values(position=new)


@pytest.mark.parametrize(
    ("statements", "broken_at", "reason"),
    [
        ([update(audit_entries).where(at(3)).values(actor="U2")], 3, ""),
        ([delete(audit_entries).where(at(3))], 3, "an entry is missing before this one"),
        (
            [delete(audit_entries).where(at(3)), moved(4, 3), moved(5, 4)],
            3,
            "its previous hash doesn't match the entry before it",
        ),
        ([moved(2, 100), moved(3, 2), moved(100, 3)], 2, ""),
        ([delete(audit_entries).where(audit_entries.c.position > 3)], None, ""),
        ([delete(audit_head)], None, "the row that marks the end of the chain is missing"),
    ],
    ids=["edited", "removed", "renumbered", "swapped", "cut", "without its head"],
)
async def test_chain_that_was_changed_is_found(database, statements, broken_at, reason):
    await fill(database)
    for statement in statements:
        await change(database, statement)
    found = await verdict(database)
    assert not found.is_intact
    assert found.broken_at == broken_at or broken_at is None
    assert reason in found.reason


async def test_a_cut_tail_with_a_forged_head_row_is_found_by_a_noted_head(database):
    await fill(database)
    async with database.read_only() as tx:
        _, noted = await audit.head(tx)
        third = (await audit.latest(tx, 3))[-1]
    await change(database, delete(audit_entries).where(audit_entries.c.position > third.position))
    forged = update(audit_head).values(position=third.position, hash=third.hash)
    await change(database, forged)
    assert (await verdict(database)).is_intact
    assert "given head" in (await verdict(database, noted)).reason


async def test_writers_at_once_make_one_chain(database):
    await asyncio.gather(*(fill(database, 4) for _ in range(5)))
    found = await verdict(database)
    assert (found.is_intact, found.entries) == (True, 20)


async def test_a_rolled_back_transaction_leaves_no_entry(database):
    async def write_and_fail():
        async with database.transaction() as tx:
            await audit.append(tx, AuditEntry("U1", "x", "y"))
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        await write_and_fail()
    assert (await verdict(database)).entries == 0


async def test_entries_that_are_written_meanwhile_break_nothing(database, monkeypatch):
    await fill(database)
    all_rows = audit.all_rows

    async def and_then_fill(tx):
        async for row in all_rows(tx):
            yield row
        await fill(database, 2)

    with monkeypatch.context() as patch:
        patch.setattr(audit, "all_rows", and_then_fill)
        found = await verdict(database)
    assert (found.is_intact, found.entries) == (True, 5)
    assert (await verdict(database)).entries == 7


@pytest.mark.parametrize(
    "edit", [{"hash": "é" * 64}, {"previous_hash": "é" * 64}, {"at": literal(9 * 10**18)}]
)
async def test_an_entry_that_is_edited_into_nonsense_is_found(database, edit):
    await fill(database)
    where = audit_entries.c.position == 3
    await change(database, update(audit_entries).where(where).values(**edit))
    assert (await verdict(database)).broken_at == 3


@pytest.mark.parametrize("column", ["detail", "at"])
@pytest.mark.parametrize("nonsense", ["x'ff00'", "'long ago'", "1.5", "CAST(x'ff41' AS TEXT)"])
async def test_an_entry_with_a_value_of_the_wrong_type_is_found(
    sqlite_url, clock, column, nonsense
):
    database = Database(sqlite_url, clock)
    try:
        await fill(database)
        edit = update(audit_entries).where(audit_entries.c.position == 3)
        await change(database, edit.values({column: literal_column(nonsense)}))
        assert (await verdict(database)).broken_at == 3
    finally:
        await database.close()
