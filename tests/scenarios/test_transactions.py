"""A request and its approval need only a few database transactions and round trips."""

import asyncio
from datetime import timedelta

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from sqlalchemy import event

from tests.conftest import BOTH
from tests.support.world import ADA, OTTO, empty_world


@pytest.fixture(autouse=True)
def nothing_else_to_do(monkeypatch):
    """Stop periodic jobs, because their queries would be counted too."""
    monkeypatch.setattr("bot.store.job_loop.POLL_SECONDS", 3600.0)
    monkeypatch.setattr("bot.store.job_loop.RENEW_SECONDS", 3600.0)
    monkeypatch.setattr("bot.checks.health.EVERY", {})
    # The Home tab of whoever clicked is drawn a moment later.
    monkeypatch.setattr("bot.home.publishing.MOMENT", timedelta(hours=1))


@pytest.fixture
def trips(monkeypatch):
    """Record everything that the bot sends to PostgreSQL, with one entry per round trip."""
    sent, execute = [], psycopg.AsyncCursor.execute

    async def note_query(cursor, query, *args, **options):
        sent.append(query)
        return await execute(cursor, query, *args, **options)

    def noting(end):
        async def note_end(connection):
            if connection.info.transaction_status != TransactionStatus.IDLE:
                sent.append(end.__name__)
            await end(connection)

        return note_end

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", note_query)
    for end in (psycopg.AsyncConnection.commit, psycopg.AsyncConnection.rollback):
        monkeypatch.setattr(psycopg.AsyncConnection, end.__name__, noting(end))
    return sent


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_a_request_takes_6_transactions_and_an_approval_15(database_url, trips):
    async with empty_world(database_url, inventory_watch="off") as world:
        jobs, workspace = world.bot.jobs, world.slack.workspace
        begun = []
        await world.slack.until(lambda: not jobs._running)
        # Opens the connections.
        await asyncio.gather(*(world.bot.database.now() for _ in range(20)))
        event.listen(world.bot.database.engine.sync_engine, "begin", begun.append)
        trips.clear()
        card = await world.asked("add welcome +15550100 for 4h")
        await world.slack.until(lambda: not jobs._running)
        assert len(begun) <= 6
        assert len(trips) <= 19
        begun.clear()
        trips.clear()
        await world.slack.click(ADA, card, "Approve")
        await world.shows(card, "*Applied*")
        await world.slack.until(lambda: workspace.dm(OTTO) and not jobs._running)
        assert len(begun) <= 15
        assert len(trips) <= 46
