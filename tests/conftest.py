"""Fixtures that every test may use."""

import os
from collections.abc import AsyncIterator

import asyncpg
import pytest

from bot.store.engine import Database
from bot.store.migrations import migrate
from tests.support.clock import FakeClock
from tests.support.postgres import own_database, server_url


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sqlite_url(tmp_path) -> str:
    return f"sqlite:///{tmp_path}/gatehouse.db"


@pytest.fixture
async def postgres_url() -> AsyncIterator[str]:
    """A database of this test's own, on the server of TEST_DATABASE_URL."""
    try:
        async with own_database(server_url()) as url:
            yield url
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no PostgreSQL at TEST_DATABASE_URL: {error}")


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)],
)
def database_url(request) -> str:
    """The address of a new, empty database: once SQLite, once PostgreSQL."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
async def database(database_url, clock) -> AsyncIterator[Database]:
    """A migrated database whose time is `clock`."""
    database = Database(database_url, clock, own_clock=False)
    await migrate(database)
    try:
        yield database
    finally:
        await database.close()
