"""Runs SQLite without threads or greenlets. Each statement runs in the task that awaits it.

Other tasks can run before a transaction begins and before it commits. Between the statements of
a transaction, no other tasks run, because other tasks couldn't see the uncommitted changes anyway.
With autocommit, other tasks can run before each statement.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from sqlalchemy import Connection, CursorResult, Engine, create_engine, make_url

import bot.store.engine
from bot.store.sqlite import prepare_sqlite
from tests.simulation.days.loop import PROCESS

# The open connections of each process, which are closed when the process dies.
OPEN: dict[str, dict[Connection, sqlite3.Connection]] = {}


def install() -> None:
    """Use this engine for every database. Call this function only in a separate process."""
    bot.store.engine.sqlite_engine = InlineEngine  # type: ignore[assignment, misc]


def close_all(process: str) -> None:
    """Close the connections of a dead process. Uncommitted changes are lost."""
    for driver in OPEN.pop(process, {}).values():
        driver.close()


@cache
def _engine(url: str) -> Engine:
    """Return one engine for all processes, so that the processes share compiled statements."""
    engine = create_engine(
        make_url(url).set(drivername="sqlite"),
        max_overflow=-1,
    )
    prepare_sqlite(engine)
    return engine


class InlineEngine:
    """Implements the part of `AsyncEngine` that `Database` uses."""

    def __init__(self, url: str) -> None:
        self._engine = _engine(url)

    async def connect(self) -> "InlineConnection":
        """Take a connection from the pool."""
        return InlineConnection(self._engine.connect())

    async def dispose(self) -> None:
        """Close the pool."""
        self._engine.dispose()


class InlineConnection:
    """Implements the part of `AsyncConnection` that the bot uses."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._open = OPEN.setdefault(PROCESS.get(), {})
        self._open[connection] = connection.connection.driver_connection  # type: ignore[assignment]
        self.dialect = connection.dialect

    async def execute(
        self, statement: Any, parameters: Any = None, **options: Any
    ) -> CursorResult[Any]:
        """Execute a statement. Without autocommit, the statement is part of a transaction."""
        if not self._connection.in_transaction() or self._is_alone():
            await asyncio.sleep(0)
        return self._connection.execute(statement, parameters, **options)

    def _is_alone(self) -> bool:
        return bool(self._connection.get_execution_options().get("gatehouse_alone"))

    async def scalar(self, statement: Any, parameters: Any = None) -> Any:
        """Execute a statement. Return the first column of the first row."""
        return (await self.execute(statement, parameters)).scalar()

    async def scalars(self, statement: Any, parameters: Any = None) -> Any:
        """Execute a statement. Return the first column of each row."""
        return (await self.execute(statement, parameters)).scalars()

    async def execution_options(self, **options: Any) -> "InlineConnection":
        """Set SQLAlchemy execution options."""
        self._connection.execution_options(**options)
        return self

    async def run_sync(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function, and pass the synchronous connection as the first argument."""
        return function(self._connection, *arguments)

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[None]:
        """Commit at the end of the block, or roll back after an error."""
        await asyncio.sleep(0)
        with self._connection.begin():
            yield
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Return the connection to the pool."""
        self._open.pop(self._connection, None)
        self._connection.close()
