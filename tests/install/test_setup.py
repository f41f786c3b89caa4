"""The wheel in an empty environment: from answers to the first applied test user."""

import asyncio
import os
from contextlib import asynccontextmanager

import aiohttp
import pytest

from sandbox.bot_process import is_ready
from sandbox.ports import free_port
from sandbox.services.state import WELCOME_FLOW
from tests.support.vendors import running_place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PATIENCE_SECONDS = 60


@asynccontextmanager
async def served(place, start):
    """Slack, with the installed bot, started by the line that setup printed."""
    port = free_port()
    process = await asyncio.create_subprocess_shell(
        f"exec env {start}",
        cwd=place.folder,
        env={"PATH": os.environ["PATH"], "HOST": "127.0.0.1", "PORT": str(port)},
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS), aiohttp.ClientSession() as session:
            while not await is_ready(session, f"http://127.0.0.1:{port}"):
                assert process.returncode is None
                await asyncio.sleep(0.05)
        place.slack.bot_url = f"http://127.0.0.1:{port}"
        yield place.slack
    finally:
        process.terminate()
        await process.wait()


async def test_setup_leads_to_a_first_listing_and_a_first_test_user(installed, tmp_path):
    async with running_place(tmp_path, installed / "gatehouse") as place:
        status, said = await place.set_up()
        assert status == 0, said
        start = said.split("Start the bot: ")[1].strip()
        (organization, *_) = place.services.state.data_centers["eu"].organizations
        async with served(place, start) as slack:
            workspace = slack.workspace
            await slack.command("U0OPERATOR", "C0GENERAL", "/orgs", "")
            await slack.until(
                lambda: (
                    organization.organization_id in workspace.ephemerals("U0OPERATOR")[-1].all_text
                )
            )
            asked = "add welcome +15550142 because first"
            await slack.command("U0OPERATOR", "C0GENERAL", "/testusers", asked)
            card = await slack.until(lambda: workspace.messages("C0APPROVALS")[-1])
            await slack.click("U0APPROVER", card, "Approve")
            await slack.until(lambda: "approved by Ada" in card.all_text)
            await slack.until(
                lambda: "+15550142" in place.services.state.flows[WELCOME_FLOW].identities
            )
