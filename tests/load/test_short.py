"""The load in a few seconds: every command is acknowledged and answered, whatever the pace."""

import pytest

from tests.load.loading import Load, run

SHORT = Load(seconds=2, a_second=40, people=20, pending=30, entries=300, repeats=1, organizations=0)
# What depends on how busy the machine is, and is for the long form to judge.
TIMES = ("answer to", "acknowledgement, p99", "resident memory")


@pytest.mark.slow
async def test_every_command_is_acknowledged_and_answered():
    # The long form takes PostgreSQL too; the scenarios send each command on both.
    lines = await run("sqlite", SHORT)
    judged = [line for line in lines if not line.what.startswith(TIMES)]
    assert [line for line in judged if not line.is_well] == []
    assert len(judged) >= 4
