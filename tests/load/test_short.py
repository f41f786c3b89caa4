"""In a short load test, the bot acknowledges and answers every command."""

import pytest

from bench.processes import surroundings
from tests.load.loading import Load, play

SHORT = Load(seconds=2, a_second=20, people=20, waits_seconds=60)


@pytest.mark.slow
async def test_every_command_is_acknowledged_and_answered(sqlite_url):
    async with surroundings(people=SHORT.people) as around:
        _, lines = await play(around, sqlite_url, SHORT)
    assert [line for line in lines if not line.is_well] == []
