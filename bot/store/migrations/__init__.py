"""Bring the schema up to date, once, whichever process comes first."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from bot.errors import DatabaseTooNew
from bot.store.engine import Database

# Any number that nothing else in the database uses for an advisory lock.
MIGRATION_LOCK = 0x6761746568


async def migrate(database: Database) -> None:
    """Run the migrations that are missing, under a lock of the database.

    Raises:
        DatabaseTooNew: The schema is of a newer program.
        DatabaseUnavailable: The database cannot be reached or written.
    """
    async with database.transaction() as tx:
        if tx.is_postgres:
            lock = text("SELECT pg_advisory_xact_lock(:number)")
            await tx.connection.execute(lock, {"number": MIGRATION_LOCK})
        await tx.connection.run_sync(_upgrade)


async def is_current(database: Database) -> bool:
    """Return whether the schema is the one this program wants.

    Raises:
        DatabaseTooNew: The schema is of a newer program.
        DatabaseUnavailable: The database cannot be reached.
    """
    async with database.reading() as tx:
        return await tx.connection.run_sync(_is_current)


async def revision(database: Database) -> str | None:
    """Return the schema's revision; None of an empty database.

    Raises:
        DatabaseUnavailable: The database cannot be reached.
    """
    async with database.reading() as tx:
        return await tx.connection.run_sync(_revision)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _is_current(connection: Connection) -> bool:
    script = ScriptDirectory.from_config(_config())
    current = _revision(connection)
    if current is not None and current not in {one.revision for one in script.walk_revisions()}:
        raise DatabaseTooNew
    return current == script.get_current_head()


def _upgrade(connection: Connection) -> None:
    if _is_current(connection):
        return
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
