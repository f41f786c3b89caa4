"""The engine: times, transactions, one error, one process."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, text

from bot.clock import SystemClock
from bot.errors import DatabaseInUse, DatabaseUnavailable
from bot.store.engine import (
    Database,
    ProcessLock,
    async_url,
    from_microseconds,
    to_microseconds,
)
from bot.store.tables import jobs


def test_times_survive_to_the_microsecond():
    at = datetime(2026, 11, 20, 10, 0, 0, 123457, tzinfo=UTC)
    assert from_microseconds(to_microseconds(at)) == at


@pytest.mark.postgres
async def test_postgres_tells_the_time_itself(postgres_url):
    database = Database(postgres_url, SystemClock())
    async with database.reading() as tx:
        told = await tx.now()
    assert abs(told - datetime.now(UTC)) < timedelta(seconds=5)
    await database.close()


async def test_an_unreachable_server_is_one_error(clock):
    database = Database("postgresql://postgres@127.0.0.1:1/none", clock)
    with pytest.raises(DatabaseUnavailable):
        await database.ping()
    await database.close()


async def test_a_broken_statement_is_the_same_error(database):
    with pytest.raises(DatabaseUnavailable):
        async with database.transaction() as tx:
            await tx.connection.execute(text("SELECT * FROM nothing_there"))


def test_a_second_process_is_refused_until_the_first_is_gone(sqlite_url):
    first, second = ProcessLock(sqlite_url), ProcessLock(sqlite_url)
    first.acquire()
    with pytest.raises(DatabaseInUse, match="PostgreSQL"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()


def test_any_number_of_processes_share_a_server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        ProcessLock("postgresql://postgres@127.0.0.1:5432/gatehouse").acquire()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["é 株", "zero \x00", "half of a pair \ud800"])
async def test_json_columns_keep_any_text(database, clock, words):
    row = {"key": "k", "kind": "x", "subject": "s", "generation": 1, "tries": 0}
    async with database.transaction() as tx:
        at = {"payload": {"words": words}, "due_at": clock.now()}
        await tx.connection.execute(jobs.insert().values(**row, **at))
    async with database.reading() as tx:
        assert await tx.connection.scalar(select(jobs.c.payload)) == {"words": words}


async def test_a_statement_alone_is_there_for_others_before_the_block_ends(database):
    async with database.statements() as tx:
        await tx.connection.execute(text("UPDATE audit_head SET position = 7"))
        async with database.reading() as other:
            position = await other.connection.scalar(text("SELECT position FROM audit_head"))
        assert position == 7


async def test_after_statements_alone_a_transaction_is_one_again(database):
    async with database.statements() as tx:
        await tx.connection.execute(text("SELECT 1"))
    async with database.transaction() as tx:
        await tx.connection.execute(text("UPDATE audit_head SET position = 7"))
        async with database.reading() as other:
            position = await other.connection.scalar(text("SELECT position FROM audit_head"))
        assert position == 0


async def test_the_clock_of_a_statement_is_that_of_the_database(database, clock):
    async with database.reading() as tx:
        at = await tx.connection.scalar(select(tx.clock), tx.clock_parameters)
    assert at == clock.now().timestamp()


@pytest.mark.postgres
async def test_postgres_tells_the_time_of_a_statement_itself(postgres_url, clock):
    database = Database(postgres_url, clock)
    async with database.reading() as tx:
        at = await tx.connection.scalar(select(tx.clock), tx.clock_parameters)
        now = await tx.now()
    await database.close()
    assert abs(at - now.timestamp()) < 5


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("postgres://u@h/d", "postgresql+asyncpg://u@h/d"),
        ("postgresql://u@h/d?sslmode=require", "postgresql+asyncpg://u@h/d?ssl=require"),
        ("sqlite:///x.db", "sqlite+aiosqlite:///x.db"),
    ],
)
def test_an_address_is_turned_into_the_driver_s(given, used):
    assert async_url(given).render_as_string() == used


@pytest.mark.parametrize("moment", range(8))
async def test_whoever_is_cancelled_as_their_turn_to_write_comes_is_cancelled(
    sqlite_url, clock, moment
):
    """A cancellation that is lost here leaves a loop running that was told to end."""
    database = Database(sqlite_url, clock)

    async def take_a_turn() -> None:
        async with database._serialised():
            await asyncio.Event().wait()

    turn = asyncio.create_task(take_a_turn())
    for _ in range(moment):
        await asyncio.sleep(0)
    turn.cancel()
    await asyncio.wait({turn}, timeout=1)
    assert turn.cancelled()
    async with database._serialised():
        pass
    await database.close()


@pytest.mark.parametrize("moment", range(6, 26))
async def test_a_writer_that_is_cancelled_leaves_no_lock_behind(
    sqlite_url, clock, monkeypatch, moment
):
    """What it was executing would hold the file until somebody collects it."""
    monkeypatch.setattr("bot.store.engine.BUSY_SECONDS", 0.1)
    database = Database(sqlite_url, clock)
    await write(database)
    for _ in range(5):
        writing = asyncio.create_task(write(database))
        for _ in range(moment):
            await asyncio.sleep(0)
        is_broken_off = writing.cancel()
        await asyncio.wait({writing})
        assert writing.cancelled() == is_broken_off
        await write(database)
    await database.close()


async def write(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.connection.execute(text("SELECT 1"))
