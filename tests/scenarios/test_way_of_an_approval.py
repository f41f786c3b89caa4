"""What lies between the click on Approve and the POST: each transaction is a wait for the disk."""

import asyncio
from contextlib import asynccontextmanager

import pytest
import structlog

from bot.clients.flow import FlowClient
from bot.store import jobs
from bot.store.engine import Database
from bot.workflows.testusers.deciding import Deciding
from tests.support.world import running_world

OTTO, ADA = "U0OPERATOR", "U0APPROVER"
DECIDED, POSTED = "decided", "posted"
# The claims of the loop that hand out the click or the change; and the loop's name.
CLAIMED, LOOP = "claimed", "jobs"


@pytest.fixture
def steps(monkeypatch):
    """The transactions by who opened them, and the two moments between them."""
    steps = []

    def noted(name):
        honest = getattr(Database, name)

        @asynccontextmanager
        async def opened(self):
            job = structlog.contextvars.get_contextvars().get("job", "")
            task = asyncio.current_task().get_name()
            steps.append((name, job.partition(":")[0] or task))
            async with honest(self) as tx:
                yield tx

        monkeypatch.setattr(Database, name, opened)

    for name in ("transaction", "autocommit", "read_only"):
        noted(name)
    claim, decide, replace = jobs.claim, Deciding.decide, FlowClient.replace

    async def claiming(*given, **more):
        claimed = await claim(*given, **more)
        if {one.key.partition(":")[0] for one in claimed} & {"click", "apply"}:
            steps.append((CLAIMED, LOOP))
        return claimed

    async def deciding(self, *given):
        decided = await decide(self, *given)
        steps.append(DECIDED)
        return decided

    async def replacing(self, *given):
        steps.append(POSTED)
        return await replace(self, *given)

    monkeypatch.setattr(jobs, "claim", claiming)
    monkeypatch.setattr(Deciding, "decide", deciding)
    monkeypatch.setattr(FlowClient, "replace", replacing)
    return steps


def on_the_way(steps):
    """Those that the POST waits for: not the card's, the answer's, nor the watch's."""
    before = steps[: steps.index(POSTED)]
    until = {"click": before.index(DECIDED), "apply": len(before)}
    elsewhere = {"send", "slack"}
    for at, (name, who) in enumerate(one if one != DECIDED else ("", "") for one in before):
        if who in until:
            is_counted = at < until[who]
        else:
            # What else the loop claims, and whether anything is due: that nothing waits for.
            is_counted = who not in elsewhere and (who != LOOP or name == CLAIMED)
        if name and is_counted:
            yield name, who


async def test_six_transactions_lie_between_the_click_and_the_post(database_url, steps):
    async with running_world(database_url, inventory_watch="off") as world:
        await world.ask(OTTO, "/testusers", "add welcome +1")
        cards = world.slack.workspace.messages
        card = (await world.slack.until(lambda: cards("C0APPROVALS")))[0]
        steps.clear()
        await world.slack.click(ADA, card, "Approve")
        await world.slack.until(lambda: "Applied" in card.all_text)
    assert len(list(on_the_way(steps))) <= 6, list(on_the_way(steps))
