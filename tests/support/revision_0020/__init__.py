"""A database of version 0.3.0, dumped from SQLite and from PostgreSQL.

Version 0.3.0 left these requests, listed by their test users:

- `+15550001`: pending, for 2 hours.
- `+15550002`: pending, with a planned start in 2099, for 2 hours.
- `+15550003`: approved, with a planned start in 2099, for 2 days.
- `+15550004`: approved, with a planned start and an end that have passed.
- `+15550005`: failed; its planned start has passed and its end is in 2034.
- `+15550006` and `+15550016`: failed; only the first is on the list, until 2099.
- `+15550007`: applied, with an end that has passed.
- `+15550008`: applied, with an end in 2099.
- `+15550009`: approved and not applied yet; the start and the end are those of `+15550005`.

There is a preset, and an incident of the organization 20077314 is open.
"""

import sqlite3
from pathlib import Path

from sqlalchemy import text

from bot.ops.clock import SystemClock
from bot.store.engine import Database
from tests.support.postgres import connect

HERE = Path(__file__).parent


async def write(url: str) -> None:
    """Write the dumped database to `url`, which is empty."""
    if url.startswith("sqlite:"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            file.executescript((HERE / "sqlite.sql").read_text("utf-8"))
        file.close()
        return
    connection = await connect(url)
    await connection.execute((HERE / "postgres.sql").read_bytes())
    await connection.close()


async def cards(url: str) -> dict[str, str]:
    """Return the keys of the requests' cards by their first test user."""
    database = Database(url, SystemClock())
    about = "SELECT id, CAST(requested AS TEXT) FROM requests"
    async with database.read_only() as tx:
        requests = (await tx.connection.execute(text(about))).all()
    await database.close()
    return {told[told.index("+1555") :][:9]: f"request:{name}" for name, told in requests}


async def move_card(url: str, key: str, message_ts: str) -> None:
    """Record another message as the place of a card."""
    database = Database(url, SystemClock())
    async with database.transaction() as tx:
        moved = text("UPDATE cards SET message_ts = :ts WHERE key = :key")
        await tx.connection.execute(moved, {"ts": message_ts, "key": key})
    await database.close()


async def set_revision(url: str, revision: str) -> None:
    """Record another revision in the database."""
    database = Database(url, SystemClock())
    async with database.transaction() as tx:
        stated = text("UPDATE alembic_version SET version_num = :revision")
        await tx.connection.execute(stated, {"revision": revision})
    await database.close()
