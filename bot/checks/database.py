"""The database: reachable, migrated, writable."""

from contextlib import suppress

from bot.checks.findings import Finding, failed, well
from bot.checks.parts import Parts
from bot.errors import DatabaseTooNew, DatabaseTooOld, DatabaseUnavailable
from bot.store.causes import WRONG_ENCODING, cause_of
from bot.store.engine import Database
from bot.store.migrations import is_current, migrate, notice_newer, revision

SUBJECT = "database"


async def database(parts: Parts) -> list[Finding]:
    """Check that the bot can use its database."""
    return [await examine_database(parts.database)]


async def prepare(database: Database) -> None:
    """Create the tables in an empty database, as the first start does."""
    with suppress(DatabaseUnavailable):
        if await revision(database) is None:
            await migrate(database)


async def examine_database(database: Database) -> Finding:
    """Check that the bot can use the database, without changing it."""
    try:
        if await notice_newer(database):
            return failed(SUBJECT, DatabaseTooNew())
        if not await is_current(database) and await revision(database) is not None:
            sentence = "The database has an older schema: the next start upgrades it."
            return Finding(SUBJECT, "database_outdated", sentence)
        await database.try_writing()
        holds_every_name = await database.holds_every_name()
    except DatabaseTooOld as error:
        return failed(SUBJECT, error)
    except DatabaseUnavailable as error:
        cause = cause_of(error)
        return Finding(SUBJECT, cause.code, cause.sentence)
    if not holds_every_name:
        return Finding(SUBJECT, WRONG_ENCODING.code, WRONG_ENCODING.sentence)
    kind = "SQLite" if database.is_sqlite else "PostgreSQL"
    way = " behind a pooler" if database.is_pooled else ""
    return well(SUBJECT, f"{kind}{way} is reachable, migrated and writable.")
