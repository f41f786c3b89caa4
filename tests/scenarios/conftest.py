"""In most scenarios, `INVENTORY_WATCH` is off, and the `welcome` flow has no test users."""

from collections.abc import AsyncIterator

import pytest

from tests.support.world import World, empty_world


@pytest.fixture
async def world(sqlite_url) -> AsyncIterator[World]:
    async with empty_world(sqlite_url, inventory_watch="off") as world:
        yield world
