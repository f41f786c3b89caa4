"""Causes of database failures, each with a stable name and a sentence for operators."""

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg


@dataclass(frozen=True, slots=True)
class DatabaseCause:
    """A stable name, and a sentence with the problem and the remedy, without any values."""

    code: str
    sentence: str


LOGIN = DatabaseCause(
    "database_login_refused",
    "The server rejects the user or password. Correct DATABASE_URL, or check pg_hba.conf.",
)
MISSING = DatabaseCause(
    "database_missing", "The server has no database with that name. Create it, or correct the name."
)
HOST_UNKNOWN = DatabaseCause(
    "database_host_unknown", "The host name can't be resolved. Correct the name, or fix the DNS."
)
NOT_LISTENING = DatabaseCause(
    "database_not_listening",
    "No server is listening on that host and port. Start the database, or correct DATABASE_URL.",
)
NOT_POSTGRES = DatabaseCause(
    "database_not_postgresql",
    "The server on that host and port is not PostgreSQL. Correct DATABASE_URL.",
)
TLS = DatabaseCause(
    "database_tls",
    "The TLS connection failed, or the server's certificate is not trusted."
    " Check sslmode and sslrootcert in DATABASE_URL.",
)
TIMEOUT = DatabaseCause(
    "database_timeout",
    "The database didn't respond in time. Check for a firewall, a full pooler, or an overloaded"
    " server.",
)
TOO_MANY = DatabaseCause(
    "database_too_many_connections",
    "The server has no free connections. Lower DATABASE_POOL, stop other clients, or raise the"
    " server's limit.",
)
DISK_FULL = DatabaseCause("database_disk_full", "The database's disk is full. Free some space.")
READ_ONLY = DatabaseCause(
    "database_not_writable",
    "The database is read-only. Check whether it is a standby, its disk is nearly full, or the user"
    " lacks write permission for the database, the file, or the folder.",
)
NO_FILE = DatabaseCause(
    "database_no_file",
    "The file can't be opened. Its folder must exist and be writable by the bot's user.",
)
DAMAGED = DatabaseCause(
    "database_damaged",
    "The file is damaged or not a SQLite database. Remove the old -wal and -shm files, then restore"
    " the backup.",
)
LOCKED = DatabaseCause(
    "database_locked", "Another program has locked the SQLite file. Stop that program."
)
TRANSACTION_IDLE = DatabaseCause(
    "database_transaction_idle",
    "The server ended a transaction that was idle for 10 s. Find out what suspended this process:"
    " the container, the machine, or a lack of CPU time.",
)
POOLER = DatabaseCause(
    "database_pooler",
    "A pooler between the bot and the server doesn't keep session state. Use the server's direct"
    " address, or the pooler's session mode.",
)
PARAMETER = DatabaseCause(
    "database_parameter",
    "The server or a pooler rejects a connection parameter. Remove the parameters after ? from"
    " DATABASE_URL.",
)
STARTING = DatabaseCause(
    "database_starting", "The server is starting, stopping, or in recovery. Wait, or check its log."
)
WRONG_SCHEMA = DatabaseCause(
    "database_schema",
    "The tables don't match this version's schema. Restore a backup, or report the problem.",
)
WRONG_ENCODING = DatabaseCause(
    "database_encoding",
    "The database isn't UTF-8 and can't store every name. Recreate it with ENCODING 'UTF8'.",
)
UNREACHABLE = DatabaseCause(
    "database_unreachable",
    "The database can't be reached. Check DATABASE_URL, and that the database is running.",
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A cause, its SQLSTATEs, and phrases from libpq, poolers, SQLite, or the OS that indicate it.

    Connection failures have phrases but no SQLSTATE.
    """

    cause: DatabaseCause
    states: str = ""
    words: str = ""

    def fits(self, error: BaseException) -> bool:
        """Return True if a driver or OS error has this cause."""
        if not isinstance(error, psycopg.Error | sqlite3.Error | OSError):
            return False
        state = getattr(error, "sqlstate", None)
        if state and state in self.states.split():
            return True
        return bool(self.words and re.search(self.words, str(error), re.IGNORECASE))


# The first match wins: when a connection is lost, the message names the reason first.
RULES = (
    Rule(
        NOT_POSTGRES, words=r"invalid response to \w+ negotiation|expected authentication request"
    ),
    Rule(POOLER, "26000 42P05", r"statement pooling"),
    Rule(PARAMETER, words=r"startup parameter|configuration parameter|weak sslmode"),
    Rule(TOO_MANY, "53300", r"no more connections|too many (clients|connect)|connection slots"),
    Rule(MISSING, "3D000", r"no such database|database .* does not exist"),
    Rule(
        LOGIN,
        "28000 28P01",
        r"no such user|SASL auth|password auth|role .* does not exist|no password supplied"
        r"|authentication failed|no pg_hba.conf entry(?!.*no encryption)",
    ),
    Rule(TRANSACTION_IDLE, "25P03", r"idle-in-transaction"),
    Rule(
        TLS,
        words=r"no encryption|not support SSL|SSL error(?!: unexpected)|certificate|channel bind",
    ),
    Rule(DISK_FULL, "53100", r"no space left|disk is full"),
    Rule(
        READ_ONLY, "25006 42501", r"session is (not )?read-only|hot standby|read-?only|permission"
    ),
    Rule(WRONG_ENCODING, "22021 22P05"),
    Rule(WRONG_SCHEMA, "42P01 42703", r"no such (table|column)"),
    Rule(TIMEOUT, "57014 55P03", r"timeout expired|no answer in time|timed out"),
    Rule(HOST_UNKNOWN, words=r"resolve host|could not translate host|name or service not known"),
    Rule(NOT_LISTENING, words=r"connection refused|No such file or directory|connect call failed"),
    Rule(NO_FILE, words=r"unable to open"),
    Rule(DAMAGED, words=r"not a database|malformed|corrupt"),
    Rule(LOCKED, words=r"database (table )?is locked|busy"),
    Rule(
        STARTING,
        "57P01 57P02 57P03",
        r"starting up|shutting down|terminating|closed|lost|reset|eof",
    ),
)


CODES = frozenset(cause.code for cause in (UNREACHABLE, *(rule.cause for rule in RULES)))


def cause_of(error: BaseException) -> DatabaseCause:
    """Return the cause; `UNREACHABLE` if it is unknown."""
    chain = list(_chain(error))
    if any(isinstance(cause, TimeoutError) for cause in chain):
        return TIMEOUT
    fitting = (rule.cause for rule in RULES if any(map(rule.fits, chain)))
    return next(fitting, UNREACHABLE)


def technical_cause(error: BaseException) -> str:
    """Return the driver's error class and number for the log, without the error's text."""
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
