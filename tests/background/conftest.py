"""These tests run on SQLite; tests in which SQL or locking differs run on both databases."""

from tests.workflows.conftest import database_url

__all__ = ["database_url"]
