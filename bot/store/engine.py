"""The database: one engine, transactions, its clock, and one error for all its troubles."""

import asyncio
import fcntl
import json
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
from pydantic_core import PydanticSerializationError, to_json
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Dialect,
    Text,
    bindparam,
    event,
    literal_column,
    make_url,
    text,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.types import TypeDecorator

from bot.clock import Clock
from bot.errors import CommitUnknown, DatabaseInUse, DatabaseUnavailable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CONNECT_SECONDS = 5
STATEMENT_SECONDS = 10
# Another program (a backup, a shell) may hold SQLite's lock; all our writers queue behind the one
# that waits for it.
BUSY_SECONDS = 3
# What the drivers raise while connecting, before SQLAlchemy can wrap it.
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, sqlite3.Error)
# As SQLite reads: without it each statement of PostgreSQL sees what was committed before it.
SNAPSHOT = {"isolation_level": "REPEATABLE READ"}
POSTGRES_NOW = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time, stored as whole microseconds since 1970: exact and alike on every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Python to database."""
        return None if value is None else to_microseconds(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Database to Python."""
        return None if value is None else from_microseconds(value)


class ExactText(TypeDecorator[str]):
    """Any text, stored as its JSON in ASCII: PostgreSQL has no place for the character zero."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Python to database."""
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Database to Python."""
        return None if value is None else str(json.loads(value))


class EpochSeconds(TypeDecorator[float]):
    """Seconds since 1970 for arithmetic, stored as `UtcDateTime` stores them."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Python to database."""
        return None if value is None else round(value * 1_000_000)

    def process_result_value(self, value: int | None, dialect: Dialect) -> float | None:  # noqa: ARG002
        """Database to Python."""
        return None if value is None else value / 1_000_000


# PostgreSQL's does not move while a statement runs, hence an index can be searched by it.
POSTGRES_CLOCK: ColumnElement[float] = literal_column(
    "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint", EpochSeconds
)
CLOCK_PARAMETER: ColumnElement[float] = bindparam("clock", type_=EpochSeconds)


def to_microseconds(value: datetime) -> int:
    """Return whole microseconds since 1970."""
    return (value - EPOCH) // timedelta(microseconds=1)


def from_microseconds(value: int) -> datetime:
    """Return the aware time so many microseconds after 1970."""
    return EPOCH + timedelta(microseconds=value)


class Transaction:
    """One transaction: its connection, and one reading of the database's clock."""

    def __init__(self, connection: AsyncConnection, clock: Clock | None) -> None:
        self.connection = connection
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
    """

    def __init__(self, url: str, clock: Clock, *, own_clock: bool = True) -> None:
        self.url = async_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._clock = clock if self.is_sqlite or not own_clock else None
        self._engine = _make_engine(self.url)
        self._writer = asyncio.Lock()

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
            async with self._serialised(), _translated(), self._engine.begin() as connection:
                yield Transaction(connection, self._clock)
                is_committing = True
        except DatabaseUnavailable as error:
            # SQLite is in this process: a commit of its that fails is undone.
            if is_committing and not self.is_sqlite:
                raise CommitUnknown from error
            raise

    @asynccontextmanager
    async def statements(self) -> AsyncIterator[Transaction]:
        """Yield a connection on which each statement is a transaction of its own.

        Raises:
            DatabaseUnavailable: As for `transaction`.
        """
        alone = {"gatehouse_alone": True} if self.is_sqlite else {"isolation_level": "AUTOCOMMIT"}
        async with self._serialised(), _translated(), self._engine.connect() as connection:
            yield Transaction(await connection.execution_options(**alone), self._clock)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        """Yield a transaction that only reads, and sees everything as it stood at one moment.

        Raises:
            DatabaseUnavailable: As for `transaction`.
        """
        reads = {"gatehouse_reads": True} if self.is_sqlite else SNAPSHOT
        async with _translated(), self._engine.connect() as connection:
            yield Transaction(await connection.execution_options(**reads), self._clock)

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
        """Return when the database answers.

        Raises:
            DatabaseUnavailable: It does not.
        """
        async with self.reading() as tx:
            await tx.connection.execute(text("SELECT 1"))

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    """Turn the driver's and the system's errors into ours."""
    try:
        yield
    except (SQLAlchemyError, OSError, *DRIVER_ERRORS) as error:
        if _is_unstorable(error):
            raise
        raise DatabaseUnavailable from error


def _is_unstorable(error: Exception) -> bool:
    """Whether PostgreSQL is there and cannot hold a value, however often it is tried."""
    return isinstance(getattr(getattr(error, "orig", None), "__cause__", None), asyncpg.DataError)


# What PostgreSQL's own tools write into an address, in the words of the driver.
SSL_NAMES = {"sslmode": "ssl"}


def async_url(url: str) -> URL:
    """Return the SQLAlchemy address with its asynchronous driver; `postgres://` is taken too."""
    parsed = make_url(url.replace("postgres://", "postgresql://", 1))
    drivers = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}
    query = {SSL_NAMES.get(name, name): value for name, value in parsed.query.items()}
    return parsed.set(drivername=drivers[parsed.get_backend_name()], query=query)


class JsonText(str):
    """JSON that is written already, for a column of JSON."""

    __slots__ = ()


def _json_text(value: object) -> str:
    """Return JSON in a quarter of the time of `json.dumps`."""
    if isinstance(value, JsonText):
        return value
    try:
        return to_json(value).decode()
    except PydanticSerializationError:
        # Half of a surrogate pair has an escape, and no bytes.
        return json.dumps(value)


def _make_engine(url: URL) -> AsyncEngine:
    if url.get_backend_name() == "sqlite":
        engine = create_async_engine(
            url,
            json_serializer=_json_text,
            hide_parameters=True,
            connect_args={"timeout": BUSY_SECONDS},
        )
        _prepare_sqlite(engine)
        return engine
    return create_async_engine(
        url,
        json_serializer=_json_text,
        # An error is logged, and what people typed is not.
        hide_parameters=True,
        # No overflow: a connection for a moment costs the server more than the wait for one of the
        # ten, and nothing holds one while it wants another.
        pool_size=10,
        max_overflow=0,
        pool_timeout=CONNECT_SECONDS,
        pool_pre_ping=True,
        connect_args={"timeout": CONNECT_SECONDS, "command_timeout": STATEMENT_SECONDS},
    )


def _prepare_sqlite(engine: AsyncEngine) -> None:
    """Write-ahead log, full durability, and transactions that begin when we say so.

    The driver would begin a transaction by itself, and only before the first write, which lets two
    readers deadlock on the way to writing: see SQLAlchemy's notes on pysqlite and transactions.
    """

    def on_connect(connection: Any, _record: Any) -> None:  # noqa: ANN401
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    def on_begin(connection: Any) -> None:  # noqa: ANN401
        options = connection.get_execution_options()
        if options.get("gatehouse_alone"):
            return
        reads = options.get("gatehouse_reads")
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    def on_invalidate(connection: Any, _record: Any, _error: Any) -> None:  # noqa: ANN401
        # A statement whose caller was cancelled keeps the closed connection, and so the lock of
        # its transaction, until both are collected.
        with suppress(SQLAlchemyError, sqlite3.Error):
            connection.rollback()

    event.listen(engine.sync_engine, "connect", on_connect)
    event.listen(engine.sync_engine, "invalidate", on_invalidate)
    event.listen(engine.sync_engine, "begin", on_begin)


class ProcessLock:
    """Lets one process use one SQLite file; the system drops it with its holder, however that ends.

    Raises:
        DatabaseInUse: Another process holds it.
    """

    def __init__(self, url: str) -> None:
        address = async_url(url)
        is_file = address.get_backend_name() == "sqlite" and address.database not in {
            None,
            ":memory:",
        }
        self._path = Path(f"{address.database}.lock") if is_file else None
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock or raise `DatabaseInUse`; a server database needs none."""
        if self._path is None:
            return
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            raise DatabaseInUse(str(self._path)) from error

    def release(self) -> None:
        """Give the lock back."""
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None
