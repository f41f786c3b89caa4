"""A new database of either kind, outside of pytest's fixtures."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from tests.support.postgres import own_database, server_url

Kind = Literal["sqlite", "postgres"]


@asynccontextmanager
async def database_of(kind: Kind, folder: str) -> AsyncIterator[str]:
    """Yield the address of a new, empty database; SQLite's lies in the folder."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/gatehouse.db"
        return
    async with own_database(server_url()) as url:
        yield url
