"""Bring the schema up to date, once, whichever process comes first."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from bot.errors import DatabaseTooNew
from bot.store.engine import Database

if TYPE_CHECKING:
    from alembic.config import Config

# Any number that nothing else in the database uses for an advisory lock.
MIGRATION_LOCK = 0x6761746568
# Alembic's table of the revision.
VERSIONS = "alembic_version"


async def migrate(database: Database) -> bool:
    """Run the migrations that are missing, under a lock of the database; return if there were any.

    Raises:
        DatabaseTooNew: The schema is of a newer program.
        DatabaseUnavailable: The database cannot be reached or written.
    """
    async with database.migrating() as tx:
        if tx.is_postgres:
            lock = text("SELECT pg_advisory_xact_lock(:number)")
            await tx.connection.execute(lock, {"number": MIGRATION_LOCK})
        return await tx.connection.run_sync(_upgrade)


async def is_current(database: Database) -> bool:
    """Return whether the schema is the one this program wants.

    Raises:
        DatabaseTooNew: The schema is of a newer program.
        DatabaseUnavailable: The database cannot be reached.
    """
    async with database.read_only() as tx:
        return await tx.connection.run_sync(_is_current)


async def revision(database: Database) -> str | None:
    """Return the schema's revision; None of an empty database.

    Raises:
        DatabaseUnavailable: The database cannot be reached.
    """
    async with database.read_only() as tx:
        return await tx.connection.run_sync(_revision)


def _known() -> list[str]:
    """The revisions of this program, which are a chain in the order of their files."""
    files = (Path(__file__).parent / "versions").glob("[0-9]*_*.py")
    return sorted(one.name.partition("_")[0] for one in files)


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSIONS):
        return None
    found: str | None = connection.scalar(text(f"SELECT version_num FROM {VERSIONS}"))  # noqa: S608
    return found


def _is_current(connection: Connection) -> bool:
    known, current = _known(), _revision(connection)
    if current is not None and current not in known:
        raise DatabaseTooNew
    return current == known[-1]


def _upgrade(connection: Connection) -> bool:
    if _is_current(connection):
        return False
    # A twentieth of the time of a start: most find the schema as they left it.
    from alembic import command

    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    return True


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config
