"""Causes of database failures, each with a stable name and a sentence for operators.

A cause is recognized by its number or name (SQLSTATE, SQLite's error name, errno) and never by the
words of an error message, which depend on the server's language. libpq reports failures to connect
without a number, so these have the driver's own words instead.
"""

import errno
import socket
import sqlite3
from dataclasses import dataclass, replace

import psycopg

from bot.ops.redaction import on_one_line

LONGEST_LINE = 300
DRIVER_ERRORS = (psycopg.Error, sqlite3.Error, OSError)


@dataclass(frozen=True)
class DatabaseCause:
    """A cause of database failures. `sentence` describes the problem and how to fix it.

    `code` is stable. `sentence` never quotes settings or data, so everyone can read it. `detail` is
    the first line of the driver's error if the cause is unknown, for those who run the bot. `names`
    lists SQLSTATEs, SQLite's error names, and names of errnos.
    """

    code: str
    sentence: str
    names: str = ""
    detail: str = ""

    @property
    def explanation(self) -> str:
        """The sentence for those who run the bot, with the driver's words if there are any."""
        return f"{REFUSAL}: {self.detail}" if self.detail else self.sentence


TIMEOUT = DatabaseCause(
    "database_timeout",
    "The database didn't respond in time. Check the firewall, the pooler, and the server load.",
    "57014 55P03 ETIMEDOUT",
)
NO_FILE = DatabaseCause(
    "database_no_file",
    "The file can't be opened. Its folder must exist and be writable by the bot's user.",
    "SQLITE_CANTOPEN ENOENT ENOTDIR",
)
REFUSAL = "The database can't be reached, or it refused the operation"
UNKNOWN_CAUSE = DatabaseCause("database_refused", f"{REFUSAL}. Ask whoever runs Gatehouse.")
CAUSES = (
    DatabaseCause(
        "database_pooler",
        "The pooler doesn't keep session state. Use session mode, or connect without the pooler.",
        "26000 42P05",
    ),
    DatabaseCause(
        "database_transaction_idle",
        "The server ended a transaction that had been idle for 10 s. Find out why the bot stalled.",
        "25P03",
    ),
    DatabaseCause(
        "database_disk_full",
        "The database's disk is full. Free some space.",
        "53100 SQLITE_FULL ENOSPC EDQUOT",
    ),
    DatabaseCause(
        "database_not_writable",
        "The database is read-only. Connect to the primary, free up disk space, or fix"
        " permissions.",
        "25006 SQLITE_READONLY SQLITE_PERM EROFS EACCES EPERM",
    ),
    DatabaseCause(
        "database_permission",
        "The database user lacks a permission. Make this user the owner of the database with"
        " ALTER DATABASE … OWNER TO ….",
        "42501",
    ),
    DatabaseCause(
        "database_encoding",
        "The database doesn't use UTF-8, so it can't store every name. Recreate the database with"
        " ENCODING 'UTF8'.",
        "22021 22P05",
    ),
    DatabaseCause(
        "database_schema",
        "The tables don't match this version's schema. Restore a backup, or report the problem.",
        "42P01 42703",
    ),
    TIMEOUT,
    NO_FILE,
    DatabaseCause(
        "database_damaged",
        "The file is damaged. Remove the old -wal and -shm files, then restore a backup.",
        "SQLITE_CORRUPT SQLITE_NOTADB",
    ),
    DatabaseCause(
        "database_locked",
        "Another program has locked the SQLite file. Stop that program.",
        "SQLITE_BUSY SQLITE_LOCKED",
    ),
    DatabaseCause(
        "database_starting",
        "The server is starting, stopping, or in recovery. Wait, or check the server's log.",
        "57P01 57P02 57P03 ECONNRESET EPIPE",
    ),
)
_BY_NAME = {name: cause for cause in CAUSES for name in cause.names.split()}


def cause_of(error: BaseException) -> DatabaseCause:
    """Return the cause of an error. An unknown one has the driver's words."""
    root, name, words = _driver_error(error)
    if isinstance(root, TimeoutError | psycopg.errors.ConnectionTimeout):
        return TIMEOUT
    # SQLite's extended names begin with the name of the error.
    short = "_".join(name.split("_")[:2])
    cause = _BY_NAME.get(name) or _BY_NAME.get(short)
    return cause or replace(UNKNOWN_CAUSE, detail=words)


def technical_cause(error: BaseException) -> str:
    """Return the name or number of the driver's error for the log, and its first line."""
    root, name, words = _driver_error(error)
    return f"{name or type(root).__name__} {words}".strip()


def _driver_error(error: BaseException) -> tuple[BaseException, str, str]:
    """Return the driver's error, which other errors wrap, its name or number, and its first line.

    The line has no parameters and no detail.
    """
    while not isinstance(error, DRIVER_ERRORS) and error.__cause__ is not None:
        error = error.__cause__
    name = None
    if isinstance(error, psycopg.Error):
        name = error.sqlstate
    elif isinstance(error, sqlite3.Error):
        name = getattr(error, "sqlite_errorname", None)
    elif isinstance(error, OSError) and not isinstance(error, socket.gaierror):
        name = errno.errorcode.get(error.errno or 0)
    words = ""
    if isinstance(error, DRIVER_ERRORS):
        words = on_one_line(str(error).strip().partition("\n")[0])[:LONGEST_LINE]
    return error, name or "", words
