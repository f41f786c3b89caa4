"""The database transactions that a request and its approval take."""

import pytest
from sqlalchemy import event

from tests.conftest import BOTH
from tests.support.world import ADA, OTTO, empty_world


@pytest.fixture(autouse=True)
def nothing_else_to_do(monkeypatch):
    """Stop periodic jobs, and the search for a card that isn't posted yet."""
    monkeypatch.setattr("bot.store.job_loop.POLL_SECONDS", 3600.0)
    monkeypatch.setattr("bot.checks.health.EVERY", {})
    monkeypatch.setattr("bot.testusers.rendering.TRIES", 1)


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_a_request_takes_8_transactions_and_an_approval_16(database_url):
    async with empty_world(database_url, inventory_watch="off") as world:
        jobs, workspace = world.bot.jobs, world.slack.workspace
        begun = []
        await world.slack.until(lambda: not jobs._running)
        event.listen(world.bot.database.engine.sync_engine, "begin", begun.append)
        card = await world.asked("add welcome +15550100 for 4h")
        await world.slack.until(lambda: not jobs._running)
        assert len(begun) <= 8
        begun.clear()
        await world.slack.click(ADA, card, "Approve")
        await world.shows(card, "*Applied*")
        await world.slack.until(lambda: workspace.dm(OTTO) and not jobs._running)
        assert len(begun) <= 16
