"""The database: reachable, migrated, writable."""

from bot.checks.doctor.findings import Finding, failed, well
from bot.errors import DatabaseTooNew, DatabaseTooOld, DatabaseUnavailable
from bot.store.causes import WRONG_ENCODING, cause_of
from bot.store.engine import Database
from bot.store.migrations import is_current, migrate, revision

SUBJECT = "database"
OUTDATED = "The database is of an older version: the next start of the bot brings it up to date."


async def examine_database(database: Database) -> Finding:
    """Check that the bot can use the database; an empty one is prepared as at the first start.

    One of an older version is left alone: a bot of that version may be running on it.
    """
    try:
        if not await is_current(database):
            if await revision(database) is not None:
                return Finding(SUBJECT, "database_outdated", OUTDATED)
            await migrate(database)
        await database.try_writing()
    except (DatabaseTooNew, DatabaseTooOld) as error:
        return failed(SUBJECT, error)
    except DatabaseUnavailable as error:
        return why(error)
    if not await database.holds_every_name():
        return Finding(SUBJECT, WRONG_ENCODING.code, WRONG_ENCODING.sentence)
    kind = "SQLite" if database.is_sqlite else "PostgreSQL"
    way = " behind a pooler" if database.is_pooled else ""
    return well(SUBJECT, f"{kind}{way} is reachable, migrated and writable.")


def why(error: DatabaseUnavailable) -> Finding:
    """Say why the database did not do what the bot asks of it."""
    cause = cause_of(error)
    return Finding(SUBJECT, cause.code, cause.sentence)
