"""A small bot for testing the middleware around listeners."""

import pytest

from tests.support.listening import small_bot


@pytest.fixture
async def bot():
    async with small_bot() as running:
        yield running
