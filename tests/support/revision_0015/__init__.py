"""A database as version 0.2.0 left it with `AUDIT_KEY`, dumped from SQLite and from PostgreSQL.

What that version did before its process ended, by the test user of each request:

- `+15550001`: applied for 30 minutes, which are over.
- `+15550002`: approved while the flow service was away, and not applied yet.
- `+15550003`: pending; Ada's click on `Approve` is stored and not followed yet.
- `+15550004`: pending; Slack has not taken its card.
- `+15550005`: pending, with its card in Slack.
- `+15550006`: approved and refused twice by the flow service.
- `+15550007`: approved, and starts in 2099.
- `+15550009`: applied without approval and without an end.

An incident of the organization 20077314 is open. The times of expiry are far in the future.
"""

import sqlite3
from pathlib import Path

from sqlalchemy import text

from bot.ops.clock import SystemClock
from bot.store.engine import Database
from tests.support.postgres import connect

HERE = Path(__file__).parent


async def write(url: str) -> None:
    """Make that database at `url`, which is empty."""
    if url.startswith("sqlite:"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            file.executescript((HERE / "sqlite.sql").read_text("utf-8"))
        file.close()
        return
    connection = await connect(url)
    await connection.execute((HERE / "postgres.sql").read_bytes())
    await connection.close()


async def cards(url: str) -> dict[str, str]:
    """Return the keys of the cards by the test user that they are about, or "" for an incident."""
    database = Database(url, SystemClock())
    about = "SELECT id, CAST(requested AS TEXT) FROM requests"
    async with database.read_only() as tx:
        requests = dict((await tx.connection.execute(text(about))).all())
        keys = list(await tx.connection.scalars(text("SELECT key FROM cards")))
    await database.close()
    users = {name: told[told.index("+1555") :][:9] for name, told in requests.items()}
    return {users.get(key.partition(":")[2], ""): key for key in keys}


async def move_card(url: str, key: str, message_ts: str) -> None:
    """Have a card stand at another message."""
    database = Database(url, SystemClock())
    async with database.transaction() as tx:
        moved = text("UPDATE cards SET message_ts = :ts WHERE key = :key")
        await tx.connection.execute(moved, {"ts": message_ts, "key": key})
    await database.close()


async def set_revision(url: str, revision: str) -> None:
    """Have the database say that it is of another revision."""
    database = Database(url, SystemClock())
    async with database.transaction() as tx:
        stated = text("UPDATE alembic_version SET version_num = :revision")
        await tx.connection.execute(stated, {"revision": revision})
    await database.close()
