"""Workflows are tested on SQLite; `tests/store` and the scenarios test both databases.

If transactions race, a test asks for both: `@pytest.mark.parametrize("database_url", BOTH,
indirect=True)`.
"""

import pytest


@pytest.fixture
def database_url(request) -> str:
    """Return the address of a migrated database."""
    return request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_url")
