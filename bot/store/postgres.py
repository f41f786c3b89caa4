"""Connections to PostgreSQL, directly or through a pooler. libpq parses the URLs."""

import asyncio
import os
import select
import ssl
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import psycopg
from psycopg import ProgrammingError, waiting
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from sqlalchemy import event, text
from sqlalchemy.engine import Connection as SqlConnection
from sqlalchemy.engine import Engine, ExecutionContext
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

SCHEMES = ("postgresql", "postgres")
HIGHEST_PORT = 65535
# The `sslrootcert` value for the machine's trusted certificates.
TRUSTED_BY_THE_SYSTEM = "system"
CHOICES = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "target_session_attrs": (
        "any",
        "primary",
        "standby",
        "read-write",
        "read-only",
        "prefer-standby",
    ),
    "channel_binding": ("disable", "prefer", "require"),
}
ESCAPES = "in a username or password, write / as %2F, : as %3A and @ as %40"
CONNECT_SECONDS = 5
STATEMENT_SECONDS = 10
# Routers forget idle connections, often after four minutes.
RECYCLE_SECONDS = 180
# The option of statements whose result nobody needs. PostgreSQL gets them with the next statement.
UNAWAITED = {"gatehouse_unawaited": True}
# A statement with this column tells the connection the time.
TIME = "its_time"
NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS its_time"
# Server-side timeouts that limit how long a suspended or vanished process can block others. They're
# set in each transaction that writes, because a pooler loses the settings of a session.
SERVER_LIMITS = {
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "8s",
    "statement_timeout": "12s",
    "tcp_keepalives_idle": "10s",
    "tcp_keepalives_interval": "5s",
    "tcp_keepalives_count": "2",
    "tcp_user_timeout": "15000",
}
SET_LIMITS = " || ".join(
    f"set_config('{name}', '{value}', true)" for name, value in SERVER_LIMITS.items()
)
# One statement sets the limits and asks for the time.
NOW_AND_LIMITS = f"{NOW}, {SET_LIMITS}"
_NOW = text(NOW)
# Migrations have no timeout, and wait for migrations in other processes.
NO_LIMITS = "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0"

Result = TypeVar("Result")


def connection_parameters(url: str) -> dict[str, str]:
    """Return a URL's parameters by libpq name.

    Raises:
        ValueError: The URL is invalid. The message follows the setting's name and never quotes the
            URL.
    """
    scheme, _, rest = url.partition("://")
    try:
        found = conninfo_to_dict(f"{scheme.lower()}://{rest}")
    except (ProgrammingError, UnicodeError):
        raise ValueError(f"is not an address that PostgreSQL understands ({ESCAPES})") from None
    parameters = {name: str(value) for name, value in found.items()}
    # libpq would quote these values in its errors. They might be parts of a password.
    for port in parameters.get("port", "").split(","):
        if port and not (port.isdecimal() and 0 < int(port) <= HIGHEST_PORT):
            raise ValueError(f"has a port that isn't a number from 1 to {HIGHEST_PORT} ({ESCAPES})")
    if "@" in parameters.get("host", ""):
        raise ValueError(f"has a host that contains @ ({ESCAPES})")
    if "dbname" not in parameters:
        raise ValueError(f"must include a database name ({ESCAPES})")
    _check_values(parameters)
    return parameters


def _check_values(parameters: dict[str, str]) -> None:
    """Raise ValueError for values that libpq would refuse only when it connects."""
    for name, values in CHOICES.items():
        if parameters.get(name, values[0]) not in values:
            raise ValueError(f"has an invalid {name}: it must be one of {', '.join(values)}")
    if not parameters.get("connect_timeout", "0").isdecimal():
        raise ValueError("has a connect_timeout that isn't a whole number of seconds")
    for name in ("sslrootcert", "sslcert", "sslkey", "sslcrl"):
        path = parameters.get(name, TRUSTED_BY_THE_SYSTEM)
        if path != TRUSTED_BY_THE_SYSTEM and not Path(path).is_file():
            raise ValueError(f"sets {name} to a file that doesn't exist")


class Connection(psycopg.AsyncConnection[Any]):
    """A connection with a client-side timeout, in case the server doesn't respond.

    Statements that nobody waits for are kept in `unsent`, and sent with the next statement or with
    the commit, in one round trip. psycopg sees the connection in autocommit mode, because it would
    wait for the answer to its own BEGIN.

    `began_at` is the server's time when the transaction began, or when it got the last lock that it
    waited for, in microseconds since 1970. If `is_ending` is True, COMMIT is sent with the next
    statement. If `has_ended` is True, it was, and any other statement would be outside of the
    transaction. If `is_unhurried` is True, the transaction has no timeout.
    """

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as in the base class
        super().__init__(*args, **options)
        self.unsent: list[str] = []
        self._binder = psycopg.AsyncClientCursor(self)
        self.began_at: int | None
        self.begin()

    def begin(self, *statements: str) -> None:
        """Begin a transaction with these statements, which are sent with its first statement."""
        self.unsent += statements
        self.began_at = None
        self.is_ending = False
        self.has_ended = False
        self.is_unhurried = False

    def bind(self, statement: str, parameters: Any) -> str:  # noqa: ANN401 - as in the base class
        """Return a statement with its parameters in it."""
        return self._binder.mogrify(statement.encode(), parameters)

    def require_open(self) -> None:
        """Raise RuntimeError if COMMIT was sent with an earlier statement."""
        if self.has_ended:
            raise RuntimeError("The COMMIT was already sent, so this statement would be alone.")

    def take_unsent(self, *more: str) -> bytes:
        """Return the unsent statements and these as one text. Nothing is unsent after that."""
        statements = [*self.unsent, *more]
        self.unsent.clear()
        return "; ".join(statements).encode()

    async def commit(self) -> None:
        """Commit the transaction, together with its unsent statements."""
        if self.unsent:
            await psycopg.AsyncCursor(self).execute(self.take_unsent("COMMIT"))
        elif not self.has_ended:
            await super().commit()
        self.has_ended = False

    async def rollback(self) -> None:
        """Roll back the transaction, and forget its unsent statements.

        The pool asks for this after each use, even after a commit.
        """
        self.unsent.clear()
        self.has_ended = False
        if self.pgconn.transaction_status != TransactionStatus.IDLE:
            await super().rollback()

    async def wait(
        self,
        gen: PQGen[Result],
        interval: float = 0.1,
        timeout: float | None = None,  # noqa: ASYNC109 - as in the base class
    ) -> Result:
        """Wait for the server. After a timeout, close the connection without telling the server."""
        try:
            async with asyncio.timeout(None if self.is_unhurried else STATEMENT_SECONDS):
                return await waiting.wait_async(gen, self.pgconn.socket, interval, timeout)
        except TimeoutError:
            self.pgconn.finish()
            raise psycopg.errors.ConnectionTimeout("no answer in time") from None
        except asyncio.CancelledError:
            self.pgconn.finish()
            raise


class Cursor(psycopg.AsyncCursor[Any]):
    """A cursor that sends a statement together with those that its connection hasn't sent yet."""

    connection: Connection

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Self:  # noqa: ANN401
        """Execute a statement."""
        connection = self.connection
        connection.require_open()
        unsent = list(connection.unsent)
        connection.has_ended = connection.is_ending
        if not unsent and not connection.is_ending:
            return await super().execute(query, params, **options)
        statements = [connection.bind(query, params)]
        if connection.is_ending:
            statements.append("COMMIT")
        await super().execute(connection.take_unsent(*statements))
        for _ in unsent:
            if self.description and self.description[0].name == TIME:
                for row in await self.fetchall():
                    connection.began_at = row[0]
            self.nextset()
        return self

    async def executemany(self, *args: Any, **options: Any) -> None:  # noqa: ANN401
        """Execute a statement with each of several sets of parameters."""
        self.connection.require_open()
        if self.connection.unsent:
            await super().execute(self.connection.take_unsent())
        await super().executemany(*args, **options)


def send_together(engine: Engine) -> None:
    """Send BEGIN, and statements with the option `UNAWAITED`, together with the next statement.

    The server's time is asked with BEGIN, because most transactions need it.
    """

    def connection_of(connection: SqlConnection) -> Connection:
        return cast("Connection", connection.connection.driver_connection)

    def on_begin(connection: SqlConnection) -> None:
        options = connection.get_execution_options()
        driver = connection_of(connection)
        if options.get("gatehouse_alone"):
            driver.begin()
        elif options.get("gatehouse_reads"):
            driver.begin("BEGIN ISOLATION LEVEL REPEATABLE READ", NOW)
        else:
            driver.begin("BEGIN", NOW_AND_LIMITS)

    def on_execute(_: object, statement: str, values: object, context: ExecutionContext) -> bool:
        is_unawaited = bool(context.execution_options.get("gatehouse_unawaited"))
        if is_unawaited:
            connection = connection_of(context.root_connection)
            connection.require_open()
            connection.unsent.append(connection.bind(statement, values))
        return is_unawaited

    event.listen(engine, "begin", on_begin)
    event.listen(engine, "do_execute", on_execute)


async def driver_of(connection: AsyncConnection) -> Connection:
    """Return the driver's connection behind SQLAlchemy's."""
    return cast("Connection", (await connection.get_raw_connection()).driver_connection)


async def server_time(connection: AsyncConnection) -> int:
    """Return the server's time when the transaction began, in microseconds since 1970."""
    began_at = (await driver_of(connection)).began_at if connection.in_transaction() else None
    return began_at or await connection.scalar(_NOW) or 0


def ping_when_in_doubt(engine: Engine) -> None:
    """Test a connection if the server has sent something, as a server that shuts down does.

    SQLAlchemy's `pool_pre_ping` would test connections before every transaction, which takes a
    round trip.
    """

    def on_checkout(connection: Any, _record: object, _proxy: object) -> None:  # noqa: ANN401
        heard = select.poll()
        heard.register(connection.driver_connection.pgconn.socket, select.POLLIN)
        if not heard.poll(0):
            return
        try:
            engine.dialect.do_ping(connection)
        except psycopg.Error as error:
            raise DisconnectionError from error

    event.listen(engine, "checkout", on_checkout)


def postgres_engine(url: str, pool_size: int) -> AsyncEngine:
    """Return an engine for PostgreSQL, which might be behind a pooler.

    Statements aren't prepared, because transaction-level poolers don't support that.
    """
    parameters: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        **connection_parameters(url),
        # The server converts, even if its own encoding is another.
        "client_encoding": "UTF8",
    }
    if parameters.get("sslrootcert") == TRUSTED_BY_THE_SYSTEM:
        # Point libpq's bundled OpenSSL at the machine's trusted certificates.
        paths = ssl.get_default_verify_paths()
        for name, path in (("SSL_CERT_FILE", paths.cafile), ("SSL_CERT_DIR", paths.capath)):
            if path:
                os.environ.setdefault(name, path)

    async def connect() -> Connection:
        return await Connection.connect(
            autocommit=True, prepare_threshold=None, cursor_factory=Cursor, **parameters
        )

    engine = create_async_engine(
        "postgresql+psycopg://",
        async_creator=connect,
        use_native_hstore=False,
        # Also report the row count for INSERT.
        execution_options={"preserve_rowcount": True},
        # Keep people's input out of error messages, because errors are logged.
        hide_parameters=True,
        # Don't allow overflow: opening a short-lived connection costs more than waiting for the
        # pool, and no code holds one connection while it waits for another.
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=CONNECT_SECONDS,
        pool_recycle=RECYCLE_SECONDS,
        pool_use_lifo=True,
    )
    ping_when_in_doubt(engine.sync_engine)
    send_together(engine.sync_engine)
    return engine


async def lift_limits(connection: AsyncConnection) -> None:
    """Let a connection's present transaction take any time."""
    (await driver_of(connection)).is_unhurried = True
    await connection.exec_driver_sql(NO_LIMITS)
