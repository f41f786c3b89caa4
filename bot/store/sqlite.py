"""SQLite files: opening them, and letting only one process use each file."""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial, partialmethod
from pathlib import Path
from typing import Any, Self

import aiosqlite
from sqlalchemy import event, make_url
from sqlalchemy.engine import Engine
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from bot.errors import DatabaseInUse
from bot.store.postgres import CONNECT_SECONDS

# Another program (a backup, a shell) might hold SQLite's lock. While one writer waits for the lock,
# all other writers in this process wait for that writer.
BUSY_SECONDS = 3
# Each connection has its own thread. Threads take turns, so more threads would only wait longer.
# No code holds one connection while it waits for another.
CONNECTIONS = 4


def sqlite_file(url: str) -> Path | None:
    """Return the path of the SQLite file in a URL, or None if the URL is for a server."""
    return Path(str(make_url(url).database)) if url.startswith("sqlite:") else None


def file_id(file: Path | None) -> tuple[int, int] | None:
    """Return a file's device and inode, or None if there is no file."""
    if file is None:
        return None
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def sqlite_engine(url: str) -> AsyncEngine:
    """Return an engine for a SQLite file, which allows one writer at a time."""
    engine = create_async_engine(
        make_url(url).set(drivername="sqlite+aiosqlite"),
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


class _Connection(aiosqlite.Connection):
    """A connection that goes to its thread once for each statement.

    The driver goes there four times: for a cursor, the statement, its rows, and the end. Each time,
    the event loop and the thread have to wake each other.
    """

    def cursor(self) -> "_Cursor":  # type: ignore[override]
        return _Cursor(self)

    async def rollback(self) -> None:
        """Roll back. The pool asks for this after each use, even after a commit."""
        if self.in_transaction:
            await super().rollback()

    def stop(self) -> asyncio.Future[Any] | None:
        """Stop the thread, but only once, because a stopped thread never answers.

        SQLAlchemy stops a connection that is still closing if the transaction is cancelled again.
        """
        return super().stop() if self._running else None


class _Cursor:
    """The part of a cursor that SQLAlchemy uses. Executing a statement fetches all of its rows."""

    arraysize = 1

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> Self:
        return self

    async def execute(self, *statement: Any, method: Any = sqlite3.Cursor.execute) -> None:  # noqa: ANN401
        await self._connection._execute(self._run, method, *statement)  # type: ignore[no-untyped-call]  # noqa: SLF001

    executemany = partialmethod(execute, method=sqlite3.Cursor.executemany)

    async def fetchall(self) -> list[Any]:
        return self._rows

    async def close(self) -> None:
        """Do nothing: the driver's cursor was closed after the statement."""

    def _run(self, method: Any, *statement: Any) -> None:  # noqa: ANN401
        """Execute a statement in the connection's thread.

        A cursor that stays open would keep a canceled transaction's lock after the connection was
        closed, until both are garbage-collected.
        """
        with closing(self._connection._conn.cursor()) as cursor:  # noqa: SLF001
            method(cursor, *statement)
            self._rows = cursor.fetchall()
            self.description = cursor.description
            self.rowcount = cursor.rowcount
            self.lastrowid = cursor.lastrowid


async def _open_sqlite(*args: Any, **parameters: Any) -> aiosqlite.Connection:  # noqa: ANN401
    """Open a connection. If that fails, wait until the connection's thread has ended."""
    connection = _Connection(partial(sqlite3.connect, *args, **parameters), iter_chunk_size=1)
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

    event.listen(engine, "connect", on_connect)
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
