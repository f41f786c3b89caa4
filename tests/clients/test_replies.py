"""What a response_url answers, where it is not what Slack's own server would say."""

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from bot.slack.messages.block_kit import Message
from bot.slack.replies import Replies, is_of_slack
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
        replies = Replies(session, FakeClock(), NoDirectMessages(), "http://127.0.0.1:1/api/")
        assert await replies.say(str(server.make_url("/")), Message("done"), to="U0VIEWER")
    assert [post["text"] for post in posts] == ["done"]


REAL, STAND_IN = "https://slack.com/api/", "http://127.0.0.1:9000/api/"


@pytest.mark.parametrize(
    ("response_url", "slack", "is_theirs"),
    [
        ("https://hooks.slack.com/commands/T1/2/3", REAL, True),
        ("https://hooks.slack.com:443/actions/T1/2/3", REAL, True),
        ("https://hooks.slack-gov.com/commands/T1/2/3", REAL, True),
        ("http://hooks.slack.com/commands/T1/2/3", REAL, False),
        ("https://hooks.slack.com:8443/x", REAL, False),
        ("https://hooks.slack.com.evil.example/x", REAL, False),
        ("https://me:pw@hooks.slack.com/x", REAL, False),
        ("https://evil.example/x", REAL, False),
        ("http://127.0.0.1:18080/internal/admin?x=1", REAL, False),
        ("http://169.254.169.254/latest", REAL, False),
        ("file:///etc/passwd", REAL, False),
        ("not a url", REAL, False),
        ("http://[::1", REAL, False),
        ("http://127.0.0.1:18080/response/1", STAND_IN, True),
        ("http://localhost:18080/response/1", STAND_IN, True),
        ("https://hooks.slack.com/x", STAND_IN, True),
        ("http://10.0.0.1/x", STAND_IN, False),
        ("https://slack.example.com/response/1", "https://slack.example.com/api/", True),
        ("https://slack.example.com:8443/x", "https://slack.example.com/api/", False),
    ],
)
def test_only_addresses_of_slack_are_posted_to(response_url, slack, is_theirs):
    assert is_of_slack(response_url, URL(slack)) is is_theirs
