"""Simulations run on SQLite, unless a test asks for both databases."""

from tests.workflows.conftest import database_url

__all__ = ["database_url"]
