"""How long people wait for a database that does not answer."""

import asyncio
import sqlite3
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from pydantic import TypeAdapter
from sqlalchemy import text

from bot.approvals.rules import Act
from bot.errors import CommitUnknown, DatabaseUnavailable
from bot.slack.messages import replies
from bot.store import engine, sqlite
from bot.store.engine import Database
from bot.store.jobs import Job
from bot.testusers.interactions import INTERACTION, StoredInteraction, StoredInteractions
from tests.support.proxy import running_proxy
from tests.support.testusers import ADA, World


async def write(database: Database) -> None:
    async with database.transaction():
        pass


async def test_writers_behind_a_locked_file_all_give_up_in_time(sqlite_url, clock, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.2)
    monkeypatch.setattr(engine, "STATEMENT_SECONDS", 0.3)
    database = Database(sqlite_url, clock)
    await write(database)
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as other:
        other.execute("BEGIN EXCLUSIVE")
        async with asyncio.timeout(5):
            writers = (write(database) for _ in range(30))
            outcomes = await asyncio.gather(*writers, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {DatabaseUnavailable}
    await write(database)
    await database.close()


@pytest.mark.postgres
async def test_a_commit_that_breaks_off_is_not_said_to_have_done_nothing(postgres_url, clock):
    parts = urlsplit(postgres_url)
    async with running_proxy(parts.hostname, parts.port) as proxy:
        through = f"postgresql://{parts.username}@127.0.0.1:{proxy.port}{parts.path}"
        database = Database(through, clock)
        with pytest.raises(CommitUnknown, match="can't tell whether"):  # noqa: PT012 - the commit raises
            async with database.transaction() as tx:
                await tx.connection.execute(text("SELECT 1"))
                await proxy.cut()
        with pytest.raises(DatabaseUnavailable, match="Nothing was changed"):
            await write(database)
        await database.close()


class FakeReplies:
    def __init__(self) -> None:
        self.said: list[str] = []

    async def say(self, response_url, message, *, to, replace=False) -> bool:
        self.said.append(message.text)
        return True


async def test_a_click_that_waits_for_the_database_says_so_once(database, clock, monkeypatch):
    world, port = World(database, clock), FakeReplies()
    world.replies = port
    clicks = StoredInteractions(world)

    async def unavailable(*_) -> None:
        raise DatabaseUnavailable

    monkeypatch.setattr(clicks, "_process", unavailable)
    click = StoredInteraction(Act.APPROVE, "r1", ADA, (), "https://slack/response")
    job = Job(
        "click:1",
        INTERACTION,
        "r1",
        clock.now(),
        TypeAdapter(StoredInteraction).dump_python(click, mode="json"),
    )
    for _ in range(3):
        with pytest.raises(DatabaseUnavailable):
            await clicks.run(job, None)
    assert port.said == [replies.NOTED.text]
