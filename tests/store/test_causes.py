"""Tests that each kind of database error has a code that operators can look up."""

import asyncio
import errno
import sqlite3

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import OperationalError

from bot.errors import DatabaseUnavailable
from bot.ops.clock import SystemClock
from bot.store.causes import cause_of, technical_cause
from bot.store.engine import Database


def wrapped(error: BaseException) -> BaseException:
    """Wrap `error` in another exception, as SQLAlchemy does."""
    outer = RuntimeError("outer")
    outer.__cause__ = error
    return outer


def sqlite_error(name: str, words: str = "Wort") -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(words)
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.DiskFull("x"), "database_disk_full"),
        (errors.ReadOnlySqlTransaction("x"), "database_not_writable"),
        (errors.InsufficientPrivilege("x"), "database_permission"),
        (errors.InvalidSqlStatementName("x"), "database_pooler"),
        (errors.CannotConnectNow("x"), "database_starting"),
        (errors.AdminShutdown("x"), "database_starting"),
        (errors.IdleInTransactionSessionTimeout("x"), "database_transaction_idle"),
        (errors.LockNotAvailable("x"), "database_timeout"),
        (errors.ConnectionTimeout("x"), "database_timeout"),
        (TimeoutError(), "database_timeout"),
        (OSError(errno.ENOSPC, "Kein Platz"), "database_disk_full"),
        (OSError(errno.EROFS, "Nur lesbar"), "database_not_writable"),
        (sqlite_error("SQLITE_FULL"), "database_disk_full"),
        (sqlite_error("SQLITE_READONLY_DBMOVED"), "database_not_writable"),
        (sqlite_error("SQLITE_CORRUPT_INDEX"), "database_damaged"),
        (sqlite_error("SQLITE_NOTADB"), "database_damaged"),
        (sqlite_error("SQLITE_BUSY_SNAPSHOT"), "database_locked"),
        (sqlite_error("SQLITE_CANTOPEN"), "database_no_file"),
        (ValueError("anything"), "database_refused"),
    ],
)
def test_cause_is_found_under_its_wrappers(error: BaseException, code: str) -> None:
    assert cause_of(wrapped(error)).code == code


@pytest.mark.parametrize(
    "words",
    [
        'FATAL:  password authentication failed for user "x"',
        "FATAL:  Passwort-Authentifizierung für Benutzer »x« fehlgeschlagen",
        "FATAL:  Datenbank »x« existiert nicht",
        "FATAL:  tut mir leid, schon zu viele Verbindungen",
        "server does not support SSL, but SSL was required",
    ],
)
def test_an_unknown_cause_is_logged_in_the_drivers_words(words: str) -> None:
    text = f"connection failed: {words}\nDETAIL: a value\nLINE 1: SELECT"
    cause = cause_of(wrapped(psycopg.OperationalError(text)))
    assert cause.code == "database_refused"
    assert cause.explanation.endswith(f": connection failed: {words}")
    assert words not in cause.sentence
    assert "Ask whoever runs Gatehouse" in cause.sentence


def test_words_of_sqlalchemy_are_never_shown() -> None:
    outer = OperationalError("SELECT secret", {"p": "secret"}, psycopg.OperationalError("why"))
    # SQLAlchemy raises its own error from the driver's.
    outer.__cause__ = outer.orig
    assert cause_of(wrapped(outer)).detail == "why"
    assert "secret" not in technical_cause(wrapped(outer))


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"[\0\0\0\n10.11"])
async def test_an_unrelated_server_is_reported_with_its_port_and_no_password(
    answer: bytes, monkeypatch
) -> None:
    monkeypatch.setattr("bot.store.engine.RETRY_SECONDS", 0.1)

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await reader.read(100)
        writer.close()

    async with await asyncio.start_server(answers, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        database = Database(f"postgresql://postgres:word@127.0.0.1:{port}/x", SystemClock())
        with pytest.raises(DatabaseUnavailable) as raised:
            await database.now()
        await database.close()
    cause = cause_of(raised.value)
    assert f"port {port}" in cause.detail
    assert "word" not in cause.detail


def test_technical_cause_has_the_number_and_the_first_line() -> None:
    error = errors.InvalidPassword("refused\nDETAIL: more")
    assert technical_cause(wrapped(error)) == "28P01 refused"
