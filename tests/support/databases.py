"""Migrates a database once, and gives each test its own copy."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from queue import Queue
from typing import Literal

from bot.migrations import migrate
from bot.ops.clock import Clock, SystemClock
from bot.store.engine import Database
from tests.support.postgres import own_database, server_url
from tests.support.steady import run_steadily

Kind = Literal["sqlite", "postgres"]


class ClockedDatabase(Database):
    """A database that uses the test's clock, even if it is a PostgreSQL database."""

    def __init__(self, url: str, clock: Clock, **options: int) -> None:
        super().__init__(url, clock, **options)
        self._clock = clock


async def migrated(url: str) -> None:
    """Migrate the database at `url`."""
    database = Database(url, SystemClock())
    try:
        await migrate(database)
    finally:
        await database.close()


def copy_sqlite(template: Path, target: Path) -> None:
    """Copy a SQLite database.

    The database must be closed, because closing a database merges the write-ahead log into the
    file.
    """
    shutil.copyfile(template, target)


@contextmanager
def postgres_template(server: str) -> Iterator[str]:
    """Create and migrate a database, yield its name, and drop the database after the block.

    The database needs a separate event loop, because each test's event loop ends with the test.
    """
    names: Queue[str | BaseException] = Queue()
    done = threading.Event()

    async def keep() -> None:
        try:
            async with own_database(server, is_durable=False) as url:
                await migrated(url)
                names.put(url.rsplit("/", 1)[1])
                await asyncio.to_thread(done.wait)
        except BaseException as error:  # noqa: BLE001 - re-raised in the waiting thread
            names.put(error)

    keeper = threading.Thread(target=lambda: run_steadily(keep()))
    keeper.start()
    try:
        name = names.get()
        if isinstance(name, BaseException):
            raise name
        yield name
    finally:
        done.set()
        keeper.join()


def migrated_file(path: Path) -> Path:
    """Create and migrate a SQLite database at `path`."""
    worker = threading.Thread(target=lambda: run_steadily(migrated(f"sqlite:///{path}")))
    worker.start()
    worker.join()
    return path


@asynccontextmanager
async def database_of(kind: Kind, folder: str) -> AsyncIterator[str]:
    """Yield the address of a new, empty database. SQLite databases are created in `folder`."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/gatehouse.db"
        return
    async with own_database(server_url()) as url:
        yield url
