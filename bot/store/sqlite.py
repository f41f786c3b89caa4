"""The engine for SQLite, and the lock that lets one process use a file."""

import asyncio
import fcntl
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import event, make_url
from sqlalchemy.engine import URL, Engine
from sqlalchemy.exc import SQLAlchemyError

from bot.errors import DatabaseInUse
from bot.store.async_engine import AsyncEngine, create_async_engine
from bot.store.patience import CONNECT_SECONDS
from bot.store.types import json_text, read_json

if TYPE_CHECKING:
    import aiosqlite

# Another program (a backup, a shell) may hold SQLite's lock; all our writers queue behind the one
# that waits for it.
BUSY_SECONDS = 3
# Each has a thread of its own in this process, and all threads take turns: with more of them every
# one waits longer. Nothing holds one while it wants another.
CONNECTIONS = 4


def is_sqlite(url: str) -> bool:
    """Whether it is the address of a SQLite file."""
    return url.startswith("sqlite:")


def sqlite_url(url: str) -> URL:
    """Return the SQLAlchemy address of a SQLite file with its asynchronous driver."""
    return make_url(url).set(drivername="sqlite+aiosqlite")


def sqlite_engine(url: URL) -> AsyncEngine:
    """Return an engine whose connections are those of one writer at a time."""
    engine = create_async_engine(
        url,
        json_serializer=json_text,
        json_deserializer=read_json,
        hide_parameters=True,
        # No overflow: to open a connection for a moment takes longer than to wait for one.
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=CONNECT_SECONDS,
        pool_use_lifo=True,
        connect_args={"timeout": BUSY_SECONDS, "async_creator_fn": _open_sqlite},
    )
    prepare_sqlite(engine.sync_engine)
    return engine


async def _open_sqlite(*args: Any, **parameters: Any) -> "aiosqlite.Connection":  # noqa: ANN401
    """Open a connection; where that fails, return only once its thread has ended."""
    import aiosqlite

    connection = aiosqlite.connect(*args, **parameters)
    thread = connection._thread  # noqa: SLF001 - SQLAlchemy reaches for it too
    thread.daemon = True
    try:
        return await connection
    except BaseException:
        # The driver asks it to stop and does not wait: it would speak to a loop that is closed.
        await asyncio.to_thread(thread.join)
        raise


def prepare_sqlite(engine: Engine) -> None:
    """Write-ahead log, full durability, and transactions that begin when we say so.

    The driver would begin a transaction by itself, and only before the first write, which lets two
    readers deadlock on the way to writing: see SQLAlchemy's notes on pysqlite and transactions.
    """

    def on_connect(connection: Any, _record: Any) -> None:  # noqa: ANN401
        connection.isolation_level = None
        cursor = connection.cursor()
        try:
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                cursor.execute(f"PRAGMA {pragma}")
        except Exception:
            # SQLAlchemy does not close what was never connected; its thread would outlive us.
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
        # A statement whose caller was cancelled keeps the closed connection, and so the lock of
        # its transaction, until both are collected.
        with suppress(SQLAlchemyError, sqlite3.Error):
            connection.rollback()

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "invalidate", on_invalidate)
    event.listen(engine, "begin", on_begin)


class ProcessLock:
    """Lets one process use one SQLite file; the system drops it with its holder, however that ends.

    The lock lies beside the file itself, whatever links lead to it.

    Raises:
        DatabaseInUse: Another process holds it.
    """

    def __init__(self, url: str) -> None:
        path = sqlite_url(url).database if is_sqlite(url) else None
        self._database = Path(path or "")
        self._path = None if path in {None, ":memory:"} else _beside(self._database)
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock or raise `DatabaseInUse`; a server database needs none."""
        if self._path is None:
            return
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # One of an earlier version may be anybody's to read; its log takes its rights from it.
        for path in (self._database, Path(f"{self._database}-wal"), Path(f"{self._database}-shm")):
            with suppress(OSError):
                path.chmod(0o600)
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


def _beside(database: Path) -> Path:
    database = database.resolve()
    return database.with_name(f"{database.name}.lock")
