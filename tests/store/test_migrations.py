"""Tests that the migrations run only once and create the declared tables."""

import asyncio

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import select, text

from bot import migrations
from bot.errors import DatabaseTooNew, DatabaseTooOld
from bot.migrations import is_current, known_revisions, migrate
from bot.store import jobs
from bot.store.engine import Database
from bot.store.tables import metadata
from tests.support import revision_0020


def difference(connection):
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return compare_metadata(context, metadata)


@pytest.fixture
async def database(empty_database_url, clock):
    database = Database(empty_database_url, clock)
    await migrate(database)
    yield database
    await database.close()


async def test_the_migrations_make_the_tables(database):
    async with database.transaction() as tx:
        assert await tx.connection.run_sync(difference) == []


def test_files_of_migrations_are_one_chain_in_their_order():
    chain = ScriptDirectory(migrations.__path__[0]).walk_revisions()
    assert [item.revision for item in chain] == known_revisions()[::-1]


async def test_a_process_notices_a_newer_schema_after_an_upgrade_in_place(
    database, tmp_path, monkeypatch
):
    await migrate(database)
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions/9999_next.py").touch()
    monkeypatch.setattr(migrations, "__file__", f"{tmp_path}/__init__.py")
    async with database.transaction() as tx:
        await tx.connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseTooNew):
        await is_current(database)


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


async def test_database_of_version_0_3_0_gets_the_same_tables(empty_database_url, clock):
    await revision_0020.write(empty_database_url)
    database = Database(empty_database_url, clock)
    assert await migrate(database)
    async with database.transaction() as tx:
        assert await tx.connection.run_sync(difference) == []
    await database.close()


@pytest.mark.parametrize("revision", ["0003", "0015", "0019", "0025", "0028"])
async def test_database_of_a_version_that_cannot_be_upgraded_is_refused(
    empty_sqlite_url, clock, revision
):
    await revision_0020.write(empty_sqlite_url)
    await revision_0020.set_revision(empty_sqlite_url, revision)
    database = Database(empty_sqlite_url, clock)
    with pytest.raises(DatabaseTooOld, match=r"before 0\.3\.0 or between.*Set DATABASE_URL"):
        await migrate(database)
    await database.close()


async def test_jobs_that_no_longer_exist_are_forgotten(empty_database_url, clock):
    await revision_0020.write(empty_database_url)
    database = Database(empty_database_url, clock)
    async with database.transaction() as tx:
        for kind in ("alert", "homes", "apply"):
            await jobs.put(tx, jobs.Job(f"{kind}:1", kind, "1", await tx.now()))
    assert await migrate(database)
    async with database.read_only() as tx:
        kinds = {*await tx.connection.scalars(select(jobs.jobs.c.kind))}
    assert "apply" in kinds
    assert kinds.isdisjoint({"alert", "homes"})
    await database.close()


@pytest.mark.postgres
async def test_four_processes_migrate_once(empty_postgres_url, clock):
    databases = [Database(empty_postgres_url, clock) for _ in range(4)]
    await asyncio.gather(*(migrate(item) for item in databases))
    assert await is_current(databases[0])
    for one in databases:
        await one.close()
