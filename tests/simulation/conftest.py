"""Simulations run on SQLite unless a test requests both databases."""

from tests.workflows.conftest import database_url

__all__ = ["database_url"]
