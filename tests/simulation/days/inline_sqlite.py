"""SQLite without threads: each statement is executed where it is awaited.

Others have their turn before a transaction begins and before it is committed: what happens between
its statements, nobody else sees before that.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any

import aiosqlite.core

from tests.simulation.days.loop import PROCESS

# By process: its open connections, which the system closes when it dies.
OPEN: dict[str, list[sqlite3.Connection]] = {}


class InlineQueue:
    """The driver's queue of work, done as it is put."""

    def put_nowait(self, item: tuple[Any, Callable[[], Any]]) -> None:
        """Do it, and tell who waits."""
        future, function = item
        try:
            result = function()
        except sqlite3.Error as error:
            future.set_exception(error)
        else:
            future.set_result(result)


def install() -> None:
    """Replace the driver's thread; for a process of its own only."""

    async def execute(self: Any, function: Callable[..., Any], *args: Any, **more: Any) -> Any:
        if not self._running or not self._connection:
            raise ValueError("Connection closed")
        if function.__name__ == "commit" or (args and str(args[0]).startswith("BEGIN")):
            await asyncio.sleep(0)
        return function(*args, **more)

    async def connect(self: Any) -> Any:
        if self._connection is None:
            await asyncio.sleep(0)
            self._connection = self._connector()
            self._tx = InlineQueue()
            OPEN.setdefault(PROCESS.get(), []).append(self._connection)
        return self

    def stop(self: Any) -> None:
        self._running = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    connection = aiosqlite.core.Connection
    connection._execute = execute
    connection._connect = connect
    connection.stop = stop
    connection.__await__ = lambda self: self._connect().__await__()
    connection.__del__ = lambda self: None


def close_all(process: str) -> None:
    """Close what a dead process had open; what it had not committed is gone."""
    for connection in OPEN.pop(process, []):
        connection.close()
