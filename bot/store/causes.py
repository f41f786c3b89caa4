"""Causes of database failures, each with a stable name and a sentence for operators."""

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg


@dataclass(frozen=True, slots=True)
class DatabaseCause:
    """A cause of database failures. `sentence` describes the problem and how to fix it.

    `code` is stable. `sentence` never quotes settings or data. `states` lists SQLSTATEs. `words` is
    a regular expression for error messages from libpq, poolers, SQLite, or the OS, because
    connection failures have no SQLSTATE.
    """

    code: str
    sentence: str
    states: str = ""
    words: str = ""

    def fits(self, error: BaseException) -> bool:
        """Return True if the error comes from a driver or the OS and matches this cause."""
        if not isinstance(error, psycopg.Error | sqlite3.Error | OSError):
            return False
        state = getattr(error, "sqlstate", None)
        if state and state in self.states.split():
            return True
        return bool(self.words and re.search(self.words, str(error), re.IGNORECASE))


TIMEOUT = DatabaseCause(
    "database_timeout",
    "The database didn't respond in time. Check the firewall, the pooler, and the server load.",
    "57014 55P03",
    r"timeout expired|no answer in time|timed out",
)
TOO_MANY = DatabaseCause(
    "database_too_many_connections",
    "The server has no free connections. Lower DATABASE_POOL, or raise the server's limit.",
    "53300",
    r"no more connections|too many (clients|connect)|connection slots",
)
WRONG_ENCODING = DatabaseCause(
    "database_encoding",
    "The database isn't UTF-8 and can't store every name. Recreate it with ENCODING 'UTF8'.",
    "22021 22P05",
)
UNREACHABLE = DatabaseCause(
    "database_unreachable",
    "The database can't be reached. Check DATABASE_URL, and make sure the database is running.",
)
# The first match wins, so specific causes come before general causes such as a lost connection.
CAUSES = (
    DatabaseCause(
        "database_not_postgresql",
        "The server on that host and port is not PostgreSQL. Correct DATABASE_URL.",
        words=r"invalid response to \w+ negotiation|expected authentication request",
    ),
    DatabaseCause(
        "database_pooler",
        "The pooler doesn't keep session state. Use session mode, or connect without the pooler.",
        "26000 42P05",
        r"statement pooling",
    ),
    DatabaseCause(
        "database_parameter",
        "The server rejects a parameter. Remove the parameters after ? from DATABASE_URL.",
        words=r"startup parameter|configuration parameter|weak sslmode",
    ),
    TOO_MANY,
    DatabaseCause(
        "database_missing",
        "The server has no database with that name. Create it, or correct the name.",
        "3D000",
        r"no such database|database .* does not exist",
    ),
    DatabaseCause(
        "database_login_refused",
        "The server rejects the username or password. Correct DATABASE_URL, or check pg_hba.conf.",
        "28000 28P01",
        r"no such user|SASL auth|password auth|role .* does not exist|no password supplied"
        r"|authentication failed|no pg_hba.conf entry(?!.*no encryption)",
    ),
    DatabaseCause(
        "database_transaction_idle",
        "The server ended a transaction that had been idle for 10 s. Find out why the bot stalled.",
        "25P03",
        r"idle-in-transaction",
    ),
    DatabaseCause(
        "database_tls",
        "TLS failed, or the certificate isn't trusted. Check sslmode and sslrootcert.",
        words=r"no encryption|not support SSL|SSL error(?!: unexpected)|certificate|channel bind",
    ),
    DatabaseCause(
        "database_disk_full",
        "The database's disk is full. Free some space.",
        "53100",
        r"no space left|disk is full",
    ),
    DatabaseCause(
        "database_not_writable",
        "The database is read-only. Connect to the primary, free disk space, or fix permissions.",
        "25006 42501",
        r"session is (not )?read-only|hot standby|read-?only|permission",
    ),
    WRONG_ENCODING,
    DatabaseCause(
        "database_schema",
        "The tables don't match this version's schema. Restore a backup, or report the problem.",
        "42P01 42703",
        r"no such (table|column)",
    ),
    TIMEOUT,
    DatabaseCause(
        "database_host_unknown",
        "The host name can't be resolved. Correct the name, or fix DNS.",
        words=r"resolve host|could not translate host|name or service not known",
    ),
    DatabaseCause(
        "database_not_listening",
        "No server is listening at that address. Start the database, or correct DATABASE_URL.",
        words=r"connection refused|No such file or directory|connect call failed",
    ),
    DatabaseCause(
        "database_no_file",
        "The file can't be opened. Its folder must exist and be writable by the bot's user.",
        words=r"unable to open",
    ),
    DatabaseCause(
        "database_damaged",
        "The file is damaged. Remove the old -wal and -shm files, then restore a backup.",
        words=r"not a database|malformed|corrupt",
    ),
    DatabaseCause(
        "database_locked",
        "Another program has locked the SQLite file. Stop that program.",
        words=r"database (table )?is locked|busy",
    ),
    DatabaseCause(
        "database_starting",
        "The server is starting, stopping, or in recovery. Wait, or check its log.",
        "57P01 57P02 57P03",
        r"starting up|shutting down|terminating|closed|lost|reset|eof",
    ),
)


def cause_of(error: BaseException) -> DatabaseCause:
    """Return the cause of an error, or `UNREACHABLE` if no known cause matches."""
    chain = list(_chain(error))
    if any(isinstance(cause, TimeoutError) for cause in chain):
        return TIMEOUT
    fitting = (cause for cause in CAUSES if any(map(cause.fits, chain)))
    return next(fitting, UNREACHABLE)


def technical_cause(error: BaseException) -> str:
    """Return the driver's error class and number for the log, without the error message."""
    deepest = list(_chain(error))[-1]
    number = getattr(deepest, "sqlstate", None) or getattr(deepest, "errno", None)
    name = getattr(deepest, "sqlite_errorname", None) or type(deepest).__name__
    return f"{name} {number}" if number else str(name)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = getattr(current, "orig", None) or current.__cause__
