"""The migrations make what the tables say, once, whoever comes first."""

import asyncio

import pytest
from sqlalchemy import inspect, text

from bot.errors import DatabaseTooNew, DatabaseTooOld
from bot.store.engine import Database
from bot.store.migrations import is_current, migrate
from bot.store.tables import metadata
from tests.support import revision_0015


def shape(connection):
    """Return the columns and indexes of each table."""
    found = inspect(connection)
    assert {*found.get_table_names()} == {*metadata.tables, "alembic_version"}
    return {
        table: (
            {
                (column["name"], str(column["type"]), column["nullable"])
                for column in found.get_columns(table)
            },
            {(index["name"], *index["column_names"]) for index in found.get_indexes(table)},
            found.get_pk_constraint(table)["constrained_columns"],
        )
        for table in metadata.tables
    }


@pytest.fixture
async def database(empty_database_url, clock):
    database = Database(empty_database_url, clock)
    await migrate(database)
    yield database
    await database.close()


async def test_a_second_migration_changes_nothing(database):
    assert not await migrate(database)
    assert await is_current(database)


async def test_an_empty_database_is_not_current(empty_database_url, clock):
    database = Database(empty_database_url, clock)
    assert not await is_current(database)
    await database.close()


async def test_a_schema_of_a_newer_program_is_refused(database):
    async with database.transaction() as tx:
        await tx.connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseTooNew):
        await migrate(database)


async def test_database_of_version_0_2_0_gets_the_same_tables(empty_database_url, clock):
    await revision_0015.write(empty_database_url)
    database = Database(empty_database_url, clock)
    assert await migrate(database)
    async with database.transaction() as tx:
        upgraded = await tx.connection.run_sync(shape)
        await tx.connection.run_sync(metadata.drop_all)
        await tx.connection.execute(text("DROP TABLE alembic_version"))
    assert await migrate(database)
    async with database.transaction() as tx:
        assert await tx.connection.run_sync(shape) == upgraded
    await database.close()


@pytest.mark.parametrize("revision", ["0001", "0014"])
async def test_schema_before_the_firstknown_revisions_one_is_refused(database, revision):
    await revision_0015.set_revision(database.url, revision)
    with pytest.raises(DatabaseTooOld, match=r"Run version 0\.2\.0"):
        await migrate(database)


@pytest.mark.postgres
async def test_four_processes_migrate_once(empty_postgres_url, clock):
    databases = [Database(empty_postgres_url, clock) for _ in range(4)]
    await asyncio.gather(*(migrate(item) for item in databases))
    assert await is_current(databases[0])
    for one in databases:
        await one.close()
