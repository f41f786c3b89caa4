"""Creates or upgrades the schema, in the process that starts first."""

from sqlalchemy import Connection, inspect, text

from bot.errors import DatabaseTooNew, DatabaseTooOld
from bot.store.engine import Database
from bot.store.tables import audit_head, metadata

# An advisory lock number that nothing else in the database uses.
MIGRATION_LOCK = 0x6761746568
# The statements that lead to each revision from the revision before it. The oldest revision is the
# schema of version 0.2.0. A new database skips them: it gets the tables of `bot.store.tables`.
MIGRATIONS: dict[str, tuple[str, ...]] = {
    "0015": (),
    "0020": (
        "ALTER TABLE requests DROP COLUMN signature",
        "ALTER TABLE grants DROP COLUMN signature",
        "ALTER TABLE flow_posts DROP COLUMN signature",
        "ALTER TABLE jobs DROP COLUMN signature",
        "ALTER TABLE quota_organizations ADD COLUMN lowered_minute INTEGER",
        "ALTER TABLE quota_organizations ADD COLUMN lowered_minute_until BIGINT",
        "DROP TABLE gateway_waits",
        "DROP TABLE machine_clocks",
        "DROP TABLE quota_hours",
        # Each start adds the jobs that replace these.
        "DELETE FROM jobs WHERE key IN ('audit_witness', 'record')",
        "DELETE FROM jobs WHERE kind IN ('testusers.expire', 'testusers.remind')",
        "DELETE FROM jobs WHERE kind IN ('testusers.unposted', 'testusers.start')",
        "DELETE FROM jobs WHERE kind IN ('testusers.escalate', 'testusers.ending')",
    ),
}
LATEST = max(MIGRATIONS)
# The table is named after the tool of earlier versions. Without an index, SQLite wouldn't write
# anything for an update that changes nothing, which checks that the database is writable.
COLUMN = "version_num VARCHAR(32) NOT NULL PRIMARY KEY"


async def migrate(database: Database) -> bool:
    """Create or upgrade the schema under a database lock; return True if anything changed."""
    async with database.migrating() as tx:
        if tx.is_postgres:
            lock = text("SELECT pg_advisory_xact_lock(:number)")
            await tx.connection.execute(lock, {"number": MIGRATION_LOCK})
        if await tx.connection.run_sync(_is_current):
            return False
        await tx.connection.run_sync(upgrade)
        return True


async def is_current(database: Database) -> bool:
    """Return True if the schema is up to date; raise DatabaseTooNew or DatabaseTooOld."""
    async with database.read_only() as tx:
        return await tx.connection.run_sync(_is_current)


async def notice_newer(database: Database) -> bool:
    """Return True, and refuse all later writes, if a newer program has migrated the database."""
    try:
        await is_current(database)
    except DatabaseTooNew:
        database.is_superseded = True
    else:
        database.is_superseded = False
    return database.is_superseded


async def revision(database: Database) -> str | None:
    """Return the schema's revision; None for an empty database."""
    async with database.read_only() as tx:
        return await tx.connection.run_sync(revision_of)


def revision_of(connection: Connection) -> str | None:
    """Return the schema's revision, read on a connection; None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found


def _is_current(connection: Connection) -> bool:
    current = revision_of(connection)
    if current is not None and current not in MIGRATIONS:
        raise DatabaseTooOld if current < min(MIGRATIONS) else DatabaseTooNew
    return current == LATEST


def upgrade(connection: Connection) -> None:
    """Create the tables in an empty database, or run the missing migrations."""
    current = revision_of(connection)
    if current is None:
        metadata.create_all(connection)
        connection.execute(audit_head.insert(), {"id": 1, "position": 0, "hash": "0" * 64})
        connection.execute(text(f"CREATE TABLE alembic_version ({COLUMN})"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('')"))
    else:
        for number, statements in MIGRATIONS.items():
            if number > current:
                for statement in statements:
                    connection.execute(text(statement))
    stamp = text("UPDATE alembic_version SET version_num = :latest")
    connection.execute(stamp, {"latest": LATEST})
