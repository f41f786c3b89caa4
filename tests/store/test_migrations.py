"""The migrations make what the tables say, once, whoever comes first."""

import asyncio
import json

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from bot.errors import DatabaseTooNew
from bot.model.testusers.changes import Change
from bot.store import flows, jobs
from bot.store.engine import Database
from bot.store.migrations import _config, _known, is_current, migrate
from bot.store.tables import metadata
from bot.store.types import from_microseconds


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
    chain = ScriptDirectory.from_config(_config()).walk_revisions()
    assert [one.revision for one in chain] == _known()[::-1]


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


def to_revision(connection, revision: str) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


async def test_list_that_was_about_to_be_sent_is_in_doubt_after_an_upgrade(
    empty_database_url, clock
):
    plan = {"id": "p1", "before": [], "after": ["+1"], "steps": [], "endings": []}
    row = {"key": "FW1", "id": "p1", "at": 1_000_000, "plan": json.dumps(plan)}
    database = Database(empty_database_url, clock)
    async with database.transaction() as tx:
        await tx.connection.run_sync(to_revision, "0003")
        insert = "INSERT INTO flow_plans (flow_key, id, planned_at, plan)"
        await tx.connection.execute(text(f"{insert} VALUES (:key, :id, :at, :plan)"), row)
    await migrate(database)
    async with database.transaction() as tx:
        (post,) = await flows.posts(tx, "FW1")
        assert (post.own, post.sent_at) == (Change(("+1",)), from_microseconds(1_000_000))
        assert [job.key for job in await jobs.claim(tx, "one", 9)] == ["apply:FW1"]
    await database.close()


@pytest.mark.postgres
async def test_four_processes_migrate_once(empty_postgres_url, clock):
    databases = [Database(empty_postgres_url, clock) for _ in range(4)]
    await asyncio.gather(*(migrate(one) for one in databases))
    assert await is_current(databases[0])
    for one in databases:
        await one.close()
