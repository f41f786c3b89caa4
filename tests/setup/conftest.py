"""A folder in which setup runs, with stand-ins."""

import pytest

from tests.support.vendors import running_place


@pytest.fixture
async def place(tmp_path):
    async with running_place(tmp_path) as place:
        yield place
