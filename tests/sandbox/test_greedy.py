"""The greedy script is blocked if it calls the service directly, but not if it uses the gateway."""

import asyncio

import aiohttp
import pytest

from sandbox.greedy import CLIENT
from sandbox.launch import running_sandbox
from sandbox.patience import PATIENCE_SECONDS

READY_SECONDS = PATIENCE_SECONDS

pytestmark = pytest.mark.slow


async def run_when(session, way, condition) -> dict:
    async with asyncio.timeout(60):
        while True:
            async with session.get("/page/services") as answer:
                runs = (await answer.json())["greedy"]
            if way in runs and condition(runs[way]):
                return runs[way]
            await asyncio.sleep(0.1)


async def test_another_api_refuses_the_script_only_without_the_gateway():
    async with running_sandbox() as sandbox, aiohttp.ClientSession(sandbox.url) as session:
        await asyncio.wait_for(sandbox.bot.start(), READY_SECONDS)
        order = {"data_center": "api", "organization_id": "weather"}
        await session.post("/page/panel/greedy", json={"through": "gateway", **order})
        await run_when(session, "gateway", lambda run: run["passed"] == 30)
        run = await run_when(session, "gateway", lambda run: run["waiting"] > 0)
        assert (run["passed"], run["refused"]) == (30, {})
        await session.post("/page/panel/greedy", json={"through": "directly", **order})
        await run_when(session, "directly", lambda run: run["refused"].get("429", 0) > 0)


async def test_greedy_script_is_refused_only_without_the_gateway():
    async with running_sandbox() as sandbox, aiohttp.ClientSession(sandbox.url) as session:
        await asyncio.wait_for(sandbox.bot.start(), READY_SECONDS)
        listed = sandbox.services.state.data_centers["eu"].organizations
        organization = listed[0].organization_id
        order = {"data_center": "eu", "organization_id": organization}
        await session.post("/page/panel/greedy", json={"through": "gateway", **order})
        await run_when(session, "gateway", lambda run: run["running"] and run["passed"] >= 70)
        await session.post("/page/panel/greedy", json={"through": "gateway"})
        run = await run_when(session, "gateway", lambda run: not run["running"])
        assert run["refused"] == {}
        assert run["sent"] == run["passed"] + sum(run["declined"].values())
        assert sandbox.services.state.refused == []
        await sandbox.slack.command("U0OPERATOR", "C0GENERAL", "/ratelimits", organization)
        seen = sandbox.slack.workspace.ephemerals
        await sandbox.slack.until(lambda: f"`{CLIENT}`" in seen("U0OPERATOR")[-1].all_text)
        await session.post("/page/panel/greedy", json={"through": "directly", **order})
        await run_when(session, "directly", lambda run: run["refused"].get("44"))


async def test_a_program_that_asks_twice_gets_one_card():
    async with running_sandbox() as sandbox, aiohttp.ClientSession(sandbox.url) as session:
        await asyncio.wait_for(sandbox.bot.start(), READY_SECONDS)
        answers = []
        for _ in range(2):
            await session.post("/page/panel/ask", json={"text": "add welcome +15550142 for 2h"})
            async with session.get("/page/services") as answer:
                answers.append((await answer.json())["answer"])
        assert answers[0] == answers[1]
        assert answers[0].startswith("202 ")
        cards = sandbox.slack.workspace.messages
        await sandbox.slack.until(lambda: cards("C0APPROVALS"))
        assert len(cards("C0APPROVALS")) == 1
        assert "Otto Operator (through *script*)" in cards("C0APPROVALS")[0].all_text
