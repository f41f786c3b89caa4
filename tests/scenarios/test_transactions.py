"""A request and its approval need only a few transactions, round trips and statements.

A transaction is one that the bot begins, and a statement outside of one counts as another. A round
trip is a message to PostgreSQL, and a statement is a command in it, such as BEGIN or COMMIT.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from sqlalchemy import event

from tests.conftest import BOTH
from tests.support.world import ADA, OTTO, World, empty_world

TEXT = re.compile(r"'(?:[^']|'')*'")


@dataclass
class Work:
    """What the bot had the database do."""

    transactions: int = 0
    messages: list[str] = field(default_factory=list)

    @property
    def round_trips(self) -> int:
        return len(self.messages)

    @property
    def statements(self) -> int:
        # What stands in quotes is data, in which a semicolon ends nothing.
        return sum(len(TEXT.sub("", message).split(";")) for message in self.messages)


@pytest.fixture(autouse=True)
def nothing_else_to_do(monkeypatch):
    """Stop periodic jobs, because their queries would be counted too."""
    monkeypatch.setattr("bot.store.job_loop.POLL_SECONDS", 3600.0)
    monkeypatch.setattr("bot.store.job_loop.RENEW_SECONDS", 3600.0)
    monkeypatch.setattr("bot.checks.health.EVERY", {})
    # The Home tab of whoever clicked is drawn a moment later.
    monkeypatch.setattr("bot.home.publishing.MOMENT", timedelta(hours=1))
    # A busy machine can take longer than usual until the change is applied.
    monkeypatch.setattr("bot.testusers.work.APPLIES_WITHIN", timedelta(minutes=1))


@pytest.fixture
def sent(monkeypatch):
    """Record every message to PostgreSQL."""
    messages, execute = list[str](), psycopg.AsyncCursor.execute

    async def note_query(cursor, query, *args, **options):
        messages.append(query.decode() if isinstance(query, bytes) else query)
        return await execute(cursor, query, *args, **options)

    def noting(end):
        async def note_end(connection):
            if connection.info.transaction_status != TransactionStatus.IDLE:
                messages.append(end.__name__)
            await end(connection)

        return note_end

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", note_query)
    for end in (psycopg.AsyncConnection.commit, psycopg.AsyncConnection.rollback):
        monkeypatch.setattr(psycopg.AsyncConnection, end.__name__, noting(end))
    return messages


@contextmanager
def counted(world: World, sent: list[str]) -> Iterator[Work]:
    """Yield what is counted until the block ends."""
    work = Work()
    begun: list[object] = []
    begin = begun.append
    engine = world.bot.database.engine.sync_engine
    event.listen(engine, "begin", begin)
    sent.clear()
    yield work
    event.remove(engine, "begin", begin)
    work.transactions, work.messages = len(begun), sent.copy()


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_a_request_takes_12_round_trips_and_an_approval_24(database_url, sent):
    async with empty_world(database_url, inventory_watch="off") as world:
        jobs, workspace = world.bot.jobs, world.slack.workspace
        await world.slack.until(lambda: not jobs._running)
        # Opens the connections.
        await asyncio.gather(*(world.bot.database.now() for _ in range(20)))
        with counted(world, sent) as add:
            card = await world.asked("add welcome +15550100 for 4h")
            await world.slack.until(lambda: not jobs._running)
        with counted(world, sent) as approval:
            await world.slack.click(ADA, card, "Approve")
            await world.shows(card, "*Applied*")
            await world.slack.until(lambda: workspace.dm(OTTO) and not jobs._running)
    assert add.transactions <= 5
    assert add.round_trips <= 12
    assert add.statements <= 31
    assert approval.transactions <= 11
    assert approval.round_trips <= 24
    assert approval.statements <= 84
