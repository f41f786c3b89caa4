"""Makes most tests in this folder run on SQLite only.

Tests that depend on SQL or locking run on both SQLite and PostgreSQL.
"""

from tests.workflows.conftest import database_url

__all__ = ["database_url"]
