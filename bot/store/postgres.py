"""The engine for PostgreSQL: how connections are made, directly or through a pooler."""

import asyncio
import select
import ssl
import time
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import asyncpg
from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.exc import InvalidatePoolError

from bot.database_url import TRUSTED_BY_THE_SYSTEM, ServerAddress, server_address
from bot.store.async_engine import AsyncConnection, AsyncEngine, create_async_engine
from bot.store.patience import CONNECT_SECONDS, STATEMENT_SECONDS

STATEMENTS_KEPT = 100
# A connection that was used a moment ago is taken as it is: to ask it first takes as many round
# trips as all statements of a granted call.
PING_AFTER_SECONDS = 1.0
# What the server itself sees to: a process that is stopped, or whose machine is gone, holds up the
# others for no longer than this. It may have more statements on their way for what it holds, each
# of which waits for its lock, hence the second limit.
SERVER_LIMITS = {
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "8s",
    "statement_timeout": "12s",
    "tcp_keepalives_idle": "10s",
    "tcp_keepalives_interval": "5s",
    "tcp_keepalives_count": "2",
    "tcp_user_timeout": "15000",
}
# A migration takes as long as it takes, and waits for another process's.
MIGRATION_LIMITS = {**SERVER_LIMITS, "lock_timeout": "0", "statement_timeout": "0"}
# SQLAlchemy's own idea of where the server is; the address has more to say.
PLACE = frozenset({"host", "port", "user", "password", "database"})


class PostgresEngine:
    """An engine, and what its connections have shown of the way to the server.

    Statements that a connection prepares have names that no other process gives, so that a server
    which mixes connections up can only refuse one, never run another in its place. Behind a pooler
    that hands each transaction to any server connection they have no name, and nothing is kept.

    Args:
        url: As in `DATABASE_URL`.
        pool_size: `DATABASE_POOL`.
        json_serializer: Writes the columns of JSON.
        is_unhurried: Whether a statement may take as long as it wants.
    """

    def __init__(
        self,
        url: str,
        pool_size: int,
        json_serializer: Callable[[object], str],
        *,
        is_unhurried: bool = False,
    ) -> None:
        self._address = server_address(url)
        self._statement_seconds = None if is_unhurried else STATEMENT_SECONDS
        limits = MIGRATION_LIMITS if is_unhurried else SERVER_LIMITS
        # What the operator wrote into the address has the last word.
        self._limits = {k: v for k, v in limits.items() if k not in self._address.settings}
        self.url = _shown(self._address)
        self.is_pooled = False
        self.engine = self._make(pool_size, json_serializer)

    def _make(self, pool_size: int, json_serializer: Callable[[object], str]) -> AsyncEngine:
        engine = create_async_engine(
            self.url,
            json_serializer=json_serializer,
            # An error is logged, and what people typed is not.
            hide_parameters=True,
            # No overflow: a connection for a moment costs the server more than the wait for one of
            # the pool, and nothing holds one while it wants another.
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=CONNECT_SECONDS,
            # So those that are in use stay in use, and have their statements prepared.
            pool_use_lifo=True,
            connect_args={
                "async_creator_fn": self._open,
                "timeout": self._address.connect_seconds or CONNECT_SECONDS,
                "command_timeout": self._statement_seconds,
            },
        )
        event.listen(engine.sync_engine, "do_connect", self._connect)
        _drop_dead_connections(engine)
        return engine

    def _connect(
        self,
        dialect: Any,  # noqa: ANN401 - SQLAlchemy's
        _record: object,
        args: list[Any],
        parameters: dict[str, Any],
    ) -> Any:  # noqa: ANN401 - the driver's connection
        """Connect; where a pooler shows, once more in the way that poolers can bear."""
        connection = dialect.connect(*args, **parameters, **self._statements())
        if not self.is_pooled and connection.run_async(_is_behind_a_pooler):
            self.is_pooled = True
            connection.close()
            connection = dialect.connect(*args, **parameters, **self._statements())
        if not self.is_pooled:
            connection.run_async(self._limit_session)
        return connection

    async def _limit_session(self, connection: asyncpg.Connection) -> None:
        """Not as parameters of the connection: poolers refuse those that they do not know."""
        await connection.execute(self._set_limits(is_local=False))

    async def limit(self, connection: AsyncConnection) -> None:
        """Set the limits of a transaction, where a pooler forgets those of a session."""
        if self.is_pooled:
            await connection.exec_driver_sql(self._set_limits(is_local=True))

    def _set_limits(self, *, is_local: bool) -> str:
        """The statement; names and values are those above."""
        calls = [
            f"set_config('{name}', '{value}', {str(is_local).lower()})"
            for name, value in self._limits.items()
        ]
        return f"SELECT {', '.join(calls)}"

    def _statements(self) -> dict[str, Any]:
        if self.is_pooled:
            return {"prepared_statement_cache_size": 0, "prepared_statement_name_func": _no_name}
        return {
            "prepared_statement_cache_size": STATEMENTS_KEPT,
            "prepared_statement_name_func": _unique_name,
        }

    async def _open(self, *_args: object, **parameters: Any) -> asyncpg.Connection:  # noqa: ANN401
        """Open a connection to one of the hosts, as the address says."""
        address = self._address
        given = {name: value for name, value in parameters.items() if name not in PLACE}
        settings = {**address.settings, **(given.pop("server_settings", None) or {})}
        options = dict(address.options)
        trust = None
        if options.get("sslrootcert") == TRUSTED_BY_THE_SYSTEM:
            del options["sslrootcert"]
            trust = await asyncio.to_thread(ssl.create_default_context)
        return await asyncpg.connect(
            f"postgresql:///?{urlencode(options)}" if options else None,
            host=list(address.hosts) or None,
            port=list(address.ports) if address.hosts else address.ports[0],
            user=address.user,
            password=address.password,
            database=address.database,
            server_settings=settings or None,
            ssl=trust,
            # asyncpg's own statements have no name then, and are sent whole.
            statement_cache_size=0,
            **given,
        )


def _drop_dead_connections(engine: AsyncEngine) -> None:
    """Let the pool replace a connection that is gone before anybody uses it.

    One that has ended is known without asking: this process has heard of it, or has something
    unread from the server, which says nothing unasked on a connection that nobody uses.
    """
    dialect: Any = engine.dialect

    def on_checkin(_connection: object, record: Any) -> None:  # noqa: ANN401 - the pool's
        record.info["used_at"] = time.monotonic()

    def on_checkout(connection: Any, record: Any, _fairy: object) -> None:  # noqa: ANN401
        used_at = record.info.get("used_at")
        if used_at is None:
            return
        if connection.driver_connection.is_closed():
            raise InvalidatePoolError
        was_just_used = time.monotonic() - used_at < PING_AFTER_SECONDS
        if was_just_used and not _has_something_unread(connection.driver_connection):
            return
        try:
            dialect.do_ping(connection)
        except dialect.dbapi.Error as error:
            raise InvalidatePoolError from error

    event.listen(engine.sync_engine, "checkin", on_checkin)
    event.listen(engine.sync_engine, "checkout", on_checkout)


def _has_something_unread(connection: asyncpg.Connection) -> bool:
    poll = select.poll()
    poll.register(connection._transport.get_extra_info("socket"), select.POLLIN)  # noqa: SLF001
    return bool(poll.poll(0))


async def _is_behind_a_pooler(connection: asyncpg.Connection) -> bool:
    """Whether another process answers than the one that was connected to.

    The number that a server gives with the key for cancelling is its process's. A pooler gives one
    of its own, as it has no server connection for this client yet.
    """
    answering = await connection.fetchval("SELECT pg_backend_pid()")
    return bool(answering != connection.get_server_pid())


def _unique_name() -> str:
    return f"gatehouse_{uuid.uuid4().hex}"


def _no_name() -> str:
    return ""


def _shown(address: ServerAddress) -> URL:
    """The address as SQLAlchemy and tests see it."""
    return URL.create(
        "postgresql+asyncpg",
        username=address.user,
        password=address.password,
        host=address.hosts[0] if address.hosts else None,
        port=address.ports[0],
        database=address.database,
    )
