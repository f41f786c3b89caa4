"""The pool of connections to PostgreSQL: none that is dead is used, and few are asked first."""

import asyncio
import threading
from collections import Counter

import pytest
from sqlalchemy import text

from bot.ops.clock import SystemClock
from bot.store import postgres
from bot.store.engine import Database
from tests.support.postgres import connect

pytestmark = pytest.mark.postgres

WHO = text("SELECT pg_backend_pid()")
END_OTHERS = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture
async def database(postgres_url):
    database = Database(postgres_url, SystemClock())
    yield database
    await database.close()


async def server_process(database: Database) -> int:
    async with database.autocommit() as tx:
        return int(await tx.connection.scalar(WHO))


def count_pings(database: Database, monkeypatch) -> Counter[str]:
    pings: Counter[str] = Counter()
    dialect = database.engine.dialect
    ping = dialect.do_ping

    def counting(connection: object) -> bool:
        pings["ping"] += 1
        return bool(ping(connection))

    monkeypatch.setattr(dialect, "do_ping", counting)
    return pings


async def end_connections(url: str) -> None:
    connection = await connect(url)
    await connection.execute(END_OTHERS)
    await connection.close()


async def test_connection_in_use_is_not_asked_whether_it_lives(database, monkeypatch):
    pings = count_pings(database, monkeypatch)
    monkeypatch.setattr(postgres, "PING_AFTER_SECONDS", 3600.0)
    assert len({await server_process(database) for _ in range(5)}) == 1
    assert pings["ping"] == 0


async def test_connection_that_was_idle_is_asked(database, monkeypatch):
    await server_process(database)
    pings = count_pings(database, monkeypatch)
    monkeypatch.setattr(postgres, "PING_AFTER_SECONDS", 0.0)
    await server_process(database)
    assert pings["ping"] == 1


@pytest.mark.parametrize("has_heard", [True, False])
async def test_ended_connections_are_replaced(database, postgres_url, has_heard):
    before = await asyncio.gather(*(server_process(database) for _ in range(3)))
    if has_heard:
        await end_connections(postgres_url)
    else:
        # By another thread, while this one looks at none of its connections.
        other = threading.Thread(target=asyncio.run, args=(end_connections(postgres_url),))
        other.start()
        other.join()
    after = await asyncio.gather(*(server_process(database) for _ in range(3)))
    assert not {*before} & {*after}


async def test_connection_that_fails_the_ping_is_replaced(database, monkeypatch):
    before = await server_process(database)
    monkeypatch.setattr(postgres, "PING_AFTER_SECONDS", 0.0)
    dialect = database.engine.dialect
    ping = dialect.do_ping

    def fails_once(_connection: object) -> bool:
        monkeypatch.setattr(dialect, "do_ping", ping)
        raise dialect.dbapi.Error("gone")

    monkeypatch.setattr(dialect, "do_ping", fails_once)
    assert await server_process(database) != before
