"""When a bot loses a scope, it soon names the scope in its status and, if possible, in an alert."""

import json
from datetime import timedelta

import aiohttp
import pytest

from tests.support.world import ABEL, ADAM, OTTO, WELCOME, running_world

NAMED_WITHIN = timedelta(seconds=150)
# People and groups are looked up again after this time.
NOT_CACHED = timedelta(seconds=300)
AT_FAULT = "Gatehouse's Slack app isn't set up correctly"


def lose(world, scope):
    workspace = world.slack.workspace
    workspace.scopes = tuple(kept for kept in workspace.scopes if kept != scope)


async def readiness(world) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{world.slack.bot_url}/readyz") as answer,
    ):
        return await answer.text()


@pytest.mark.parametrize("scope", ["users:read", "usergroups:read", "groups:read", "im:history"])
async def test_lost_scope_is_named_in_time(sqlite_url, scope):
    async with running_world(sqlite_url, inventory_watch="off") as world:
        await world.ask(ADAM, "/gatehouse", "status")
        began = world.clock.now()
        lose(world, scope)
        alert = await world.slack.until(lambda: world.slack.workspace.messages("C0ALERTS")[0])
        status = await world.ask(ADAM, "/gatehouse", "status")
        assert world.clock.now() - began < NAMED_WITHIN
        for words in (alert.text, status.all_text):
            assert "Needs attention" in words
            assert scope in words
        assert await readiness(world) == "ready, except slack_scopes"


async def test_lost_scope_for_messages_is_named_without_a_message(sqlite_url):
    async with running_world(sqlite_url, inventory_watch="off") as world:
        began = world.clock.now()
        lose(world, "chat:write")
        await world.slack.until(world.bot.health.troubles)
        status = await world.ask(ADAM, "/gatehouse", "status")
        assert world.clock.now() - began < NAMED_WITHIN
        assert "chat:write" in status.all_text
        assert await readiness(world) == "ready, except slack_scopes"


@pytest.mark.parametrize("scope", ["users:read", "usergroups:read"])
async def test_the_answer_blames_the_set_up_for_a_missing_scope(sqlite_url, scope):
    roles = json.dumps({"operator": [OTTO], "approver": ["S0APPROVERS"]})
    async with running_world(sqlite_url, inventory_watch="off", roles=roles) as world:
        card = await world.asked("add welcome +15550001111 for 2h")
        lose(world, scope)
        await world.later(NOT_CACHED)
        assert AT_FAULT in (await world.ask(ABEL, "/orgs")).all_text
        assert AT_FAULT in (await world.click(ABEL, card, "Approve")).all_text
        assert "Please try again" not in (await world.ask(ABEL, "/orgs")).all_text
        assert world.services.state.flows[WELCOME].history == []
