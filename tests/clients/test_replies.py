"""What a response_url answers, where it is not what Slack's own server would say."""

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.clients.replies import Replies
from bot.ui.message import Message
from tests.support.clock import FakeClock


class NoDirectMessages:
    async def post(self, *_, **__):
        raise AssertionError("this was said already")


async def test_what_slack_takes_is_taken_though_its_words_break_off():
    posts = []

    async def break_off(request):
        posts.append(await request.json())
        response = web.StreamResponse(headers={"Content-Length": "2"})
        await response.prepare(request)
        request.transport.close()
        return response

    app = web.Application()
    app.router.add_post("/", break_off)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        replies = Replies(session, FakeClock(), NoDirectMessages())
        assert await replies.say(str(server.make_url("/")), Message("done"), to="U0VIEWER")
    assert [one["text"] for one in posts] == ["done"]
