"""Connections and engines that are awaited, under SQLAlchemy's names.

They do what the bot uses of `sqlalchemy.ext.asyncio`, in the same way. That package loads the ORM,
which nothing here uses: a fifteenth of the time of a start, and as much of its memory.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar, TypeVarTuple, overload

from sqlalchemy import (
    URL,
    Connection,
    CursorResult,
    Dialect,
    Engine,
    Executable,
    ScalarResult,
    create_engine,
)
from sqlalchemy.sql.selectable import TypedReturnsRows
from sqlalchemy.util import greenlet_spawn

Result = TypeVar("Result")
Columns = TypeVarTuple("Columns")
Arguments = TypeVarTuple("Arguments")
Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class AsyncConnection:
    """A connection of the pool."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def dialect(self) -> Dialect:
        """SQLAlchemy's for this database."""
        return self._connection.dialect

    @overload
    async def execute(
        self, statement: TypedReturnsRows[*Columns], parameters: Parameters | None = None
    ) -> CursorResult[*Columns]: ...

    @overload
    async def execute(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> CursorResult[*tuple[Any, ...]]: ...

    async def execute(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> CursorResult[*tuple[Any, ...]]:
        """Execute a statement; its rows are all here when it returns."""
        return await greenlet_spawn(self._connection.execute, statement, parameters)

    async def scalar(self, statement: Executable, parameters: Parameters | None = None) -> Any:  # noqa: ANN401 - what the column holds
        """Execute a statement and return the first column of the first row, or None."""
        return (await self.execute(statement, parameters)).scalar()

    async def scalars(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> ScalarResult[Any]:
        """Execute a statement and return the first column of each row."""
        return (await self.execute(statement, parameters)).scalars()

    async def exec_driver_sql(self, statement: str) -> None:
        """Execute a text as the driver takes it."""
        await greenlet_spawn(self._connection.exec_driver_sql, statement)

    async def run_sync(
        self, function: Callable[[Connection, *Arguments], Result], *arguments: *Arguments
    ) -> Result:
        """Call what knows nothing of asyncio with the connection: Alembic, and inspection."""
        return await greenlet_spawn(function, self._connection, *arguments)

    async def execution_options(self, **options: Any) -> "AsyncConnection":  # noqa: ANN401 - SQLAlchemy's
        """Set options for what is executed from now on, until it is given back."""
        await greenlet_spawn(self._connection.execution_options, **options)
        return self

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[None]:
        """Commit when the block ends well, else roll back."""
        transaction = await greenlet_spawn(self._connection.begin)
        transaction.__enter__()
        try:
            yield
        except BaseException as error:
            await greenlet_spawn(transaction.__exit__, type(error), error, error.__traceback__)
            raise
        await greenlet_spawn(transaction.__exit__, None, None, None)

    async def close(self) -> None:
        """Give it back to the pool."""
        await greenlet_spawn(self._connection.close)


class AsyncEngine:
    """A pool of connections to one database; `sync_engine` is what events are listened to on."""

    def __init__(self, engine: Engine) -> None:
        self.sync_engine = engine

    @property
    def dialect(self) -> Dialect:
        """SQLAlchemy's for this database."""
        return self.sync_engine.dialect

    async def connect(self) -> AsyncConnection:
        """Take a connection of the pool."""
        return AsyncConnection(await greenlet_spawn(self.sync_engine.connect))

    async def dispose(self) -> None:
        """Close every connection of the pool."""
        await greenlet_spawn(self.sync_engine.dispose)


def create_async_engine(url: URL, **options: Any) -> AsyncEngine:  # noqa: ANN401 - SQLAlchemy's
    """Return an engine for a driver that is awaited, as `sqlalchemy.create_engine` makes it."""
    return AsyncEngine(create_engine(url, **options))
