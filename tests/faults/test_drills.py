"""Runs short versions of some fault drills, each on one database.

`make faults` runs all of the drills at full length.
"""

import pytest

from tests.faults.drill import run_drill
from tests.faults.drills import ALL

FAULT_SECONDS = 2.0
QUICK = [
    ("the database is away", "postgres"),
    ("the clock jumps by 200 s", "sqlite"),
]


@pytest.fixture
def server(request, database) -> None:
    """Skip the test if it needs PostgreSQL and no server is available."""
    if database == "postgres":
        request.getfixturevalue("postgres_template")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "database"),
    [
        pytest.param(name, kind, marks=pytest.mark.postgres if kind == "postgres" else ())
        for name, kind in QUICK
    ],
)
async def test_drill(name, database, server):
    (drill,) = (item for item in ALL if item.name == name)
    result = await run_drill(drill, database, FAULT_SECONDS)
    assert result.verdict == "passed"
