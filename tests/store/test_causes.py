"""Why the database failed, in a word that operators can look up."""

import errno
import inspect
import re
import sqlite3

import asyncpg
import pytest

from bot.store import causes
from bot.store.causes import cause_of, technical_cause


def wrapped(error: BaseException) -> BaseException:
    """The error as it arrives: inside those of the driver's adapter and of SQLAlchemy."""
    outer = RuntimeError("outer")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (asyncpg.InvalidPasswordError("password authentication failed"), "database_login_refused"),
        (
            asyncpg.TooManyConnectionsError("sorry, too many clients"),
            "database_too_many_connections",
        ),
        (
            asyncpg.ProtocolViolationError("no more connections allowed (max_client_conn)"),
            "database_too_many_connections",
        ),
        (
            asyncpg.ProtocolViolationError("unsupported startup parameter: options"),
            "database_parameter",
        ),
        (asyncpg.DiskFullError("could not extend file"), "database_disk_full"),
        (asyncpg.ReadOnlySQLTransactionError("cannot execute"), "database_not_writable"),
        (asyncpg.InvalidSQLStatementNameError("prepared statement x"), "database_pooler"),
        (asyncpg.CannotConnectNowError("starting up"), "database_starting"),
        (OSError(errno.ENOSPC, "No space left on device"), "database_disk_full"),
        (TimeoutError(), "database_timeout"),
        (sqlite3.OperationalError("database or disk is full"), "database_disk_full"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "database_not_writable"),
        (sqlite3.DatabaseError("database disk image is malformed"), "database_damaged"),
        (sqlite3.OperationalError("database is locked"), "database_locked"),
        (ValueError("anything"), "database_unreachable"),
    ],
)
def test_cause_is_found_under_its_wrappers(error: BaseException, code: str) -> None:
    assert cause_of(wrapped(error)).code == code


def test_lost_connection_is_named_by_what_the_server_said_first() -> None:
    lost = asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
    lost.__cause__ = asyncpg.IdleInTransactionSessionTimeoutError("terminating connection")
    assert cause_of(wrapped(lost)).code == "database_transaction_idle"
    lost.__cause__ = asyncpg.AdminShutdownError("terminating connection")
    assert cause_of(wrapped(lost)).code == "database_starting"


def test_every_named_error_is_one_of_the_driver() -> None:
    named = re.findall(r'"([A-Z][a-z]+[A-Za-z]+)"', inspect.getsource(causes))
    assert len(named) > 10
    assert [name for name in named if not hasattr(asyncpg, name)] == []


def test_technical_cause_holds_no_value() -> None:
    error = asyncpg.InvalidPasswordError('password authentication failed for user "ada"')
    assert technical_cause(wrapped(error)) == "InvalidPasswordError 28P01"
