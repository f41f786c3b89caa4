"""The database: one engine, transactions, its clock, and one error for all its troubles."""

import asyncio
import math
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import (
    ColumnElement,
    bindparam,
    literal_column,
    text,
)
from sqlalchemy.exc import IntegrityError, ProgrammingError, SQLAlchemyError

from bot.errors import CommitUnknown, DatabaseUnavailable
from bot.model.signatures import NO_SEAL, Seal
from bot.ops.clock import Clock
from bot.store.async_engine import AsyncConnection, AsyncEngine
from bot.store.causes import TOO_MANY, UNREACHABLE, cause_of, is_of_postgres, technical_cause
from bot.store.patience import CONNECT_SECONDS, STATEMENT_SECONDS
from bot.store.sqlite import is_sqlite, sqlite_engine, sqlite_url
from bot.store.types import EpochSeconds, from_microseconds, json_text

if TYPE_CHECKING:
    from bot.store.postgres import PostgresEngine

log = structlog.get_logger(__name__)

DEFAULT_POOL = 10
# How soon a server without a free connection is asked again.
CONNECTION_PAUSE_SECONDS = 0.05
CLOSE_SECONDS = 0.5
CAUSE_EVERY_SECONDS = 60.0
# As SQLite reads: without it each statement of PostgreSQL sees what was committed before it.
SNAPSHOT = {"isolation_level": "REPEATABLE READ"}
# Changes nothing, and needs all that a write needs.
TOUCH = text("UPDATE alembic_version SET version_num = version_num")
ENCODINGS = frozenset({"UTF8", "SQL_ASCII"})
POSTGRES_NOW = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")


# PostgreSQL's does not move while a statement runs, hence an index can be searched by it.
POSTGRES_CLOCK: ColumnElement[float] = literal_column(
    "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint", EpochSeconds
)
CLOCK_PARAMETER: ColumnElement[float] = bindparam("clock", type_=EpochSeconds)


class Transaction:
    """One transaction: its connection, and one reading of the database's clock."""

    def __init__(
        self, connection: AsyncConnection, clock: Clock | None, seal: Seal = NO_SEAL
    ) -> None:
        self.connection = connection
        self.seal = seal
        self.has_due_jobs = False
        self._clock = clock
        self._now: datetime | None = None

    @property
    def is_postgres(self) -> bool:
        """Whether the dialect is PostgreSQL's."""
        return self.connection.dialect.name == "postgresql"

    async def now(self) -> datetime:
        """Return the time of this transaction: the database's own, the same however often asked."""
        if self._now is None:
            if self._clock is None:
                self._now = from_microseconds(await self.connection.scalar(POSTGRES_NOW) or 0)
            else:
                self._now = self._clock.now()
        return self._now

    def note_job(self, due_at: datetime) -> None:
        """Remember that a job was put; one that is due is run as soon as this is committed."""
        now = self._now if self._clock is None else self._clock.now()
        self.has_due_jobs |= now is None or due_at <= now

    @property
    def clock(self) -> ColumnElement[float]:
        """The time in seconds since 1970, for a statement: where `now` would cost one of its own.

        The database's clock as the statement begins, or a parameter: see `clock_parameters`. It is
        one of two objects, so that statements made with it can be kept.
        """
        return POSTGRES_CLOCK if self._clock is None else CLOCK_PARAMETER

    @property
    def clock_parameters(self) -> dict[str, float]:
        """What a statement with `clock` has to be executed with."""
        return {} if self._clock is None else {"clock": self._clock.now().timestamp()}


class Database:
    """The store's front door.

    Args:
        url: As in `DATABASE_URL`.
        clock: The time to use instead of the database's own; on SQLite, which has no clock of
            its own, the caller's is used always.
        own_clock: Whether PostgreSQL tells the time (production) or `clock` does (tests).
        pool_size: How many connections to PostgreSQL it opens at most.
        seal: Signs what decides, when it is written.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        own_clock: bool = True,
        pool_size: int = DEFAULT_POOL,
        seal: Seal = NO_SEAL,
    ) -> None:
        self.seal = seal
        self.pool_size = pool_size
        self.is_sqlite = is_sqlite(url)
        self._clock = clock if self.is_sqlite or not own_clock else None
        self._postgres = None if self.is_sqlite else _postgres_engine(url, pool_size)
        self.url = self._postgres.url if self._postgres else sqlite_url(url)
        self._engine = self._postgres.engine if self._postgres else sqlite_engine(self.url)
        self._unhurried_url = url
        self._writer = asyncio.Lock()
        self._wake: Callable[[], None] = _nobody
        self._cause_told_at = -math.inf
        # SQLAlchemy cannot wrap yet what a driver raises while connecting.
        self._errors: tuple[type[Exception], ...] = (
            SQLAlchemyError,
            OSError,
            *_driver_errors(is_sqlite=self.is_sqlite),
        )

    def on_due_jobs(self, wake: Callable[[], None]) -> None:
        """Have `wake` called after each commit that has put a job which is due."""
        self._wake = wake

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler was seen between this process and PostgreSQL."""
        return self._postgres is not None and self._postgres.is_pooled

    @property
    def is_absent(self) -> bool:
        """Whether it is a SQLite file that is not there: to connect would make an empty one."""
        path = self.url.database
        return self.is_sqlite and path not in {None, "", ":memory:"} and not Path(path).exists()

    @property
    def engine(self) -> AsyncEngine:
        """The SQLAlchemy engine, for migrations."""
        return self._engine

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Yield a transaction that writes; commit when the block ends well, else roll back.

        Raises:
            DatabaseUnavailable: It cannot be reached, is full, or broke off.
            CommitUnknown: It broke off while it committed.
        """
        is_committing = False
        try:
            async with self._serialised(), self._connected() as connection, connection.begin():
                if self._postgres is not None:
                    await self._postgres.limit(connection)
                tx = Transaction(connection, self._clock, self.seal)
                yield tx
                is_committing = True
        except DatabaseUnavailable as error:
            # SQLite is in this process: a commit of its that fails is undone.
            if is_committing and not self.is_sqlite:
                raise CommitUnknown from error
            raise
        if tx.has_due_jobs:
            self._wake()

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Transaction]:
        """Yield a connection on which each statement is a transaction of its own.

        Raises:
            DatabaseUnavailable: As for `transaction`.
        """
        alone = {"gatehouse_alone": True} if self.is_sqlite else {"isolation_level": "AUTOCOMMIT"}
        async with self._serialised(), self._connected() as connection:
            yield Transaction(await connection.execution_options(**alone), self._clock, self.seal)

    @asynccontextmanager
    async def read_only(self) -> AsyncIterator[Transaction]:
        """Yield a transaction that only reads, and sees everything as it stood at one moment.

        Raises:
            DatabaseUnavailable: As for `transaction`.
        """
        reads = {"gatehouse_reads": True} if self.is_sqlite else SNAPSHOT
        async with self._connected() as connection:
            yield Transaction(await connection.execution_options(**reads), self._clock, self.seal)

    @asynccontextmanager
    async def _connected(self, engine: AsyncEngine | None = None) -> AsyncIterator[AsyncConnection]:
        """Yield a connection of the pool; every error inside is one of ours."""
        async with self._translated():
            connection = await self._check_out(engine or self._engine)
            try:
                yield connection
            finally:
                # As SQLAlchemy does it: who is cancelled here would leave it checked out.
                await asyncio.shield(asyncio.create_task(connection.close()))

    async def _check_out(self, engine: AsyncEngine) -> AsyncConnection:
        """Take a connection; while the server has none to give, wait for one of ours to be free."""
        deadline = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                return await engine.connect()
            except self._errors as error:
                if cause_of(error) is not TOO_MANY or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(CONNECTION_PAUSE_SECONDS)

    @asynccontextmanager
    async def _serialised(self) -> AsyncIterator[None]:
        """SQLite has one writer: wait for it here rather than in a busy loop of the driver."""
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

    async def ping(self) -> None:
        """Return when the database answers, and is none that can only be read.

        Raises:
            DatabaseUnavailable: It does not.
        """
        async with self.read_only() as tx:
            if not tx.is_postgres:
                await tx.connection.execute(text("SELECT 1"))
            elif await tx.connection.scalar(text("SHOW transaction_read_only")) == "on":
                raise DatabaseUnavailable from _read_only()

    async def try_writing(self) -> None:
        """Return when the database takes a write; it changes nothing.

        Raises:
            DatabaseUnavailable: It does not, or it is not migrated.
        """
        async with self.transaction() as tx:
            await tx.connection.execute(TOUCH)

    async def holds_every_name(self) -> bool:
        """Return whether names in any script can be stored.

        Raises:
            DatabaseUnavailable: It cannot be reached.
        """
        if self.is_sqlite:
            return True
        async with self.read_only() as tx:
            return await tx.connection.scalar(text("SHOW server_encoding")) in ENCODINGS

    async def ping_writing(self) -> None:
        """Return when something could be written: nobody blocks whoever writes.

        Raises:
            DatabaseUnavailable: It cannot.
        """
        async with self.transaction() as tx:
            if tx.is_postgres:
                # Every write that matters takes this row; see `bot.store.audit`.
                await tx.connection.execute(text("SELECT 1 FROM audit_head FOR NO KEY UPDATE"))

    @asynccontextmanager
    async def migrating(self) -> AsyncIterator[Transaction]:
        """Yield a transaction that may take as long as it wants, for migrations.

        Raises:
            DatabaseUnavailable: As for `transaction`.
        """
        if self.is_sqlite:
            async with self.transaction() as tx:
                yield tx
            return
        postgres = _postgres_engine(self._unhurried_url, 1, is_unhurried=True)
        try:
            async with self._connected(postgres.engine) as connection, connection.begin():
                await postgres.limit(connection)
                yield Transaction(connection, self._clock, self.seal)
        finally:
            await postgres.engine.dispose()

    async def close(self) -> None:
        """Close every connection; one to a server that does not answer is left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._engine.dispose()

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        """Turn the driver's and the system's errors into ours; what is a bug of ours stays one."""
        try:
            yield
        except self._errors as error:
            if _is_bug(error):
                raise
            self._tell_cause(error)
            raise DatabaseUnavailable from error

    def _tell_cause(self, error: Exception) -> None:
        """Log what lies behind it, once a minute: who is told hears that nothing was done."""
        now = time.monotonic()
        if now - self._cause_told_at < CAUSE_EVERY_SECONDS:
            return
        self._cause_told_at = now
        cause = cause_of(error)
        log.warning("database.failed", cause=cause.code, error=technical_cause(error))


def _nobody() -> None:
    """Without a job loop in this process, others find the job within a second."""


def _is_bug(error: Exception) -> bool:
    """Whether the database is there, and what it was asked can never be done."""
    driver = getattr(getattr(error, "orig", None), "__cause__", None)
    if isinstance(error, IntegrityError) or is_of_postgres(driver, "DataError"):
        return True
    return isinstance(error, ProgrammingError) and cause_of(error) is UNREACHABLE


def _postgres_engine(url: str, pool_size: int, *, is_unhurried: bool = False) -> "PostgresEngine":
    # Each driver and its dialect are loaded by who uses that database: a twentieth of a start.
    from bot.store.postgres import PostgresEngine

    return PostgresEngine(url, pool_size, json_text, is_unhurried=is_unhurried)


def _driver_errors(*, is_sqlite: bool) -> tuple[type[Exception], ...]:
    if is_sqlite:
        return (sqlite3.Error,)
    import asyncpg

    return (asyncpg.PostgresError, asyncpg.InterfaceError)


def _read_only() -> Exception:
    import asyncpg

    error: Exception = asyncpg.ReadOnlySQLTransactionError()
    return error
