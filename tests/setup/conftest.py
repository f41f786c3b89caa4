"""The fixture `place` provides a folder for setup, and runs the stand-ins that setup calls."""

import pytest

from tests.support.vendors import running_place


@pytest.fixture
async def place(tmp_path):
    async with running_place(tmp_path) as place:
        yield place
