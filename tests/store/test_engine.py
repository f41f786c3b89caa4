"""Tests how the database engine handles times, transactions, errors and locks."""

import asyncio
import errno
import gc
import shutil
import sqlite3
import threading
import time
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import aiosqlite
import psycopg
import pytest
from sqlalchemy import event, func, select, text
from sqlalchemy.exc import IntegrityError, ProgrammingError
from structlog.testing import capture_logs

from bot.errors import CommitUnknown, DatabaseInUse, DatabaseReplaced, DatabaseUnavailable
from bot.ops.clock import SystemClock
from bot.store import audit, engine, postgres, sqlite
from bot.store.audit_entry import AuditEntry
from bot.store.causes import cause_of
from bot.store.engine import Database
from bot.store.jobs import claim
from bot.store.sqlite import CONNECTIONS, file_id, process_lock
from bot.store.tables import from_microseconds, jobs, to_microseconds
from tests.support.postgres import connect, server_url
from tests.support.proxy import running_proxy

# The server's own timeouts, after which other processes can write again within 30 s.
ENDED_BY = (
    "idle_in_transaction_session_timeout",
    "lock_timeout",
    "statement_timeout",
    "tcp_keepalives_idle",
    "tcp_user_timeout",
)
MOST_SECONDS = 15


def test_times_survive_to_the_microsecond():
    at = datetime(2026, 11, 20, 10, 0, 0, 123457, tzinfo=UTC)
    assert from_microseconds(to_microseconds(at)) == at


async def test_many_readers_share_few_connections_to_sqlite(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'shared.db'}", SystemClock())
    opened = []
    event.listen(database.engine.sync_engine, "connect", lambda *_: opened.append(1))
    await asyncio.gather(*(database.now() for _ in range(50)))
    assert len(opened) <= CONNECTIONS
    await database.close()


async def test_a_statement_on_sqlite_is_one_trip_to_the_thread(sqlite_url, clock, monkeypatch):
    trips = []
    execute = aiosqlite.Connection._execute

    def noted(connection, function, *arguments):
        trips.append(arguments[1] if arguments else function.__name__)
        return execute(connection, function, *arguments)

    database = Database(sqlite_url, clock)
    await write(database)
    monkeypatch.setattr(aiosqlite.Connection, "_execute", noted)
    async with database.read_only(sees_snapshot=False) as tx:
        result = await tx.connection.execute(text("SELECT 1, 2"))
        assert result.all() == [(1, 2)]
    assert trips == ["SELECT 1, 2"]
    trips.clear()
    with suppress(ZeroDivisionError):
        async with database.transaction() as tx:
            await tx.connection.execute(text("SELECT 3"))
            raise ZeroDivisionError
    assert trips == ["BEGIN IMMEDIATE", "SELECT 3", "rollback"]
    trips.clear()
    await write(database)
    assert trips == ["BEGIN IMMEDIATE", "SELECT 1", "commit"]
    await database.close()


async def test_an_unreachable_server_raises_database_unavailable(clock, monkeypatch):
    monkeypatch.setattr(engine, "RETRY_SECONDS", 0.1)
    database = Database("postgresql://postgres@127.0.0.1:1/none", clock)
    with pytest.raises(DatabaseUnavailable):
        await database.now()
    await database.close()


async def test_a_broken_statement_raises_database_unavailable(database):
    with pytest.raises(DatabaseUnavailable):
        async with database.transaction() as tx:
            await tx.connection.execute(text("SELECT * FROM nothing_there"))


async def test_cause_of_a_failure_is_logged_once_a_minute(clock, capsys, caplog, monkeypatch):
    monkeypatch.setattr(engine, "RETRY_SECONDS", 0.0)
    database = Database("postgresql://postgres@127.0.0.1:1/none", clock)
    for _ in range(3):
        with pytest.raises(DatabaseUnavailable):
            await database.now()
    await database.close()
    # Another test in this process may have redirected the log to the standard library.
    assert (capsys.readouterr().out + caplog.text).count("database.failed") == 1


async def test_writer_whose_turn_does_not_come_is_logged(sqlite_url, clock, monkeypatch):
    monkeypatch.setattr(engine, "STATEMENT_SECONDS", 0.01)
    database = Database(sqlite_url, clock)
    async with database.transaction():
        with capture_logs() as lines, pytest.raises(DatabaseUnavailable):
            async with database.transaction():
                pass
    await database.close()
    assert [(line["event"], line["cause"]) for line in lines] == [
        ("database.failed", "database_timeout")
    ]


async def test_row_that_is_there_twice_is_a_bug_and_no_outage(database):
    row = {"kind": "x", "subject": "x", "payload": {}, "generation": 1, "tries": 0}
    at = datetime(2026, 1, 1, tzinfo=UTC)
    twice = [{"key": "x", "due_at": at, **row}] * 2
    with pytest.raises(IntegrityError):
        async with database.transaction() as tx:
            await tx.connection.execute(jobs.insert(), twice)


@pytest.mark.postgres
async def test_statement_that_can_never_work_is_a_bug_and_no_outage(postgres_url, clock):
    database = Database(postgres_url, clock)
    with pytest.raises(ProgrammingError):
        async with database.transaction() as tx:
            await tx.connection.execute(text("SELEC nothing"))
    await database.close()


@pytest.mark.postgres
async def test_server_ends_what_a_stopped_process_left_open(postgres_url, clock):
    database = Database(postgres_url, clock)
    async with database.transaction() as tx:
        for name in ENDED_BY:
            setting = text("SELECT setting::int, unit FROM pg_settings WHERE name = :name")
            row = (await tx.connection.execute(setting, {"name": name})).one()
            seconds = row.setting / 1000 if row.unit == "ms" else row.setting
            assert 0 < seconds <= MOST_SECONDS, name
    async with database.migrating() as tx:
        assert await tx.connection.scalar(text("SHOW statement_timeout")) == "0"
    await database.close()


@pytest.mark.postgres
async def test_a_transaction_that_stood_still_is_reported(postgres_url, clock):
    database = Database(postgres_url, clock)

    async def stand_still() -> None:
        async with database.transaction() as tx:
            limit = text("SET LOCAL idle_in_transaction_session_timeout = '100ms'")
            await tx.connection.execute(limit)
            time.sleep(0.3)  # noqa: ASYNC251 - the whole process stands still
            await tx.connection.execute(text("SELECT 1"))

    with pytest.raises(DatabaseUnavailable) as caught:
        await stand_still()
    assert cause_of(caught.value).code == "database_transaction_idle"
    await database.close()


@pytest.mark.postgres
async def test_migration_takes_longer_than_any_other_statement_may(
    postgres_url, clock, monkeypatch
):
    """The database driver has a timeout that the server's settings don't affect."""
    monkeypatch.setattr("bot.store.postgres.STATEMENT_SECONDS", 0.05)
    long = text("SELECT pg_sleep(0.2)")
    database = Database(postgres_url, clock)
    with pytest.raises(DatabaseUnavailable):
        async with database.transaction() as tx:
            await tx.connection.execute(long)
    async with database.migrating() as tx:
        await tx.connection.execute(long)
    await database.close()


@pytest.mark.postgres
async def test_writing_is_impossible_while_somebody_holds_the_audit(postgres_url, clock):
    holder, other = Database(postgres_url, clock), Database(postgres_url, clock)
    async with holder.transaction() as tx:
        await tx.connection.execute(text("SELECT 1 FROM audit_head FOR UPDATE"))
        await other.now()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await other.ping_writing()
    await other.ping_writing()
    await holder.close()
    await other.close()


def test_link_to_the_file_leads_to_the_same_lock(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "gatehouse.db")
    with (
        process_lock(f"sqlite:///{tmp_path}/gatehouse.db"),
        pytest.raises(DatabaseInUse),
        process_lock(f"sqlite:///{tmp_path}/link.db"),
    ):
        pass


def test_any_number_of_processes_share_a_server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = "postgresql://postgres@127.0.0.1:5432/gatehouse"
    with process_lock(url), process_lock(url):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["é 株", "zero \x00", "half of a pair \ud800"])
async def test_json_columns_keep_any_text(database, clock, words):
    row = {"key": "k", "kind": "x", "subject": "s", "generation": 1, "tries": 0}
    async with database.transaction() as tx:
        at = {"payload": {"words": words}, "due_at": clock.now()}
        await tx.connection.execute(jobs.insert().values(**row, **at))
    async with database.read_only() as tx:
        assert await tx.connection.scalar(select(jobs.c.payload)) == {"words": words}


async def test_a_statement_alone_is_there_for_others_before_the_block_ends(database):
    async with database.autocommit() as tx:
        await tx.connection.execute(text("UPDATE audit_head SET position = 7"))
        async with database.read_only() as other:
            position = await other.connection.scalar(text("SELECT position FROM audit_head"))
        assert position == 7


async def test_after_statements_alone_a_transaction_is_one_again(database):
    async with database.autocommit() as tx:
        await tx.connection.execute(text("SELECT 1"))
    async with database.transaction() as tx:
        await tx.connection.execute(text("UPDATE audit_head SET position = 7"))
        async with database.read_only() as other:
            position = await other.connection.scalar(text("SELECT position FROM audit_head"))
        assert position == 0


async def test_the_clock_of_a_statement_is_that_of_the_database(database, clock):
    async with database.read_only() as tx:
        at = await tx.connection.scalar(select(tx.clock), tx.clock_parameters)
    assert at == clock.now().timestamp()


@pytest.mark.postgres
async def test_postgres_tells_the_time_itself(postgres_url, clock):
    database = Database(postgres_url, clock)
    async with database.read_only() as tx:
        at = await tx.connection.scalar(select(tx.clock), tx.clock_parameters)
        told = await tx.now()
    await database.close()
    assert abs(at - told.timestamp()) < 5
    assert abs(told - datetime.now(UTC)) < timedelta(seconds=5)


@pytest.mark.postgres
async def test_each_transaction_has_its_own_time(postgres_url, clock):
    database = Database(postgres_url, clock, pool_size=1)
    times = []
    async with database.transaction() as tx:
        await tx.connection.execute(text("SELECT 1"))
        times.append(await tx.now())
    for opened in (database.transaction, database.read_only, database.autocommit):
        async with opened() as tx:
            times.append(await tx.now())
            assert await tx.now() == times[-1]
        times.append(await database.now())
    assert times == sorted(set(times))
    await database.close()


@pytest.mark.parametrize("moment", range(8))
async def test_writer_cancelled_as_its_turn_comes_is_cancelled(sqlite_url, clock, moment):
    """If the cancellation were ignored, a loop that should end would keep running."""
    database = Database(sqlite_url, clock)

    async def take_a_turn() -> None:
        async with database._serialised():
            await asyncio.Event().wait()

    turn = asyncio.create_task(take_a_turn())
    for _ in range(moment):
        await asyncio.sleep(0)
    turn.cancel()
    await asyncio.wait({turn}, timeout=30)
    assert turn.cancelled()
    async with database._serialised():
        pass
    await database.close()


@pytest.mark.parametrize("moment", range(6, 26))
async def test_a_writer_that_is_cancelled_leaves_no_lock_behind(
    sqlite_url, clock, monkeypatch, moment, request
):
    """An unfinished statement would lock the file until the statement was garbage-collected."""
    monkeypatch.setattr("bot.store.sqlite.BUSY_SECONDS", 0.1)
    gc.disable()
    request.addfinalizer(gc.enable)
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


@pytest.mark.parametrize("moment", range(6, 26))
async def test_a_writer_that_is_cancelled_twice_leaves_nothing_behind(sqlite_url, clock, moment):
    """A task that is left would never end, and the process would wait for it at its stop."""
    before = threads_of_the_driver()
    database = Database(sqlite_url, clock)
    await write(database)
    for pause in range(8):
        writing = asyncio.create_task(write(database))
        for _ in range(moment):
            await asyncio.sleep(0)
        writing.cancel()
        for _ in range(pause):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait({writing})
    await database.close()
    if others := asyncio.all_tasks() - {asyncio.current_task()}:
        _, left = await asyncio.wait(others, timeout=5)
        assert not left
    # The thread of a connection that was still being opened ends a moment later.
    for thread in threads_of_the_driver() - before:
        await asyncio.to_thread(thread.join, timeout=30)
        assert not thread.is_alive()


async def write(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.connection.execute(text("SELECT 1"))


def threads_of_the_driver() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if "_connection_worker_thread" in t.name}


async def test_a_file_that_cannot_be_opened_leaves_no_thread_behind(tmp_path, clock):
    before = threads_of_the_driver()
    for _ in range(20):
        database = Database(f"sqlite:///{tmp_path}/no/such/folder/x.db", clock)
        with pytest.raises(DatabaseUnavailable):
            await database.now()
        assert threads_of_the_driver() <= before
        await database.close()


async def test_writers_behind_a_locked_file_all_give_up_in_time(sqlite_url, clock, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.2)
    monkeypatch.setattr(engine, "STATEMENT_SECONDS", 0.3)
    database = Database(sqlite_url, clock)
    await write(database)
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as other:
        other.execute("BEGIN EXCLUSIVE")
        async with asyncio.timeout(5):
            writers = (write(database) for _ in range(30))
            outcomes = await asyncio.gather(*writers, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {DatabaseUnavailable}
    await write(database)
    await database.close()


@pytest.mark.postgres
async def test_a_commit_that_breaks_off_is_not_said_to_have_done_nothing(
    postgres_url, clock, monkeypatch
):
    monkeypatch.setattr(engine, "RETRY_SECONDS", 0.1)
    parts = urlsplit(postgres_url)
    async with running_proxy(parts.hostname, parts.port) as proxy:
        through = f"postgresql://{parts.username}@127.0.0.1:{proxy.port}{parts.path}"
        database = Database(through, clock)
        with pytest.raises(CommitUnknown, match="can't tell whether"):  # noqa: PT012 - the commit raises
            async with database.transaction() as tx:
                await tx.connection.execute(text("SELECT 1"))
                await proxy.cut()
        with pytest.raises(DatabaseUnavailable, match="Nothing was changed"):
            await write(database)
        await database.close()


@pytest.mark.postgres
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_client_encoding_from_the_environment_is_overruled(
    postgres_url, monkeypatch, encoding
):
    monkeypatch.setenv("PGCLIENTENCODING", encoding)
    database = Database(postgres_url, SystemClock())
    async with database.transaction() as tx:
        await audit.append(tx, AuditEntry("U1", "plan.set", "Zażółć gęślą jaźń", {}))
        (entry,) = await audit.latest(tx, 1)
    assert entry.subject == "Zażółć gęślą jaźń"
    await database.close()


@pytest.mark.postgres
async def test_a_full_server_is_waited_for(empty_postgres_url, clock, monkeypatch):
    """Only the text of the error message shows that the server has no free connections."""
    refused, connect_once = asyncio.Event(), postgres.Connection.connect

    async def connect_noting(**parameters):
        try:
            return await connect_once(**parameters)
        except psycopg.OperationalError:
            refused.set()
            raise

    monkeypatch.setattr(postgres.Connection, "connect", connect_noting)
    name = empty_postgres_url.rsplit("/", 1)[1]
    admin = await connect(server_url())
    await admin.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 1')
    role = f"role_{name[-20:]}"
    await admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'word'")
    url = f"postgresql://{role}:word@{empty_postgres_url.partition('@')[2]}"
    holder, database = await connect(url), Database(url, clock)
    try:
        waiting = asyncio.create_task(database.now())
        await refused.wait()
        assert not waiting.done()
        await holder.close()
        assert isinstance(await waiting, datetime)
    finally:
        await holder.close()
        await database.close()
        await admin.execute(f"DROP ROLE {role}")
        await admin.close()


def take_away(path: Path, other: Path | None) -> None:
    """Remove the file at `path`, or replace it with `other` if that is given."""
    path.rename(path.with_name("removed.db"))
    if other is not None:
        other.rename(path)


@pytest.mark.parametrize("is_replaced", [True, False])
async def test_commit_to_a_removed_or_replaced_file_is_refused(sqlite_url, clock, is_replaced):
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    saved = path.with_name("saved.db")
    shutil.copyfile(path, saved)
    database = Database(sqlite_url, clock)

    async def write() -> None:
        async with database.transaction() as tx:
            await audit.append(tx, AuditEntry("U1", "plan.set", "lost", {}))
            take_away(path, saved if is_replaced else None)

    with pytest.raises(DatabaseReplaced):
        await write()
    for use in (database.transaction, database.autocommit, database.read_only):
        with pytest.raises(DatabaseReplaced):
            async with use():
                pass
    assert (file_id(path) is not None) == is_replaced
    await database.close()


def test_folder_that_cannot_be_locked_is_not_called_in_use(sqlite_url, monkeypatch):
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("bot.store.sqlite.fcntl.flock", flock)
    with pytest.raises(OSError, match="No locks available"), process_lock(sqlite_url):
        pass


async def test_a_write_that_nobody_waits_for_is_seen_by_the_next_read(database):
    async with database.transaction() as tx:
        await tx.write(jobs.insert(), job_row("a"))
        assert await tx.connection.scalar(select(func.count()).select_from(jobs)) == 1
    async with database.transaction() as tx:
        await tx.write(jobs.insert(), job_row("b"))
    async with database.read_only(sees_snapshot=False) as tx:
        assert await tx.connection.scalar(select(func.count()).select_from(jobs)) == 2


async def test_a_write_that_fails_later_undoes_the_transaction(database):
    async with database.transaction() as tx:
        await tx.write(jobs.insert(), job_row("a"))

    async def write_twice() -> None:
        async with database.transaction() as tx:
            await tx.write(jobs.insert(), job_row("b"))
            await tx.write(jobs.insert(), job_row("a"))

    with pytest.raises(IntegrityError):
        await write_twice()
    async with database.read_only() as tx:
        assert await tx.connection.scalar(select(func.count()).select_from(jobs)) == 1


async def test_a_write_that_fails_with_the_last_statement_undoes_the_transaction(database):
    async def write_twice() -> None:
        async with database.transaction() as tx:
            await tx.write(jobs.insert(), job_row("a"))
            await tx.write(jobs.insert(), job_row("a"))
            await tx.end_with_next()
            await claim(tx, "me", 10)

    with pytest.raises(IntegrityError):
        await write_twice()
    async with database.read_only() as tx:
        assert await tx.connection.scalar(select(func.count()).select_from(jobs)) == 0


@pytest.mark.postgres
async def test_writes_travel_with_what_follows_them(postgres_url, clock, monkeypatch):
    database, sent = Database(postgres_url, clock), []
    await database.now()
    execute = psycopg.AsyncCursor.execute

    async def noted(cursor, query, *args, **options):
        sent.append(query)
        return await execute(cursor, query, *args, **options)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", noted)
    async with database.transaction() as tx:
        await tx.write(jobs.insert(), job_row("a"))
        assert await tx.connection.scalar(select(func.count()).select_from(jobs)) == 1
        assert abs(await tx.now() - datetime.now(UTC)) < timedelta(seconds=5)
        await tx.write(jobs.insert(), job_row("b"))
        await tx.write(jobs.insert(), job_row("c"))
        await tx.end_with_next()
        claimed = await claim(tx, "me", 10)
    assert {job.key for job in claimed} == {"a", "b", "c"}
    begun, committed = sent
    assert begun.startswith(b"BEGIN; SELECT")
    assert committed.endswith(b"; COMMIT")
    await database.close()


def job_row(key):
    return {
        "key": key,
        "kind": "work",
        "subject": "’);%s",
        "payload": {"n": None},
        "due_at": datetime(2026, 1, 1, tzinfo=UTC),
        "generation": 1,
        "tries": 0,
    }


@pytest.mark.postgres
@pytest.mark.parametrize("is_awaited", [True, False])
async def test_a_statement_after_the_last_one_is_refused(postgres_url, clock, is_awaited):
    """It would be a transaction of its own, which nothing could undo."""
    database = Database(postgres_url, clock, pool_size=1)

    async def write_on() -> None:
        async with database.transaction() as tx:
            await tx.end_with_next()
            await tx.connection.execute(jobs.insert(), job_row("a"))
            second = tx.connection.execute if is_awaited else tx.write
            await second(jobs.insert(), job_row("b"))

    with pytest.raises(RuntimeError, match="COMMIT was already sent"):
        await write_on()
    # The connection that is used again doesn't remember.
    async with database.transaction() as tx:
        await tx.connection.execute(jobs.insert(), job_row("c"))
        await tx.connection.execute(jobs.insert(), job_row("d"))
    async with database.read_only() as tx:
        assert [*await tx.connection.scalars(select(jobs.c.key))] == ["a", "c", "d"]
    await database.close()


async def test_database_is_proven_by_a_commit_and_not_after_a_failure(sqlite_url, clock):
    database = Database(sqlite_url, clock)
    assert not database.is_proven
    await database.ping_writing()
    assert database.is_proven
    with pytest.raises(DatabaseUnavailable):
        async with database.read_only() as tx:
            await tx.connection.execute(text("SELECT * FROM nothing_there"))
    # A transaction that changes nothing doesn't show that the disk has room.
    await write(database)
    assert not database.is_proven
    await database.ping_writing()
    take_away(Path(sqlite_url.removeprefix("sqlite:///")), None)
    with pytest.raises(DatabaseReplaced):
        await write(database)
    assert not database.is_proven
    await database.close()
