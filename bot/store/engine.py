"""The database engine, with transactions, a clock, and a single error type for all failures."""

import asyncio
import math
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any

import psycopg
import structlog
from sqlalchemy import (
    ColumnElement,
    Executable,
    Table,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DataError, IntegrityError, ProgrammingError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.errors import CommitUnknown, DatabaseReplaced, DatabaseUnavailable, Superseded
from bot.ops.clock import Clock
from bot.store.causes import TIMEOUT, UNKNOWN_CAUSE, DatabaseCause, cause_of, technical_cause
from bot.store.postgres import (
    NOW,
    STATEMENT_SECONDS,
    UNAWAITED,
    driver_of,
    lift_limits,
    postgres_engine,
    server_time,
)
from bot.store.sqlite import file_id, sqlite_engine, sqlite_file
from bot.store.tables import EpochSeconds, from_microseconds

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
# Every important write locks this row; see `bot.store.audit`.
LOCK_HEAD = text("SELECT 1 FROM audit_head FOR NO KEY UPDATE")
REVISION = text("SELECT version_num FROM alembic_version")
# The job loop commits a transaction every second, which shows that the database accepts writes.
PROOF_SECONDS = 3.0

# SQLAlchemy also compiles these inserts for SQLite, including the `on_conflict_do_…` methods.
insert_into = postgresql.insert
# The number of rows to delete at once. Other writers have to wait for each batch.
BATCH = 2_000
# The value is constant during a PostgreSQL statement, so queries that use it can use indexes.
POSTGRES_CLOCK: ColumnElement[float] = literal_column(
    "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint", EpochSeconds
)
CLOCK_PARAMETER: ColumnElement[float] = bindparam("clock", type_=EpochSeconds)
# The time is that after the wait, unless it was asked for before.
_HOLD = text(
    f"{NOW} FROM unnest(CAST(:names AS text[])) AS name,"
    " pg_advisory_xact_lock(hashtextextended(name, 0))"
)


class Transaction:
    """A database transaction, in which `now` always returns the same time."""

    def __init__(self, connection: AsyncConnection, clock: Clock | None) -> None:
        self.connection = connection
        self.execute = connection.execute
        self.scalar = connection.scalar
        self.scalars = connection.scalars
        self.is_postgres = connection.dialect.name == "postgresql"
        self.clock = POSTGRES_CLOCK if clock is None else CLOCK_PARAMETER
        """An SQL expression for the time in seconds since 1970, which avoids a separate query.

        The expression is one of two constants, so SQLAlchemy can cache statements that contain it.
        Pass `clock_parameters` when you execute such a statement.
        """
        self.has_due_job = False
        """True if the transaction has stored or released jobs that might be due."""
        self.is_ending = False
        """True if the COMMIT is sent now, or together with the next statement."""
        self.after_commit: list[Callable[[], None]] = []
        """Functions to call once the transaction has been committed."""
        self._clock = clock
        self._now: datetime | None = None

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

    async def count(self, *where: ColumnElement[bool]) -> int:
        """Count the rows for which all of these conditions hold."""
        return await self.scalar(select(func.count()).where(*where)) or 0

    async def serialise(self, *names: str) -> None:
        """Wait for each name until no other transaction holds it, and hold it until this one ends.

        SQLite has one writer at a time, so this does nothing there.
        """
        if self.is_postgres:
            await self.write(_HOLD, {"names": list(names)})

    async def upsert(self, table: Table, values: dict[str, Any]) -> None:
        """Insert a row with the given values, or update the row that has the same primary key."""
        insert = insert_into(table).values(values)
        key = list(table.primary_key)
        await self.write(insert.on_conflict_do_update(index_elements=key, set_=values))

    async def remove_some(self, table: Table, where: ColumnElement[bool]) -> int:
        """Delete up to `BATCH` matching rows, and return the number deleted.

        A single statement for all rows might exceed the statement timeout.
        """
        key = list(table.primary_key)
        batch = select(*key).where(where).limit(BATCH)
        removed = await self.execute(delete(table).where(tuple_(*key).in_(batch)))
        return removed.rowcount

    def tell_time(self, now: datetime) -> None:
        """Let `now` return a time that a statement of this transaction has returned."""
        self._now = now

    async def end_with_next(self) -> None:
        """Send the next statement together with the commit. Statements after it are refused.

        An error after that statement undoes nothing.
        """
        self.is_ending = True
        if self.is_postgres:
            (await driver_of(self.connection)).is_ending = True

    @property
    def clock_parameters(self) -> dict[str, float]:
        """The parameters to pass when executing a statement that contains `clock`."""
        return {} if self._clock is None else {"clock": self._clock.now().timestamp()}


Claim = Callable[[Transaction], Awaitable[None]]
UntilEnds = Callable[[str, float], Awaitable[Any]]


async def _not_running(_key: str, _seconds: float) -> None:
    """Say of any job that it isn't running."""


class Database:
    """The entry point to the store. Its methods raise DatabaseUnavailable if the database fails.

    With SQLite, the time comes from `clock`. With PostgreSQL, it comes from the server.
    """

    def __init__(self, url: str, clock: Clock, *, pool_size: int = DEFAULT_POOL) -> None:
        self.pool_size = pool_size
        self.file = sqlite_file(url)
        """The path of the SQLite file, or None if the database is on a server."""
        self.is_sqlite = self.file is not None
        self._clock = clock if self.is_sqlite else None
        self.engine = sqlite_engine(url) if self.is_sqlite else postgres_engine(url, pool_size)
        self.is_superseded = False
        """True if a newer version has migrated the database. This process then stops writing."""
        self.newest_revision = ""
        """The newest schema revision that this process knows, once it has used the database."""
        self._writer = asyncio.Lock()
        self._file_id: tuple[int, int] | None = None
        self.claim_due_jobs: Claim | None = None
        """Claims due jobs at the end of each transaction that stores some, if a job loop runs.

        They start after the commit. Other job loops find a due job within a second.
        """
        self.until_job_ends: UntilEnds = _not_running
        """Waits for a job with this key if this process runs it, but at most so many seconds.

        Returns the result of the job's lease, or None if the job isn't running.
        """
        self._cause_told_at = -math.inf
        self._committed_at = -math.inf
        self._is_in_doubt = True

    @property
    def is_proven(self) -> bool:
        """True if a transaction was just committed, and no statement has failed since a check."""
        return not self._is_in_doubt and time.monotonic() - self._committed_at < PROOF_SECONDS

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Yield a write transaction. Commit if the block succeeds, and roll back if it fails.

        Raise CommitUnknown if the connection dropped during the commit.
        """
        tx = None
        try:
            async with self._serialised(), self._connected() as connection, connection.begin():
                tx = Transaction(connection, self._clock)
                yield tx
                # PostgreSQL gets the claim together with the COMMIT.
                tx.is_ending = True
                if self.claim_due_jobs is not None and tx.has_due_job:
                    await self.claim_due_jobs(tx)
                self._require_same_file()
        except DatabaseUnavailable as error:
            # SQLite runs in this process, so a failed commit is always undone.
            if tx is not None and tx.is_ending and not self.is_sqlite:
                raise CommitUnknown from error
            raise
        self._committed_at = time.monotonic()
        for follow in tx.after_commit:
            follow()

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
            self._is_in_doubt = True
            cause = cause_of(error)
            if isinstance(error, ProgrammingError) and cause.code == UNKNOWN_CAUSE.code:
                # The statement is wrong, not the database.
                raise
            self._log_cause(cause, error)
            raise DatabaseUnavailable from error

    def _log_cause(self, cause: DatabaseCause, error: Exception) -> None:
        """Log why the database failed, because users are told only that nothing was done."""
        now = time.monotonic()
        if now - self._cause_told_at >= CAUSE_EVERY_SECONDS:
            self._cause_told_at = now
            log.warning("database.failed", cause=cause.code, error=technical_cause(error))

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
            self._log_cause(TIMEOUT, error)
            raise DatabaseUnavailable from error
        try:
            yield
        finally:
            self._writer.release()

    def _require_same_file(self) -> None:
        """Raise DatabaseReplaced if the SQLite file at the path isn't the one that was opened."""
        if self._file_id is not None and file_id(self.file) != self._file_id:
            self._is_in_doubt = True
            raise DatabaseReplaced

    async def now(self) -> datetime:
        """Return the database's time, from a new transaction."""
        async with self.read_only(sees_snapshot=False) as tx:
            return await tx.now()

    async def ping_writing(self) -> None:
        """Check that the database accepts writes, and that no lock blocks them."""
        async with self.transaction() as tx:
            await tx.execute(TOUCH)
            if tx.is_postgres:
                await tx.execute(LOCK_HEAD)
        self._is_in_doubt = False

    async def require_known_schema(self, tx: Transaction) -> None:
        """Raise Superseded, and refuse further writes, if a newer version migrated the database."""
        if self.newest_revision:
            revision = await tx.scalar(REVISION)
            self.is_superseded = (revision or "") > self.newest_revision
        if self.is_superseded:
            raise Superseded

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
