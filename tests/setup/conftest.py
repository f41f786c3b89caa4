"""A folder with stand-ins in which setup runs."""

import pytest

from tests.support.vendors import running_place


@pytest.fixture
async def place(tmp_path):
    async with running_place(tmp_path) as place:
        yield place
