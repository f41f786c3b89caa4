"""Provides a small bot for testing listener middleware."""

import pytest

from tests.support.listening import small_bot


@pytest.fixture
async def bot():
    async with small_bot() as running:
        yield running
