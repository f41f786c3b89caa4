"""Jobs, messages and retention on SQLite; where SQL or locks differ, a test asks for both."""

from tests.workflows.conftest import database_url

__all__ = ["database_url"]
