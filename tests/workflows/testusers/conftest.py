"""A world for every test here."""

from collections.abc import AsyncIterator

import pytest

from bot.store.engine import Database
from tests.support.testusers import World


@pytest.fixture
def world(database, clock) -> World:
    return World(database, clock)


@pytest.fixture
async def sqlite_world(sqlite_url, clock) -> AsyncIterator[World]:
    """A world on SQLite only, for what takes hours of its time."""
    database = Database(sqlite_url, clock)
    yield World(database, clock)
    await database.close()
