"""The Slack client handles rate limits, broken responses and incomplete responses."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate

import aiohttp
import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from slack_sdk.web.async_client import AsyncWebClient
from yarl import URL

from bot.errors import SlackRateLimited, SlackUnreachable
from bot.slack.client import SlackClient
from bot.slack.messages.block_kit import Message
from bot.slack.replies import Replies, is_of_slack
from tests.support.clock import FakeClock


@asynccontextmanager
async def answering(body: str, kind: str = "application/json") -> AsyncIterator[SlackClient]:
    """Yield a Slack client that gets the same response to every call."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=body, content_type=kind)

    async with client_of(answer, FakeClock()) as slack:
        yield slack


@asynccontextmanager
async def client_of(answer, clock: FakeClock) -> AsyncIterator[SlackClient]:
    """Yield a Slack client. The handler `answer` responds to the client's calls."""
    app = web.Application()
    app.router.add_route("*", "/{method}", answer)
    async with TestServer(app) as server, ClientSession() as session:
        url = str(server.make_url("/"))
        web_client = AsyncWebClient("xoxb-1", url, session=session, retry_handlers=[])
        yield SlackClient(web_client, clock)


async def test_a_method_is_left_alone_for_as_long_as_slack_asks() -> None:
    clock, called = FakeClock(), []

    async def answer(request: web.Request) -> web.Response:
        called.append(name := request.match_info["method"])
        is_first = called.count("users.info") == 1 and name == "users.info"
        if is_first:
            return web.Response(status=429, headers={"Retry-After": "30"})
        return web.json_response({"ok": True, "user": {"id": "U1"}, "users": []})

    async with client_of(answer, clock) as slack:
        for seconds in (0, 0, 29.5):
            clock.advance(seconds)
            with pytest.raises(SlackRateLimited):
                await slack.user("U1")
        assert await slack.members("S1") == frozenset()
        clock.advance(0.5)
        assert (await slack.user("U1")).name == "U1"
    assert called == ["users.info", "usergroups.users.list", "users.info"]


async def test_one_full_channel_holds_up_no_other() -> None:
    clock, posted = FakeClock(), []

    async def answer(request: web.Request) -> web.Response:
        channel = (await request.post() or await request.json())["channel"]
        posted.append(channel)
        if channel == "C0CARDS":
            return web.Response(status=429, headers={"Retry-After": "30"})
        return web.json_response({"ok": True, "channel": channel, "ts": "1.2"})

    async def post(slack: SlackClient, channel: str) -> tuple[str, str]:
        return await slack.post(channel, Message("x"), thread_ts=None, client_msg_id="1")

    async with client_of(answer, clock) as slack:
        for _ in range(2):
            with pytest.raises(SlackRateLimited):
                await post(slack, "C0CARDS")
        assert await post(slack, "C0ALERTS") == ("C0ALERTS", "1.2")
    assert posted == ["C0CARDS", "C0ALERTS"]


@pytest.mark.parametrize("told", ["inf", "1e400", "9" * 400, "86400"])
async def test_a_method_is_never_left_alone_for_good(told) -> None:
    clock, answers = FakeClock(), [web.Response(status=429, headers={"Retry-After": told})]

    async def answer(_: web.Request) -> web.Response:
        user = {"ok": True, "user": {"id": "U1"}}
        return answers.pop() if answers else web.json_response(user)

    async with client_of(answer, clock) as slack:
        for _ in range(2):
            with pytest.raises(SlackRateLimited):
                await slack.user("U1")
        clock.advance(3600)
        assert (await slack.user("U1")).name == "U1"


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
async def test_a_broken_answer_about_a_person_is_a_known_error(body: str, kind: str) -> None:
    async with answering(body, kind) as slack:
        with pytest.raises(SlackUnreachable):
            await slack.user("U1")


@pytest.mark.parametrize("kind", ["application/json", "text/html", "text/plain"])
@pytest.mark.parametrize("body", ["", "<html>", "[1]", "{}"])
async def test_a_429_is_obeyed_whatever_its_body_is(body: str, kind: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        headers = {"Retry-After": "30"}
        return web.Response(status=429, text=body, content_type=kind, headers=headers)

    async with client_of(answer, FakeClock()) as slack:
        with pytest.raises(SlackRateLimited) as caught:
            await slack.user("U1")
    assert caught.value.retry_after_seconds == 30


@pytest.mark.parametrize(
    "error", ["team_added_to_org", "org_login_required", "external_channel_migrating"]
)
async def test_what_passes_while_a_workspace_moves_is_no_refusal(error: str) -> None:
    async with answering(json.dumps({"ok": False, "error": error})) as slack:
        with pytest.raises(SlackUnreachable):
            await slack.who_am_i()


async def test_a_429_is_obeyed_until_a_date() -> None:
    async def answer(_: web.Request) -> web.Response:
        then = formatdate(time.time() + 300, usegmt=True)
        return web.Response(status=429, headers={"retry-after": then})

    async with client_of(answer, FakeClock()) as slack:
        with pytest.raises(SlackRateLimited) as caught:
            await slack.user("U1")
    assert 298 < caught.value.retry_after_seconds <= 300


async def test_a_link_that_slack_leaves_out_is_asked_for_again() -> None:
    links = ["", "https://example.slack.com/archives/C1/p1"]

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"ok": True, "permalink": links.pop(0)})

    async with client_of(answer, FakeClock()) as slack:
        assert await slack.permalink("C1", "1.0") == ""
        link = await slack.permalink("C1", "1.0")
        assert link == await slack.permalink("C1", "1.0") != ""


async def test_a_person_needs_no_more_than_an_id() -> None:
    async with answering('{"ok": true, "user": {"id": "U1", "profile": "x"}}') as slack:
        user = await slack.user("U1")
    assert (user.name, user.team_id, user.is_full_member) == ("U1", "", True)


class NoDirectMessages:
    async def post(self, *_, **__):
        raise AssertionError("this was said already")


async def test_a_message_counts_as_sent_though_slacks_answer_breaks_off():
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


@pytest.mark.parametrize(
    ("written", "name"),
    [("Ada", "Ada"), ("A\0da\ud800", "A?da?"), ("\u200b\u2060", "U0ADA"), ("", "U0ADA")],
)
async def test_a_name_can_be_seen_and_stored(written, name):
    async with answering(json.dumps({"ok": True, "user": {"real_name": written}})) as slack:
        assert (await slack.user("U0ADA")).name == name
