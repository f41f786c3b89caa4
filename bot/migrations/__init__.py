"""Creates or upgrades the schema. If several processes start at once, only one does this."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text

from bot.errors import DatabaseTooNew, DatabaseTooOld
from bot.flows import tables as flows
from bot.organizations import tables as organizations
from bot.quotas import tables as quotas
from bot.slack import tables as slack
from bot.store.engine import Database
from bot.store.tables import audit_head, metadata
from bot.testusers import tables as testusers

# `metadata` has the tables of these modules only once they're imported.
TABLES = (flows, organizations, quotas, slack, testusers)
# The number of an advisory lock that nothing else in the database uses.
MIGRATION_LOCK = 0x6761746568


async def migrate(database: Database) -> bool:
    """Create or upgrade the schema under a database lock, and return True if anything changed."""
    async with database.migrating() as tx:
        if tx.is_postgres:
            lock = text("SELECT pg_advisory_xact_lock(:number)")
            await tx.execute(lock, {"number": MIGRATION_LOCK})
        is_outdated = not _is_newest(await tx.connection.run_sync(revision_of))
        if is_outdated:
            await tx.connection.run_sync(upgrade)
    database.newest_revision = known_revisions()[-1]
    return is_outdated


async def is_current(database: Database) -> bool:
    """Return True for a current schema. If it's unknown, raise DatabaseTooNew or DatabaseTooOld.

    As long as the schema is that of a newer version, the database refuses writes.
    """
    current = await revision(database)
    database.is_superseded = (current or "") > known_revisions()[-1]
    return _is_newest(current)


async def revision(database: Database) -> str | None:
    """Return the schema's revision, or None for an empty database."""
    async with database.read_only() as tx:
        return await tx.connection.run_sync(revision_of)


# An upgrade in place adds files to those of the process that still runs.
@cache
def known_revisions() -> list[str]:
    """Return the schema revisions that this version knows, oldest first."""
    files = (Path(__file__).parent / "versions").glob("[0-9]*_*.py")
    return sorted(file.name.partition("_")[0] for file in files)


def revision_of(connection: Connection) -> str | None:
    """Read the schema's revision through a connection. Return None for an empty database."""
    return MigrationContext.configure(connection).get_current_revision()


def _is_newest(current: str | None) -> bool:
    revisions = known_revisions()
    if current is not None and current not in revisions:
        raise DatabaseTooNew if current > revisions[-1] else DatabaseTooOld
    return current == revisions[-1]


def upgrade(connection: Connection) -> None:
    """Create the tables in an empty database, or run the missing migrations."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    if revision_of(connection) is None:
        metadata.create_all(connection)
        connection.execute(audit_head.insert(), {"id": 1, "position": 0, "hash": "0" * 64})
        command.stamp(config, "head")
    else:
        command.upgrade(config, "head")
