"""Why the database failed, in a word that operators can look up."""

import asyncio
import errno
import sqlite3

import psycopg
import pytest
from psycopg import errors

from bot.errors import DatabaseUnavailable
from bot.ops.clock import SystemClock
from bot.store.causes import cause_of, technical_cause
from bot.store.engine import Database


def wrapped(error: BaseException) -> BaseException:
    """Return the error as it arrives, inside SQLAlchemy's."""
    outer = RuntimeError("outer")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidPassword("password"), "database_login_refused"),
        (errors.TooManyConnections("sorry"), "database_too_many_connections"),
        (errors.DiskFull("could not extend file"), "database_disk_full"),
        (errors.ReadOnlySqlTransaction("cannot execute"), "database_not_writable"),
        (errors.InvalidSqlStatementName("prepared statement x"), "database_pooler"),
        (errors.CannotConnectNow("x"), "database_starting"),
        (errors.AdminShutdown("x"), "database_starting"),
        (errors.IdleInTransactionSessionTimeout("x"), "database_transaction_idle"),
        (errors.LockNotAvailable("x"), "database_timeout"),
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


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ('FATAL:  password authentication failed for user "x"', "database_login_refused"),
        ('FATAL:  role "x" does not exist', "database_login_refused"),
        ("FATAL:  SASL authentication failed", "database_login_refused"),
        ('FATAL:  database "x" does not exist', "database_missing"),
        ("FATAL:  no such database: x", "database_missing"),
        ("FATAL:  sorry, too many clients already", "database_too_many_connections"),
        ("ERROR: no more connections allowed (max_client_conn)", "database_too_many_connections"),
        ('FATAL: too many connections for role "x"', "database_too_many_connections"),
        ("FATAL: unsupported startup parameter: options", "database_parameter"),
        ("FATAL: the database system is starting up", "database_starting"),
        ("server closed the connection unexpectedly", "database_starting"),
        ("SSL error: unexpected eof while reading", "database_starting"),
        ("server does not support SSL, but SSL was required", "database_tls"),
        ("SSL error: certificate verify failed", "database_tls"),
        ("failed to resolve host 'x': [Errno -2] Name", "database_host_unknown"),
        ("failed: Connection refused", "database_not_listening"),
        ("connection timeout expired", "database_timeout"),
        ("session is read-only", "database_not_writable"),
        ("ERROR: transaction blocks not allowed in statement pooling mode", "database_pooler"),
    ],
)
def test_cause_of_a_connection_is_read_from_its_words(words: str, code: str) -> None:
    assert cause_of(wrapped(psycopg.OperationalError(f"connection failed: {words}"))).code == code


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"[\0\0\0\n10.11"])
async def test_server_of_another_kind_is_named(answer: bytes) -> None:
    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await reader.read(100)
        writer.close()

    async with await asyncio.start_server(answers, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        database = Database(f"postgresql://postgres@127.0.0.1:{port}/x", SystemClock())
        with pytest.raises(DatabaseUnavailable) as raised:
            await database.now()
        await database.close()
    assert cause_of(raised.value).code == "database_not_postgresql"


def test_technical_cause_holds_no_value() -> None:
    error = errors.InvalidPassword('password authentication failed for user "ada"')
    assert technical_cause(wrapped(error)) == "InvalidPassword 28P01"
