"""The stand-in for Slack refuses the calls that Slack would refuse, so that tests catch them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from sandbox.manifest import read_manifest
from sandbox.slack.delivery import TROUBLE
from sandbox.slack.payloads import escaped
from sandbox.slack.server import RunningSlack, running_slack
from sandbox.slack.workspace import DEFAULT_SCOPES, Workspace
from tests.support.clock import FakeClock

USER = "U0OPERATOR"
BUTTON = {"type": "button", "action_id": "press", "text": {"type": "plain_text", "text": "Press"}}
HOME = {"type": "home", "blocks": [{"type": "actions", "elements": [BUTTON]}]}


def modal(title: str = "Ask") -> dict[str, Any]:
    reason = {
        "type": "input",
        "block_id": "reason",
        "label": {"type": "plain_text", "text": "Reason"},
        "element": {"type": "plain_text_input", "action_id": "text"},
    }
    return {
        "type": "modal",
        "title": {"type": "plain_text", "text": title},
        "submit": {"type": "plain_text", "text": "Send"},
        "blocks": [reason],
    }


@pytest.fixture
async def slack(clock: FakeClock) -> AsyncIterator[RunningSlack]:
    workspace = Workspace(now=lambda: clock.now().timestamp())
    async with running_slack(workspace) as running:
        yield running


@pytest.fixture
async def client(slack: RunningSlack) -> AsyncWebClient:
    return AsyncWebClient(slack.workspace.bot_token, slack.api_url)


async def refused(call: Any) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"channel": "C0ALERTS", "text": ""}, "no_text"),
        ({"channel": "C0ALERTS", "text": "x" * 40_001}, "msg_too_long"),
        ({"channel": "C0ALERTS", "text": "x", "blocks": [section("x" * 3001)]}, "invalid_blocks"),
        ({"channel": "C0NONE", "text": "x"}, "channel_not_found"),
        ({"channel": "C0GENERAL", "text": "x"}, "not_in_channel"),
    ],
)
@pytest.mark.filterwarnings("ignore:The top-level `text`:UserWarning")
async def test_a_message_is_refused_by_name(client, message, error):
    assert await refused(client.chat_postMessage(**message)) == error


async def test_a_missing_scope_is_named(slack, client):
    assert read_manifest().scopes == DEFAULT_SCOPES
    slack.workspace.scopes = ("commands",)
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel="C0ALERTS", text="x")
    assert caught.value.response["needed"] == "chat:write"


async def test_messages_are_posted_once_and_changed_by_their_author(slack, client):
    posted = [
        await client.chat_postMessage(channel="C0ALERTS", text="a", client_msg_id="1")
        for _ in range(2)
    ]
    assert posted[0]["ts"] == posted[1]["ts"]
    theirs = slack.say("U0VIEWER", "C0ALERTS", "mine")
    missing = client.chat_update(channel="C0ALERTS", ts="1.1", text="x")
    foreign = client.chat_update(channel="C0ALERTS", ts=theirs.ts, text="x")
    assert await refused(missing) == "message_not_found"
    assert await refused(foreign) == "cant_update_message"
    await client.chat_update(channel="C0ALERTS", ts=posted[0]["ts"], text="new")
    assert [message.text for message in slack.workspace.messages("C0ALERTS")] == ["new", "mine"]


@pytest.mark.parametrize(
    ("typed", "delivered"),
    [
        ("@otto @nobody", "<@U0OPERATOR|otto> @nobody"),
        ("grace@example.com", "<mailto:grace@example.com|grace@example.com>"),
        ("https://example.com/?a=1&b=2", "<https://example.com/?a=1&amp;b=2>"),
        ("whatsapp:+1555 sip:me@example", "whatsapp:+1555 sip:me@example"),
    ],
)
def test_typed_text_is_escaped_as_slack_does(typed, delivered):
    assert escaped(Workspace(), typed) == delivered


async def test_a_trigger_is_good_once_and_for_three_seconds(slack, client, clock):
    trigger = slack.workspace.new_trigger(USER)
    await client.views_open(trigger_id=trigger, view=modal())
    assert await refused(client.views_open(trigger_id=trigger, view=modal())) == (
        "exchanged_trigger_id"
    )
    late = slack.workspace.new_trigger(USER)
    clock.advance(3.5)
    assert await refused(client.views_open(trigger_id=late, view=modal())) == "expired_trigger_id"


async def post(url: str, body: dict[str, Any]) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
        return answer.status, await answer.text()


async def test_a_response_url_is_good_five_times_for_thirty_minutes(slack, clock):
    first, second = (
        f"{slack.address}/response/{slack.workspace.new_response_url('C0GENERAL', USER)}"
        for _ in range(2)
    )
    await post(first, {"text": "working"})
    answers = [await post(first, {"text": "done", "replace_original": True}) for _ in range(5)]
    assert [status for status, _ in answers] == [200] * 4 + [404]
    assert "used_url" in answers[-1][1]
    assert [ephemeral.text for ephemeral in slack.workspace.ephemerals(USER)] == ["done"]
    clock.advance(30 * 60 + 1)
    status, said = await post(second, {"text": "late"})
    assert (status, "expired_url" in said) == (404, True)


async def test_a_view_that_changed_meanwhile_is_not_replaced(slack, client):
    opened = slack.workspace.open(USER, modal())
    first = opened.hash
    await client.views_update(view_id=opened.id, hash=first, view=modal("New"))
    stale = client.views_update(view_id=opened.id, hash=first, view=modal("Old"))
    assert await refused(stale) == "hash_conflict"
    assert opened.title == "New"
    too_long = client.views_update(view_id=opened.id, view=modal("x" * 25))
    assert await refused(too_long) == "invalid_arguments"
    home = (await client.views_publish(user_id=USER, view=HOME))["view"]["hash"]
    await client.views_publish(user_id=USER, view=HOME, hash=home)
    again = client.views_publish(user_id=USER, view=HOME, hash=home)
    assert await refused(again) == "hash_conflict"


@asynccontextmanager
async def slack_and_bot(answer) -> AsyncIterator[tuple[RunningSlack, list[Any]]]:
    """Run a fake bot. Yield the Slack stand-in and the list of requests sent to the bot."""
    heard: list[Any] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        heard.append((dict(request.headers), await request.text()))
        return await answer()

    app = web.Application()
    app.router.add_post("/slack/events", handle)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with running_slack(bot_url=f"http://127.0.0.1:{runner.addresses[0][1]}") as slack:
        slack.retry_pauses = (0, 0, 0)
        yield slack, heard
    await runner.cleanup()


async def test_an_event_that_fails_is_delivered_again_three_times():
    async def fail():
        return web.Response(status=500)

    async with slack_and_bot(fail) as (slack, heard):
        delivery = await slack.direct_message(USER, "hello & you")
    assert delivery.error == "dispatch_failed"
    assert [headers.get("X-Slack-Retry-Num") for headers, _ in heard] == [None, "1", "2", "3"]
    assert len({json.loads(body)["event_id"] for _, body in heard}) == 1


@pytest.mark.parametrize("errors", [{"reason": "No"}, {"nowhere": "No"}])
async def test_a_submission_shows_the_bots_errors_or_trouble(errors):
    async def answer():
        return web.json_response({"response_action": "errors", "errors": errors})

    async with slack_and_bot(answer) as (slack, _):
        view = slack.workspace.open(USER, modal())
        await slack.submit(USER, view, {"Reason": "x"})
        assert view.errors == (errors if "reason" in errors else {"": TROUBLE})


async def test_a_bot_that_is_silent_is_trouble():
    over = asyncio.Event()

    async def never():
        await over.wait()
        return web.Response()

    async with slack_and_bot(never) as (slack, _):
        slack.wait_for_acknowledgements(0.05)
        view = slack.workspace.open(USER, modal())
        assert (await slack.submit(USER, view, {"Reason": "x"})).error == "operation_timeout"
        assert view.errors == {"": TROUBLE}
        over.set()


@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("none", 200)])
async def test_image_on_another_site_posts_nothing(slack, site, status):
    url = f"{slack.api_url}chat.postMessage?token=xoxb-sandbox&channel=C0ALERTS&text=x"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers={"Sec-Fetch-Site": site}) as answer,
    ):
        assert answer.status == status
    assert len(slack.workspace.messages("C0ALERTS")) == (status == 200)
