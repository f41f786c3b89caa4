"""Why the database did not do what was asked, in a word and a sentence for whoever operates it."""

import re
import socket
import sqlite3
import ssl
from collections.abc import Callable, Iterator

from bot.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DatabaseCause:
    """A stable word, and a sentence that says what is wrong and what to do; never any value."""

    code: str
    sentence: str


LOGIN = DatabaseCause(
    "database_login_refused",
    "The server refuses the user or the password. Correct DATABASE_URL, and see pg_hba.conf.",
)
MISSING = DatabaseCause(
    "database_missing", "The server has no database of that name. Create it, or correct the name."
)
HOST_UNKNOWN = DatabaseCause(
    "database_host_unknown", "The host's name cannot be resolved. Correct it, or mend the DNS."
)
NOT_LISTENING = DatabaseCause(
    "database_not_listening",
    "Nothing listens at that host and port. Start the database, or correct DATABASE_URL.",
)
TLS = DatabaseCause(
    "database_tls",
    "No TLS connection could be made, or the server's certificate is not trusted."
    " See sslmode and sslrootcert in DATABASE_URL.",
)
TIMEOUT = DatabaseCause(
    "database_timeout",
    "The database did not answer in time. A firewall, a full pooler, or a server with too much"
    " to do.",
)
TOO_MANY = DatabaseCause(
    "database_too_many_connections",
    "The server has no connection left. Lower DATABASE_POOL, stop other clients, or raise the"
    " server's limit.",
)
DISK_FULL = DatabaseCause("database_disk_full", "The database's disk is full. Make room on it.")
READ_ONLY = DatabaseCause(
    "database_not_writable",
    "The database can be read but not written: a standby, a server whose disk is nearly full, or"
    " missing rights of the user, the file or its folder.",
)
NO_FILE = DatabaseCause(
    "database_no_file",
    "The file cannot be opened. Its folder must be there and writable for the bot's user.",
)
DAMAGED = DatabaseCause(
    "database_damaged",
    "The file is no SQLite database, or it is damaged. Restore the backup, and remove the old -wal"
    " and -shm files first.",
)
LOCKED = DatabaseCause(
    "database_locked", "Another program holds the lock of the SQLite file. End it."
)
TRANSACTION_IDLE = DatabaseCause(
    "database_transaction_idle",
    "The server ended a transaction in which this process did nothing for 10 s. Find out what"
    " stopped the process: its container, its machine, or too little processor time.",
)
POOLER = DatabaseCause(
    "database_pooler",
    "Something between the bot and the server does not keep what belongs to a connection. Use the"
    " direct address, or the pooler's session mode.",
)
PARAMETER = DatabaseCause(
    "database_parameter",
    "The server or a pooler refuses a parameter of the connection. Take what follows the ? out of"
    " DATABASE_URL.",
)
STARTING = DatabaseCause(
    "database_starting", "The server is starting, stopping, or in recovery. Wait, or see its log."
)
WRONG_SCHEMA = DatabaseCause(
    "database_schema",
    "The tables are not as this version made them. Restore a backup, or report it.",
)
WRONG_ENCODING = DatabaseCause(
    "database_encoding",
    "The database is not UTF-8 and cannot hold every name. Create it anew with ENCODING 'UTF8'.",
)
UNREACHABLE = DatabaseCause(
    "database_unreachable",
    "The database cannot be reached. Check DATABASE_URL, and that it is running.",
)

Test = Callable[[BaseException], bool]


def is_of_postgres(error: BaseException | None, *names: str) -> bool:
    """Whether it is one of these errors of asyncpg, which is not loaded on SQLite."""
    return any(
        kind.__name__ in names and kind.__module__.startswith("asyncpg.")
        for kind in type(error).__mro__
    )


def _is_postgres(*names: str) -> Test:
    return lambda error: is_of_postgres(error, *names)


def _postgres_says(pattern: str) -> Test:
    expression = re.compile(pattern, re.IGNORECASE)
    return lambda error: (
        is_of_postgres(error, "PostgresError") and bool(expression.search(str(error)))
    )


def _is(*kinds: type[BaseException]) -> Test:
    return lambda error: isinstance(error, kinds)


def _says(kind: type[BaseException], pattern: str) -> Test:
    expression = re.compile(pattern, re.IGNORECASE)
    return lambda error: isinstance(error, kind) and bool(expression.search(str(error)))


# The first that fits any error of the chain: a lost connection says that it is lost, and then why.
CAUSES: tuple[tuple[Test, DatabaseCause], ...] = (
    (_postgres_says(r"startup parameter|configuration parameter"), PARAMETER),
    (_postgres_says(r"no more connections|too many (clients|connect)"), TOO_MANY),
    (_is_postgres("TooManyConnectionsError"), TOO_MANY),
    # PgBouncer tells of a wrong user or database by a protocol error of its own.
    (_postgres_says(r"no such database"), MISSING),
    (_postgres_says(r"no such user|SASL auth|password auth"), LOGIN),
    (_postgres_says(r"no encryption|SSL (required|off)"), TLS),
    (_is_postgres("InvalidAuthorizationSpecificationError"), LOGIN),
    (_is_postgres("InvalidCatalogNameError"), MISSING),
    (_is_postgres("DiskFullError"), DISK_FULL),
    (_is_postgres("ReadOnlySQLTransactionError", "InsufficientPrivilegeError"), READ_ONLY),
    (_is_postgres("TargetServerAttributeNotMatched"), READ_ONLY),
    (_postgres_says(r"prepared statement"), POOLER),
    (_is_postgres("IdleInTransactionSessionTimeoutError"), TRANSACTION_IDLE),
    (_is_postgres("CannotConnectNowError", "AdminShutdownError"), STARTING),
    (_is_postgres("CrashShutdownError", "ConnectionDoesNotExistError"), STARTING),
    (
        _is_postgres("UntranslatableCharacterError", "CharacterNotInRepertoireError"),
        WRONG_ENCODING,
    ),
    (_is_postgres("QueryCanceledError"), TIMEOUT),
    (_is_postgres("UndefinedTableError", "UndefinedColumnError"), WRONG_SCHEMA),
    (_is_postgres("ClientConfigurationError"), PARAMETER),
    (_is(socket.gaierror), HOST_UNKNOWN),
    (_is(ssl.SSLError, ssl.CertificateError), TLS),
    (_says(ConnectionError, r"SSL"), TLS),
    (_is(ConnectionRefusedError), NOT_LISTENING),
    (_says(OSError, r"connect call failed"), NOT_LISTENING),
    (_is(FileNotFoundError), NOT_LISTENING),
    (_is(TimeoutError), TIMEOUT),
    (_says(OSError, r"no space left"), DISK_FULL),
    (_says(sqlite3.Error, r"disk is full|no space left"), DISK_FULL),
    (_says(sqlite3.Error, r"read-?only|permission denied"), READ_ONLY),
    (_says(sqlite3.Error, r"unable to open"), NO_FILE),
    (_says(sqlite3.Error, r"not a database|malformed|corrupt"), DAMAGED),
    (_says(sqlite3.Error, r"locked|busy"), LOCKED),
    (_says(sqlite3.Error, r"no such (table|column)"), WRONG_SCHEMA),
)


CODES = frozenset(
    cause.code for cause in (UNREACHABLE, WRONG_ENCODING, *(cause for _, cause in CAUSES))
)


def cause_of(error: BaseException) -> DatabaseCause:
    """Return why; `UNREACHABLE` where nothing more is known."""
    chain = list(_chain(error))
    fitting = (cause for fits, cause in CAUSES if any(map(fits, chain)))
    return next(fitting, UNREACHABLE)


def technical_cause(error: BaseException) -> str:
    """Return the driver's own name for it, for the log: a class and a number, never its text."""
    deepest = list(_chain(error))[-1]
    number = getattr(deepest, "sqlstate", None) or getattr(deepest, "errno", None)
    name = getattr(deepest, "sqlite_errorname", None) or type(deepest).__name__
    return f"{name} {number}" if number else str(name)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it: SQLAlchemy, its driver's wrapper, the driver, the system."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = getattr(current, "orig", None) or current.__cause__
