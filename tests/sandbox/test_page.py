"""The page's server shows people only what they may see, and refuses requests from other sites."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp.test_utils import unused_port

from sandbox.launch import Sandbox, running_sandbox
from sandbox.slack.messages import Message

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    async with running_sandbox() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(sandbox: Sandbox) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(sandbox.url) as session:
        yield session


async def screen(browser: aiohttp.ClientSession, user: str) -> dict[str, Any]:
    async with browser.get("/page/state", params={"as": user}) as answer:
        shown: dict[str, Any] = await answer.json()
        return shown


async def test_the_page_runs_no_script_but_its_own(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/") as answer:
        policy = answer.headers["Content-Security-Policy"]
        html = await answer.text()
    assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
    assert "unsafe" not in policy
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert "https://" not in html


@pytest.mark.parametrize("name", ["..%2Fweb.py", "nothing.js"])
async def test_nothing_else_is_served(browser: aiohttp.ClientSession, name: str) -> None:
    async with browser.get(f"/page/files/{name}") as answer:
        assert answer.status == 404


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
async def test_no_other_site_can_act(
    browser: aiohttp.ClientSession, headers: dict[str, str]
) -> None:
    body = {"as": "U0ADMIN", "channel": "C0GENERAL", "text": "hi"}
    async with browser.post("/page/say", json=body, headers=headers) as answer:
        assert answer.status == 403


async def test_a_screen_has_only_what_its_person_may_see(
    sandbox: Sandbox, browser: aiohttp.ClientSession
) -> None:
    workspace = sandbox.slack.workspace
    secret = Message("C0GENERAL", workspace.next_ts(), workspace.bot_user_id, "psst")
    secret.only_for = "U0VIEWER"
    workspace.post(secret)
    sandbox.slack.say("U0ADMIN", "C0APPROVALS", "private")
    viewer, guest = await screen(browser, "U0VIEWER"), await screen(browser, "U0GUEST")
    operator = await screen(browser, "U0OPERATOR")
    assert [m["text"] for m in viewer["messages"]][-1:] == ["psst"]
    assert [m["text"] for m in operator["messages"]][-1:] == ["private"]
    assert not {"psst", "private"} & {m["text"] for m in guest["messages"]}
    assert "psst" not in {m["text"] for m in operator["messages"]}
    assert "private" not in {m["text"] for m in viewer["messages"]}
    assert [channel["id"] for channel in guest["channels"]] == ["C0GENERAL", "D0GUEST"]


async def test_a_command_that_the_manifest_does_not_name_is_not_delivered(
    sandbox: Sandbox, browser: aiohttp.ClientSession
) -> None:
    sandbox.slack.bot_url = f"http://127.0.0.1:{unused_port()}"
    body = {"as": "U0VIEWER", "channel": "C0GENERAL", "text": "/shrug hello"}
    async with browser.post("/page/say", json=body) as answer:
        assert await answer.json() == {}
    shown = await screen(browser, "U0VIEWER")
    assert shown["messages"][-1]["text"] == "/shrug is not a command."
