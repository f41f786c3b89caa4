"""Contains SQLite and PostgreSQL dumps of a database that Gatehouse 0.3.0 created.

The database contains the following requests, each identified by its test users.

The request for `+15550001` is pending and asks for 2 hours of access.
The request for `+15550002` is pending, asks for 2 hours of access, and is planned to start in 2099.
The request for `+15550003` is approved, asks for 2 days of access, and is planned to start in 2099.
The request for `+15550004` is approved, but its planned start and its end time have passed.
The request for `+15550005` failed, its planned start has passed, and its end time is in 2034.
The request for `+15550006` and `+15550016` failed, and its end time is in 2099.
The user `+15550006` is on the list of test users, but `+15550016` is not.
The request for `+15550007` was applied, and its end time has passed.
The request for `+15550008` was applied, and its end time is in 2099.
The request for `+15550009` is approved but not applied yet.
The requests for `+15550009` and `+15550005` have the same planned start and the same end time.

The database also contains a preset, and an open incident for organization 20077314.
"""

import sqlite3
from pathlib import Path

from sqlalchemy import text

from bot.ops.clock import SystemClock
from bot.store.engine import Database
from tests.support.postgres import connect

HERE = Path(__file__).parent


async def write(url: str) -> None:
    """Load the dump into the empty database at `url`."""
    if url.startswith("sqlite:"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            file.executescript((HERE / "sqlite.sql").read_text("utf-8"))
        file.close()
        return
    connection = await connect(url)
    await connection.execute((HERE / "postgres.sql").read_bytes())
    await connection.close()


async def cards(url: str) -> dict[str, str]:
    """Map each request's first test user to the key of the request's card."""
    database = Database(url, SystemClock())
    about = "SELECT id, CAST(requested AS TEXT) FROM requests"
    async with database.read_only() as tx:
        requests = (await tx.connection.execute(text(about))).all()
    await database.close()
    return {told[told.index("+1555") :][:9]: f"request:{name}" for name, told in requests}


async def move_card(url: str, key: str, message_ts: str) -> None:
    """Record that the card is in the message with the timestamp `message_ts`."""
    database = Database(url, SystemClock())
    async with database.transaction() as tx:
        moved = text("UPDATE cards SET message_ts = :ts WHERE key = :key")
        await tx.connection.execute(moved, {"ts": message_ts, "key": key})
    await database.close()


async def set_revision(url: str, revision: str) -> None:
    """Change the migration revision that is stored in the database."""
    database = Database(url, SystemClock())
    async with database.transaction() as tx:
        stated = text("UPDATE alembic_version SET version_num = :revision")
        await tx.connection.execute(stated, {"revision": revision})
    await database.close()
