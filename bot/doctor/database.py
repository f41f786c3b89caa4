"""The database: reachable, migrated, writable."""

import re

from sqlalchemy import text

from bot.doctor.findings import Finding, failed, well
from bot.errors import DatabaseTooNew, DatabaseUnavailable
from bot.store.engine import Database
from bot.store.migrations import is_current, migrate, revision

SUBJECT = "database"
# Writes nothing, and needs all that a write needs.
TOUCH = text("UPDATE alembic_version SET version_num = version_num")
OUTDATED = "The database is of an older version: the next start of the bot brings it up to date."
# What SQLite and PostgreSQL say when it is only the writing that is not allowed.
READ_ONLY = re.compile(r"read-?only|permission denied", re.IGNORECASE)


async def examine_database(database: Database) -> Finding:
    """Whether the bot can use it. An empty one is prepared, as the bot's first start would.

    One of an older version is left alone: a bot of that version may be running on it.
    """
    try:
        if not await is_current(database):
            if await revision(database) is not None:
                return Finding(SUBJECT, "database_outdated", OUTDATED)
            await migrate(database)
        async with database.transaction() as tx:
            await tx.connection.execute(TOUCH)
    except DatabaseTooNew as error:
        return failed(SUBJECT, error)
    except DatabaseUnavailable as error:
        return _why(error)
    kind = "SQLite" if database.is_sqlite else "PostgreSQL"
    return well(SUBJECT, f"{kind} is reachable, migrated and writable.")


def _why(error: DatabaseUnavailable) -> Finding:
    """Tell a database that is away from one that only refuses to be written."""
    if not READ_ONLY.search(str(error.__cause__)):
        sentence = "The database cannot be reached. Check DATABASE_URL, and that it is running."
        return Finding(SUBJECT, "database_unreachable", sentence)
    return Finding(
        SUBJECT,
        "database_not_writable",
        "The database can be read but not written: check the rights of the file and its folder,"
        " or of the database user.",
    )
