"""Tests the bot with PgBouncer in front of PostgreSQL, and tests the bot's connection pool."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from bot.errors import DatabaseUnavailable
from bot.migrations import is_current, migrate
from bot.ops.clock import SystemClock
from bot.store.causes import cause_of
from bot.store.engine import Database
from bot.store.postgres import SERVER_LIMITS
from tests.support.pgbouncer import running_pgbouncer
from tests.support.postgres import connect
from tests.support.world import running_world

pytestmark = pytest.mark.postgres
LEFT_OPEN = "idle_in_transaction_session_timeout"


@pytest.fixture
async def pooled_url(postgres_url) -> AsyncIterator[str]:
    async with running_pgbouncer(postgres_url) as url:
        yield url


async def test_server_ends_what_a_process_behind_a_pooler_left_open(pooled_url) -> None:
    """A connection pooler may reset a session's settings, or give the session to another client."""
    database = Database(pooled_url, SystemClock())
    async with database.transaction() as tx:
        limits = [await tx.connection.scalar(text(f"SHOW {name}")) for name in SERVER_LIMITS]
        assert "0" not in limits
    async with database.migrating() as tx:
        assert await tx.connection.scalar(text(f"SHOW {LEFT_OPEN}")) == SERVER_LIMITS[LEFT_OPEN]
        assert await tx.connection.scalar(text("SHOW statement_timeout")) == "0"
    async with database.autocommit() as tx:
        # The pooler's connections to the server have not changed.
        assert await tx.connection.scalar(text(f"SHOW {LEFT_OPEN}")) == "0"
    await database.close()


async def test_commands_work_behind_a_pooler(pooled_url) -> None:
    async with running_world(pooled_url, inventory_watch="off") as world:
        for command, words in (
            ("/orgs", ""),
            ("/ratelimits", ""),
            ("/testusers", "list welcome"),
            ("/gatehouse", "status"),
            ("/emailkey", "check"),
        ):
            answer = await world.ask("U0ADMIN", command, words)
            assert "can't be reached" not in answer.all_text, command
        await world.ask("U0OPERATOR", "/testusers", "add welcome +15550001111 because pooled")


async def test_a_schema_is_made_through_a_pooler(empty_postgres_url) -> None:
    async with running_pgbouncer(empty_postgres_url) as url:
        database = Database(url, SystemClock())
        assert await migrate(database)
        assert await is_current(database)
        await database.close()


async def test_statement_pooling_is_named(postgres_url) -> None:
    async with running_pgbouncer(postgres_url, "statement") as url:
        database = Database(url, SystemClock())
        with pytest.raises(DatabaseUnavailable) as raised:
            await database.ping_writing()
        assert "statement pooling" in cause_of(raised.value).detail
        await database.close()


async def test_no_statement_is_prepared(postgres_url) -> None:
    database = Database(postgres_url, SystemClock())
    async with database.read_only() as tx:
        await tx.connection.execute(text("SELECT 1"))
        names = await tx.connection.execute(text("SELECT name FROM pg_prepared_statements"))
        assert names.all() == []
    await database.close()


async def test_pool_is_as_large_as_the_setting_says(postgres_url) -> None:
    database = Database(postgres_url, SystemClock(), pool_size=2)
    await asyncio.gather(*(database.now() for _ in range(20)))
    connection = await connect(postgres_url)
    cursor = await connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    )
    assert await cursor.fetchone() == (1 + 2,)
    await connection.close()
    await database.close()


async def limited(url: str, connections: int) -> str:
    """Create a database user with a connection limit. Return the database URL for that user."""
    name = url.rsplit("/", 1)[1]
    connection = await connect(url)
    await connection.execute(f'CREATE ROLE "{name}" LOGIN CONNECTION LIMIT {connections}')
    await connection.close()
    return url.replace("postgres@", f"{name}@")


async def count_connections(url: str, user: str) -> int:
    connection = await connect(url)
    query = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
    (count,) = await (await connection.execute(query, [user])).fetchone()
    await connection.close()
    return count


async def drop_role(url: str) -> None:
    connection = await connect(url)
    await connection.execute(f'DROP ROLE "{url.rsplit("/", 1)[1]}"')
    await connection.close()


async def test_a_server_without_connections_is_waited_for(postgres_url) -> None:
    url = await limited(postgres_url, 3)
    databases = [Database(url, SystemClock()) for _ in range(2)]
    try:
        for database in databases:
            await database.now()
        pings = [database.now() for database in databases for _ in range(6)]
        answers = await asyncio.gather(*pings, return_exceptions=True)
        assert not [answer for answer in answers if isinstance(answer, Exception)]
        # Each of the two processes would have six.
        assert await count_connections(postgres_url, url.rsplit("/", 1)[1]) == 3
    finally:
        for database in databases:
            await database.close()
        await drop_role(postgres_url)


async def test_waiting_for_a_connection_ends(postgres_url, monkeypatch) -> None:
    monkeypatch.setattr("bot.store.postgres.CONNECT_SECONDS", 0.2)
    monkeypatch.setattr("bot.store.engine.RETRY_SECONDS", 0.1)
    url = await limited(postgres_url, 1)
    holder = await connect(url)
    database = Database(url, SystemClock())
    with pytest.raises(DatabaseUnavailable):
        await database.now()
    await holder.close()
    await database.now()
    await database.close()
    await drop_role(postgres_url)


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


async def end_connections(url: str) -> None:
    connection = await connect(url)
    await connection.execute(END_OTHERS)
    await connection.close()


@pytest.mark.parametrize("has_heard", [True, False])
async def test_ended_connections_are_replaced(database, postgres_url, has_heard):
    before = await asyncio.gather(*(server_process(database) for _ in range(3)))
    if has_heard:
        await end_connections(postgres_url)
    else:
        # Another thread closes them while this thread uses no connection.
        other = threading.Thread(target=asyncio.run, args=(end_connections(postgres_url),))
        other.start()
        other.join()
    after = await asyncio.gather(*(server_process(database) for _ in range(3)))
    assert not {*before} & {*after}
