"""SQLite without threads and greenlets: each statement is executed where it is awaited.

Others have their turn before a transaction begins and before it is committed: what happens between
its statements, nobody else sees before that. Where each statement is a transaction of its own,
others have their turn before each.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from sqlalchemy import URL, Connection, CursorResult, Engine, create_engine

import bot.store.engine
from bot.store.engine import prepare_sqlite
from tests.simulation.days.loop import PROCESS

# By process: its open connections, which the system closes when it dies.
OPEN: dict[str, dict[Connection, sqlite3.Connection]] = {}


def install() -> None:
    """Have every database be one of these; for a process of its own only."""
    bot.store.engine.sqlite_engine = InlineEngine  # type: ignore[assignment, misc]


def close_all(process: str) -> None:
    """Close what a dead process had open; what it had not committed is gone."""
    for driver in OPEN.pop(process, {}).values():
        driver.close()


@cache
def _engine(url: URL) -> Engine:
    """One for all simulated processes: what is compiled for one is compiled for all."""
    engine = create_engine(
        url.set(drivername="sqlite"),
        max_overflow=-1,
    )
    prepare_sqlite(engine)
    return engine


class InlineEngine:
    """What `Database` uses of an `AsyncEngine`."""

    def __init__(self, url: URL) -> None:
        self._engine = _engine(url)

    async def connect(self) -> "InlineConnection":
        """Take a connection of the pool."""
        return InlineConnection(self._engine.connect())

    async def dispose(self) -> None:
        """Close the pool."""
        self._engine.dispose()


class InlineConnection:
    """What the bot uses of an `AsyncConnection`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._open = OPEN.setdefault(PROCESS.get(), {})
        self._open[connection] = connection.connection.driver_connection  # type: ignore[assignment]
        self.dialect = connection.dialect

    async def execute(
        self, statement: Any, parameters: Any = None, **options: Any
    ) -> CursorResult[Any]:
        """Execute it, in a transaction if it is to be in one."""
        if not self._connection.in_transaction() or self._is_alone():
            await asyncio.sleep(0)
        return self._connection.execute(statement, parameters, **options)

    def _is_alone(self) -> bool:
        return bool(self._connection.get_execution_options().get("gatehouse_alone"))

    async def scalar(self, statement: Any, parameters: Any = None) -> Any:
        """Execute it and return the first column of the first row."""
        return (await self.execute(statement, parameters)).scalar()

    async def scalars(self, statement: Any, parameters: Any = None) -> Any:
        """Execute it and return the first column of each row."""
        return (await self.execute(statement, parameters)).scalars()

    async def execution_options(self, **options: Any) -> "InlineConnection":
        """Set options, as SQLAlchemy has them."""
        self._connection.execution_options(**options)
        return self

    async def run_sync(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Do what knows nothing of all this."""
        return function(self._connection, *arguments)

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[None]:
        """Commit at the end of the block, or roll back."""
        await asyncio.sleep(0)
        with self._connection.begin():
            yield
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Give it back to the pool."""
        self._open.pop(self._connection, None)
        self._connection.close()
