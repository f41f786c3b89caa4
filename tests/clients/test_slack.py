"""Whatever Slack answers, the bot gets a person, or one error that it knows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from slack_sdk.web.async_client import AsyncWebClient

from bot.clients.slack import SlackClient
from bot.errors import SlackUnreachable


@asynccontextmanager
async def answering(body: str, kind: str = "application/json") -> AsyncIterator[SlackClient]:
    """A client of a Slack that answers everything with the same body."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=body, content_type=kind)

    app = web.Application()
    app.router.add_route("*", "/{method}", answer)
    async with TestServer(app) as server, ClientSession() as session:
        url = str(server.make_url("/"))
        web_client = AsyncWebClient("xoxb-1", url, session=session, retry_handlers=[])
        yield SlackClient(web_client)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("<html>", "text/html"),
        ("<html>", "text/plain"),
        ("<html>", "application/json"),
        ("", "application/json"),
        ("[1]", "application/json"),
        ('"x"', "application/json"),
        ("null", "application/json"),
        ("[" * 50_000, "application/json"),
        ('{"ok": true}', "application/json"),
        ('{"ok": true, "user": "x"}', "application/json"),
    ],
)
async def test_what_is_no_person_is_an_error_that_is_known(body: str, kind: str) -> None:
    async with answering(body, kind) as slack:
        with pytest.raises(SlackUnreachable):
            await slack.user("U1")


async def test_a_person_needs_no_more_than_an_id() -> None:
    async with answering('{"ok": true, "user": {"id": "U1", "profile": "x"}}') as slack:
        user = await slack.user("U1")
    assert (user.name, user.team_id, user.is_guest) == ("U1", "", False)
