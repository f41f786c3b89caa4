"""The pool of connections to PostgreSQL replaces those that ended."""

import asyncio
import threading

import pytest
from sqlalchemy import text

from bot.ops.clock import SystemClock
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
        # By another thread, while this one looks at none of its connections.
        other = threading.Thread(target=asyncio.run, args=(end_connections(postgres_url),))
        other.start()
        other.join()
    after = await asyncio.gather(*(server_process(database) for _ in range(3)))
    assert not {*before} & {*after}
