"""The database engine, with transactions, a clock, and a single error type for all failures.

This module also opens SQLite files and lets only one process use each file.
"""

import asyncio
import fcntl
import math
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg
import structlog
from sqlalchemy import (
    ColumnElement,
    Executable,
    Table,
    bindparam,
    delete,
    event,
    func,
    literal_column,
    make_url,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import URL, Engine
from sqlalchemy.exc import DataError, IntegrityError, ProgrammingError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from bot.errors import (
    CommitUnknown,
    DatabaseInUse,
    DatabaseReplaced,
    DatabaseUnavailable,
    Superseded,
)
from bot.ops.clock import Clock
from bot.store.causes import UNKNOWN_CAUSE, cause_of, technical_cause
from bot.store.postgres import (
    CONNECT_SECONDS,
    LAST,
    STATEMENT_SECONDS,
    UNAWAITED,
    lift_limits,
    postgres_engine,
    server_time,
)
from bot.store.types import EpochSeconds, from_microseconds

log = structlog.get_logger(__name__)

DEFAULT_POOL = 10
# How long to try to connect, and the pause between two attempts. Slack waits for 3 s.
RETRY_SECONDS = 2.0
CONNECTION_PAUSE_SECONDS = 0.1
CLOSE_SECONDS = 2.0
CAUSE_EVERY_SECONDS = 60.0
# The exceptions that are raised if the database or the connection fails.
ERRORS = (SQLAlchemyError, OSError, psycopg.Error, sqlite3.Error)
# This statement changes nothing but needs the same permissions and resources as any write. The
# column has an index, so SQLite writes to the disk even though the value stays the same.
TOUCH = text("UPDATE alembic_version SET version_num = version_num")


# SQLAlchemy also compiles these inserts for SQLite, including the `on_conflict_do_…` methods.
insert_into = postgresql.insert
# The number of rows to delete at once. Other writers have to wait for each batch.
BATCH = 2_000
# The value is constant during a PostgreSQL statement, so queries that use it can use indexes.
POSTGRES_CLOCK: ColumnElement[float] = literal_column(
    "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint", EpochSeconds
)
CLOCK_PARAMETER: ColumnElement[float] = bindparam("clock", type_=EpochSeconds)
# Another program (a backup, a shell) might hold SQLite's lock. While one writer waits for the lock,
# all other writers in this process wait for that writer.
BUSY_SECONDS = 3
# Each connection has its own thread. Threads take turns, so more threads would only wait longer.
# No code holds one connection while it waits for another.
CONNECTIONS = 4


class Transaction:
    """A database transaction, in which `now` always returns the same time."""

    def __init__(self, connection: AsyncConnection, clock: Clock | None) -> None:
        self.connection = connection
        self.has_stored_job = False
        """True if the transaction has stored or released jobs, which might be due."""
        self._clock = clock
        self._now: datetime | None = None

    @property
    def is_postgres(self) -> bool:
        """True if the database is PostgreSQL."""
        return self.connection.dialect.name == "postgresql"

    async def now(self) -> datetime:
        """Return the database's time, which is constant within this transaction."""
        if self._now is None:
            if self._clock is None:
                self._now = from_microseconds(await server_time(self.connection))
            else:
                self._now = self._clock.now()
        return self._now

    async def write(self, statement: Executable, values: Mapping[str, Any] | None = None) -> None:
        """Execute a statement whose result isn't needed.

        PostgreSQL gets it with the next statement or the commit, which saves a round trip.
        """
        await self.connection.execute(statement, values, execution_options=UNAWAITED)

    async def end_with_next(self) -> None:
        """Send the next statement, which must be the last, together with the commit."""
        await self.connection.execution_options(**LAST)

    @property
    def clock(self) -> ColumnElement[float]:
        """An SQL expression for the time in seconds since 1970, which avoids a separate query.

        The expression is one of two constants, so SQLAlchemy can cache statements that contain it.
        Pass `clock_parameters` when you execute such a statement.
        """
        return POSTGRES_CLOCK if self._clock is None else CLOCK_PARAMETER

    @property
    def clock_parameters(self) -> dict[str, float]:
        """The parameters to pass when executing a statement that contains `clock`."""
        return {} if self._clock is None else {"clock": self._clock.now().timestamp()}


Claim = Callable[[Transaction], Awaitable[Callable[[], None]]]
UntilEnds = Callable[[str, float], Awaitable[None]]


async def _is_not_run_here(_key: str, _seconds: float) -> None:
    pass


class Database:
    """The entry point to the store. Its methods raise DatabaseUnavailable if the database fails.

    With SQLite, the time comes from `clock`. With PostgreSQL, it comes from the server.
    """

    def __init__(self, url: str, clock: Clock, *, pool_size: int = DEFAULT_POOL) -> None:
        self.pool_size = pool_size
        self.is_sqlite = is_sqlite(url)
        self._clock = clock if self.is_sqlite else None
        if self.is_sqlite:
            self.engine = sqlite_engine(sqlite_url(url))
        else:
            self.engine = postgres_engine(url, pool_size)
        self.file = sqlite_file(url)
        """The path of the SQLite file, or None if the database is on a server."""
        self.is_superseded = False
        """True if a newer version has migrated the database. This process then stops writing."""
        self._writer = asyncio.Lock()
        self._file_id: tuple[int, int] | None = None
        self.claim_due_jobs: Claim | None = None
        """Claims due jobs at the end of a transaction that stores jobs.

        Its result is called after the commit. Other job loops find a due job within a second.
        """
        self.until_job_ends: UntilEnds = _is_not_run_here
        """Waits for a job, as `JobLoop.until_ends` does."""
        self._cause_told_at = -math.inf

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Yield a write transaction. Commit if the block succeeds, and roll back if it fails.

        Raise CommitUnknown if the connection dropped during the commit.
        """
        is_committing = False
        start = None
        try:
            async with self._serialised(), self._connected() as connection, connection.begin():
                tx = Transaction(connection, self._clock)
                yield tx
                # PostgreSQL gets the claim together with the COMMIT.
                is_committing = True
                if self.claim_due_jobs is not None and tx.has_stored_job:
                    start = await self.claim_due_jobs(tx)
                self._require_same_file()
        except DatabaseUnavailable as error:
            # SQLite runs in this process, so a failed commit is always undone.
            if is_committing and not self.is_sqlite:
                raise CommitUnknown from error
            raise
        if start is not None:
            start()

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Transaction]:
        """Yield a connection in autocommit mode, so that each statement is its own transaction."""
        async with self._serialised(), self._connected() as connection:
            alone = await connection.execution_options(gatehouse_alone=True)
            yield Transaction(alone, self._clock)

    @asynccontextmanager
    async def read_only(self, *, sees_snapshot: bool = True) -> AsyncIterator[Transaction]:
        """Yield a read-only transaction that sees a snapshot of the database.

        If `sees_snapshot` is False, each statement sees the latest state, which is faster. A single
        statement needs no snapshot.
        """
        async with self._connected() as connection:
            reading = await connection.execution_options(
                gatehouse_reads=True, gatehouse_alone=not sees_snapshot
            )
            yield Transaction(reading, self._clock)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection]:
        # A new connection would create a missing file.
        self._require_same_file()
        try:
            connection = await self._check_out()
            self._file_id = self._file_id or file_id(self.file)
            try:
                yield connection
            finally:
                # Shield the close, as SQLAlchemy does. Without this, a cancellation here would
                # leave the connection checked out.
                await asyncio.shield(asyncio.create_task(connection.close()))
        except (IntegrityError, DataError):
            raise
        except ERRORS as error:
            cause = cause_of(error)
            now = time.monotonic()
            if isinstance(error, ProgrammingError) and cause.code == UNKNOWN_CAUSE.code:
                # The statement is wrong, not the database.
                raise
            if now - self._cause_told_at >= CAUSE_EVERY_SECONDS:
                # Only the log shows the cause. Users are told only that nothing was done.
                self._cause_told_at = now
                log.warning("database.failed", cause=cause.code, error=technical_cause(error))
            raise DatabaseUnavailable from error

    async def _check_out(self) -> AsyncConnection:
        """Check out a connection. If that fails, try again until a timeout.

        The server might have no free connection at this moment.
        """
        deadline = time.monotonic() + RETRY_SECONDS
        while True:
            try:
                return await self.engine.connect()
            except ERRORS:
                if self.is_sqlite or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(CONNECTION_PAUSE_SECONDS)

    @asynccontextmanager
    async def _serialised(self) -> AsyncIterator[None]:
        """Queue SQLite writers here instead of in the driver's busy loop."""
        if self.is_superseded:
            raise Superseded
        if not self.is_sqlite:
            yield
            return
        try:
            async with asyncio.timeout(STATEMENT_SECONDS):
                await self._writer.acquire()
        except TimeoutError as error:
            raise DatabaseUnavailable from error
        try:
            yield
        finally:
            self._writer.release()

    def _require_same_file(self) -> None:
        """Raise DatabaseReplaced if the SQLite file at the path isn't the one that was opened."""
        if self._file_id is not None and file_id(self.file) != self._file_id:
            raise DatabaseReplaced

    async def now(self) -> datetime:
        """Return the database's time, from a new transaction."""
        async with self.read_only(sees_snapshot=False) as tx:
            return await tx.now()

    async def ping_writing(self) -> None:
        """Check that the database accepts writes, and that no lock blocks them."""
        async with self.transaction() as tx:
            await tx.connection.execute(TOUCH)
            if tx.is_postgres:
                # Every important write locks this row; see `bot.store.audit`.
                await tx.connection.execute(text("SELECT 1 FROM audit_head FOR NO KEY UPDATE"))

    @asynccontextmanager
    async def migrating(self) -> AsyncIterator[Transaction]:
        """Yield a transaction for migrations. On PostgreSQL, its statements have no timeout."""
        try:
            async with self.transaction() as tx:
                if not self.is_sqlite:
                    await lift_limits(tx.connection)
                yield tx
        except ProgrammingError as error:
            # The migrations are right, so the server's settings are wrong.
            raise DatabaseUnavailable from error

    async def close(self) -> None:
        """Close all connections, waiting at most `CLOSE_SECONDS` for the server."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.engine.dispose()


async def serialise(tx: Transaction, name: str) -> None:
    """Wait until no other transaction holds this name, and hold it until this one ends.

    SQLite has one writer at a time, so this does nothing there.
    """
    if tx.is_postgres:
        number = func.hashtextextended(name, 0)
        await tx.write(select(func.pg_advisory_xact_lock(number)))


async def upsert(tx: Transaction, table: Table, values: dict[str, Any]) -> None:
    """Insert a row with the given values, or update the row that has the same primary key."""
    insert = insert_into(table).values(values)
    key = list(table.primary_key)
    await tx.write(insert.on_conflict_do_update(index_elements=key, set_=values))


async def remove_some(tx: Transaction, table: Table, where: ColumnElement[bool]) -> int:
    """Delete up to `BATCH` matching rows, and return the number deleted.

    A single statement for all rows might exceed the statement timeout.
    """
    key = list(table.primary_key)
    batch = select(*key).where(where).limit(BATCH)
    removed = await tx.connection.execute(delete(table).where(tuple_(*key).in_(batch)))
    return removed.rowcount


def is_sqlite(url: str) -> bool:
    """Return True if the URL is for a SQLite file."""
    return url.startswith("sqlite:")


def sqlite_url(url: str) -> URL:
    """Convert a SQLite URL to the form that selects SQLAlchemy's asynchronous driver."""
    return make_url(url).set(drivername="sqlite+aiosqlite")


def sqlite_file(url: str) -> Path | None:
    """Return the path of the SQLite file in a URL, or None if the URL is for a server."""
    return Path(str(make_url(url).database)) if is_sqlite(url) else None


def file_id(file: Path | None) -> tuple[int, int] | None:
    """Return a file's device and inode, or None if there is no file."""
    if file is None:
        return None
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def sqlite_engine(url: URL) -> AsyncEngine:
    """Return an engine for a SQLite file, which allows one writer at a time."""
    engine = create_async_engine(
        url,
        hide_parameters=True,
        # Don't allow overflow: opening a short-lived connection takes longer than waiting.
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=CONNECT_SECONDS,
        pool_use_lifo=True,
        connect_args={"timeout": BUSY_SECONDS, "async_creator_fn": _open_sqlite},
    )
    prepare_sqlite(engine.sync_engine)
    return engine


async def _open_sqlite(*args: Any, **parameters: Any) -> aiosqlite.Connection:  # noqa: ANN401
    """Open a connection. If that fails, wait until the connection's thread has ended."""
    connection = aiosqlite.connect(*args, **parameters)
    thread = connection._thread  # noqa: SLF001 - SQLAlchemy uses it too
    thread.daemon = True
    try:
        return await connection
    except BaseException:
        # The driver doesn't wait for its thread, which might then call a closed event loop.
        await asyncio.to_thread(thread.join)
        raise


def prepare_sqlite(engine: Engine) -> None:
    """Set up write-ahead logging, full durability and explicit transactions.

    By default, the driver begins a transaction only before the first write, so two readers that
    both want to write can deadlock. See SQLAlchemy's notes on pysqlite and transactions.
    """

    def on_connect(connection: Any, _record: Any) -> None:  # noqa: ANN401
        connection.isolation_level = None
        cursor = connection.cursor()
        try:
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                cursor.execute(f"PRAGMA {pragma}")
        except Exception:
            # SQLAlchemy doesn't close failed connections, and their threads would keep the process
            # alive.
            connection.close()
            raise
        cursor.close()

    def on_begin(connection: Any) -> None:  # noqa: ANN401
        options = connection.get_execution_options()
        if options.get("gatehouse_alone"):
            return
        reads = options.get("gatehouse_reads")
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    def on_invalidate(connection: Any, _record: Any, _error: Any) -> None:  # noqa: ANN401
        # A canceled statement keeps the closed connection, and therefore its transaction's lock,
        # until both are garbage-collected.
        with suppress(SQLAlchemyError, sqlite3.Error):
            connection.rollback()

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "invalidate", on_invalidate)
    event.listen(engine, "begin", on_begin)


@contextmanager
def process_lock(url: str) -> Iterator[None]:
    """Lock a SQLite file for this process, or raise DatabaseInUse if it's already locked.

    If the URL is for a server, do nothing. The OS releases the lock when the process ends. The lock
    file is next to the actual database file, even if the path is a symbolic link.
    """
    database = sqlite_file(url)
    if database is None:
        yield
        return
    path = _lock_path(database)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Earlier versions left the database readable by everyone. The WAL file inherits its mode.
        for present in (database, Path(f"{database}-wal"), Path(f"{database}-shm")):
            with suppress(OSError):
                present.chmod(0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DatabaseInUse(str(path)) from error
        yield
    finally:
        os.close(file)


def is_locked(database: Path) -> bool:
    """Return True if a process holds the lock of a SQLite file."""
    try:
        file = os.open(_lock_path(database), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _lock_path(database: Path) -> Path:
    actual = database.resolve()
    return actual.with_name(f"{actual.name}.lock")
