"""The greedy script: blocked when it calls directly, and never through the gateway."""

import asyncio

import aiohttp
import pytest

from sandbox.greedy import CLIENT
from sandbox.launch import running_sandbox
from sandbox.patience import PATIENCE_SECONDS

READY_SECONDS = PATIENCE_SECONDS

pytestmark = pytest.mark.slow


async def report_when(session, condition) -> dict:
    async with asyncio.timeout(60):
        while True:
            async with session.get("/page/greedy") as answer:
                report = await answer.json()
            if condition(report["runs"]):
                return report
            await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0.1))])


async def test_greedy_script_is_refused_only_without_the_gateway():
    async with running_sandbox() as sandbox, aiohttp.ClientSession(sandbox.url) as session:
        await asyncio.wait_for(sandbox.bot.start(), READY_SECONDS)
        order = {"through": "gateway", "seconds": 20}
        async with session.post("/page/greedy", json=order) as answer:
            assert (await answer.json())["runs"]["gateway"]["running"]
        report = await report_when(session, lambda runs: runs["gateway"]["passed"] >= 70)
        assert report["client"] == CLIENT
        assert report["gateway_url"].rsplit(":")[-1] == str(sandbox.bot._settings["GATEWAY_PORT"])
        async with session.post("/page/greedy/stop", json={"through": "gateway"}) as answer:
            run = (await answer.json())["runs"]["gateway"]
        assert not run["running"]
        assert run["refused"] == {}
        assert sandbox.services.state.refused == []
        organization = run["organization_id"]
        await sandbox.slack.command("U0OPERATOR", "C0GENERAL", "/ratelimits", organization)
        seen = sandbox.slack.workspace.ephemerals
        await sandbox.slack.until(lambda: f"`{CLIENT}`" in seen("U0OPERATOR")[-1].all_text)
        await session.post("/page/greedy", json={"through": "directly", "data_center": "com"})
        await report_when(session, lambda runs: runs["directly"]["refused"].get("44"))
