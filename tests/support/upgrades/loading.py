"""Fills a database with the rows of a stored day."""

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, MetaData, Table, func, select

from bot import migrations
from bot.ops.clock import SystemClock
from bot.store.engine import Database
from tests.support import revision_0020
from tests.support.upgrades import Rows, StoredDay


async def load(url: str, day: StoredDay) -> None:
    """Fill the empty database at `url` with the rows of a day, in the tables that it had."""
    await revision_0020.write(url)
    database = Database(url, SystemClock())
    async with database.migrating() as tx:
        await tx.connection.run_sync(_fill, day)
    await database.close()


def _fill(connection: Connection, day: StoredDay) -> None:
    config = Config()
    config.set_main_option("script_location", migrations.__path__[0])
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    _replace_rows(connection, {})
    command.upgrade(config, day["revision"])
    _replace_rows(connection, day["rows"])


def _replace_rows(connection: Connection, rows: Rows) -> None:
    schema = MetaData()
    schema.reflect(connection)
    for table in schema.tables.values():
        if table.name == "alembic_version":
            continue
        connection.execute(table.delete())
        if rows.get(table.name):
            connection.execute(table.insert(), rows[table.name])
            _continue_numbers(connection, table)


def _continue_numbers(connection: Connection, table: Table) -> None:
    """Let PostgreSQL number new rows after the rows that have been inserted."""
    (key, *_) = table.primary_key
    if connection.dialect.name == "postgresql" and key.server_default is not None:
        sequence = func.pg_get_serial_sequence(table.name, key.name)
        connection.execute(select(func.setval(sequence, select(func.max(key)).scalar_subquery())))
