"""Most of these tests use only SQLite.

Tests of concurrent transactions use both SQLite and PostgreSQL. To run a test with both databases,
mark the test with `@pytest.mark.parametrize("database_url", BOTH, indirect=True)`.
"""

import pytest


@pytest.fixture
def database_url(request) -> str:
    """Return the URL of a migrated database."""
    return request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_url")
