"""The engine for SQLite, and the lock that reserves a file for one process."""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiosqlite
from sqlalchemy import event, make_url
from sqlalchemy.engine import URL, Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from bot.errors import DatabaseInUse
from bot.store.postgres import CONNECT_SECONDS

# Another program (a backup, a shell) may hold SQLite's lock; all of this process's writers queue
# behind the first writer that waits for it.
BUSY_SECONDS = 3
# Each connection has a thread, and threads take turns: with more threads, each waits longer.
# Nothing holds one connection while waiting for another.
CONNECTIONS = 4


def is_sqlite(url: str) -> bool:
    """Return True if the URL is for a SQLite file."""
    return url.startswith("sqlite:")


def sqlite_url(url: str) -> URL:
    """Return the SQLAlchemy URL of a SQLite file with the asynchronous driver."""
    return make_url(url).set(drivername="sqlite+aiosqlite")


def sqlite_file(url: str) -> Path | None:
    """Return the path of a SQLite file; None for a server."""
    return Path(str(make_url(url).database)) if is_sqlite(url) else None


def sqlite_engine(url: URL) -> AsyncEngine:
    """Return an engine for a SQLite file, which allows one writer at a time."""
    engine = create_async_engine(
        url,
        hide_parameters=True,
        # No overflow: opening a short-lived connection takes longer than waiting.
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=CONNECT_SECONDS,
        pool_use_lifo=True,
        connect_args={"timeout": BUSY_SECONDS, "async_creator_fn": _open_sqlite},
    )
    prepare_sqlite(engine.sync_engine)
    return engine


async def _open_sqlite(*args: Any, **parameters: Any) -> aiosqlite.Connection:  # noqa: ANN401
    """Open a connection. On failure, return only once its thread has ended."""
    connection = aiosqlite.connect(*args, **parameters)
    thread = connection._thread  # noqa: SLF001 - SQLAlchemy uses it too
    thread.daemon = True
    try:
        return await connection
    except BaseException:
        # The driver doesn't wait for its thread, which would then call a closed loop.
        await asyncio.to_thread(thread.join)
        raise


def prepare_sqlite(engine: Engine) -> None:
    """Set up write-ahead logging, full durability and explicit transactions.

    By default, the driver begins a transaction only before the first write, so two readers that
    both want to write can deadlock: see SQLAlchemy's notes on pysqlite and transactions.
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
        # A cancelled statement keeps the closed connection, and therefore its transaction's lock,
        # until both are garbage-collected.
        with suppress(SQLAlchemyError, sqlite3.Error):
            connection.rollback()

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "invalidate", on_invalidate)
    event.listen(engine, "begin", on_begin)


@contextmanager
def process_lock(url: str) -> Iterator[None]:
    """Reserve a SQLite file for this process or raise DatabaseInUse; a server needs no lock.

    The OS releases the lock when the process ends. The lock file is next to the database file
    itself, even if the path is a symbolic link.
    """
    database = sqlite_file(url)
    if database is None:
        yield
        return
    beside = database.resolve()
    path = beside.with_name(f"{beside.name}.lock")
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Earlier versions left the file readable by everyone, and the log file inherits its mode.
        for present in (database, Path(f"{database}-wal"), Path(f"{database}-shm")):
            with suppress(OSError):
                present.chmod(0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DatabaseInUse(str(path)) from error
        yield
    finally:
        os.close(file)
