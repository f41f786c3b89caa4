"""The stand-in's Home tabs, events with their retries, direct messages and shortcuts."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from sandbox.slack.delivery import sign
from sandbox.slack.server import SIGNING_SECRET, RunningSlack, running_slack

USER = "U0OPERATOR"
HOME = {
    "type": "home",
    "blocks": [
        {
            "type": "actions",
            "elements": [
                {
                    "type": "button",
                    "action_id": "press",
                    "value": "7",
                    "text": {"type": "plain_text", "text": "Press"},
                }
            ],
        }
    ],
}


class Heard:
    """What a bot was sent: the payloads, and the headers of each."""

    def __init__(self, statuses: Callable[[int], int]) -> None:
        self.payloads: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._statuses = statuses

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.text()
        timestamp = request.headers["X-Slack-Request-Timestamp"]
        assert request.headers["X-Slack-Signature"] == sign(SIGNING_SECRET, timestamp, body)
        if request.content_type == "application/json":
            self.payloads.append(json.loads(body))
        else:
            self.payloads.append(json.loads(str((await request.post())["payload"])))
        self.headers.append(dict(request.headers))
        return web.Response(status=self._statuses(len(self.payloads)))


@asynccontextmanager
async def slack_and_bot(
    statuses: Callable[[int], int] = lambda _: 200,
) -> AsyncIterator[tuple[RunningSlack, Heard]]:
    heard = Heard(statuses)
    app = web.Application()
    app.router.add_post("/slack/events", heard.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with running_slack(bot_url=url) as slack:
        slack.retry_pauses = (0, 0, 0)
        yield slack, heard
    await runner.cleanup()


def client(slack: RunningSlack) -> AsyncWebClient:
    return AsyncWebClient("xoxb-sandbox", base_url=slack.api_url)


async def test_home_tab_is_published_and_its_button_pressed() -> None:
    async with slack_and_bot() as (slack, heard):
        await slack.open_home(USER)
        assert "view" not in heard.payloads[0]["event"]
        answer = await client(slack).views_publish(user_id=USER, view=HOME)
        home = slack.workspace.homes[USER]
        assert (home.buttons, answer["view"]["hash"]) == (["Press"], home.hash)
        await slack.click(USER, home, "Press")
        await slack.open_home(USER)
    opened, pressed, again = heard.payloads
    assert opened["event"]["type"] == "app_home_opened"
    assert pressed["container"] == {"type": "view", "view_id": home.id}
    assert pressed["view"]["type"] == "home"
    assert "response_url" not in pressed
    assert again["event"]["view"]["hash"] == home.hash


async def test_publish_with_an_old_hash_is_refused() -> None:
    async with slack_and_bot() as (slack, _):
        first = await client(slack).views_publish(user_id=USER, view=HOME)
        old = first["view"]["hash"]
        await client(slack).views_publish(user_id=USER, view=HOME, hash=old)
        with pytest.raises(SlackApiError, match="hash_conflict"):
            await client(slack).views_publish(user_id=USER, view=HOME, hash=old)
        assert len(slack.workspace.homes[USER].versions) == 1


@pytest.mark.parametrize("wrong", [{"title": {"type": "plain_text", "text": "x"}}, {"blocks": []}])
async def test_home_tab_that_slack_would_not_take_is_refused(wrong: dict[str, Any]) -> None:
    async with slack_and_bot() as (slack, _):
        with pytest.raises(SlackApiError, match="invalid_arguments"):
            await client(slack).views_publish(user_id=USER, view=HOME | wrong)
        assert slack.workspace.homes == {}


async def test_event_that_fails_is_delivered_again_three_times() -> None:
    async with slack_and_bot(lambda _: 500) as (slack, heard):
        delivery = await slack.direct_message(USER, "hello & you")
    assert delivery.error == "dispatch_failed"
    assert len({one["event_id"] for one in heard.payloads}) == 1
    assert [one.get("X-Slack-Retry-Num") for one in heard.headers] == [None, "1", "2", "3"]
    event = heard.payloads[0]["event"]
    assert (event["type"], event["channel_type"]) == ("message", "im")
    assert event["text"] == "hello &amp; you"


async def test_event_is_delivered_again_until_it_is_taken() -> None:
    async with slack_and_bot(lambda count: 500 if count == 1 else 200) as (slack, heard):
        assert (await slack.direct_message(USER, "hello")).status == 200
    assert len(heard.payloads) == 2


async def test_event_that_was_taken_can_come_again() -> None:
    async with slack_and_bot() as (slack, heard):
        await slack.direct_message(USER, "hello", again=2)
    assert len(heard.payloads) == 3
    assert len(slack.workspace.dm(USER)) == 1


async def test_shortcuts_carry_what_slack_sends() -> None:
    async with slack_and_bot() as (slack, heard):
        message = slack.say(USER, "C0GENERAL", "call +15550100")
        await slack.shortcut(USER, "ask")
        await slack.message_shortcut(USER, message, "take")
    shortcut, action = heard.payloads
    assert (shortcut["type"], shortcut["callback_id"]) == ("shortcut", "ask")
    assert "response_url" not in shortcut
    assert (action["type"], action["callback_id"]) == ("message_action", "take")
    assert action["message"]["text"] == "call +15550100"
    assert action["response_url"].startswith(slack.address)


async def test_another_process_can_do_the_same() -> None:
    async with slack_and_bot() as (slack, heard), aiohttp.ClientSession(slack.address) as http:
        message = slack.say(USER, "C0GENERAL", "call +15550100")
        home = slack.workspace.publish(USER, HOME)
        place = {"channel": "C0GENERAL", "ts": message.ts}
        for name, body in (
            ("homes", {"user": USER}),
            ("messages", {"user": USER, "text": "orgs", "again": 1}),
            ("shortcuts", {"user": USER, "callback_id": "ask"}),
            ("shortcuts", {"user": USER, "callback_id": "take", **place}),
            ("presses", {"user": USER, "view_id": home.id, "action_id": "press"}),
        ):
            async with http.post(f"/_control/{name}", json=body) as answer:
                assert (await answer.json())["status"] == 200
        async with http.get(f"/_control/homes/{USER}") as answer:
            assert (await answer.json())["view"]["id"] == home.id
        async with http.get("/_control/homes/U0ADMIN") as answer:
            assert await answer.json() == {"view": None}
        async with http.post("/_control/presses", json={"user": USER}) as answer:
            assert answer.status == 400
    kinds = [one.get("event", one)["type"] for one in heard.payloads]
    assert kinds == [
        *("app_home_opened", "message", "message"),
        *("shortcut", "message_action", "block_actions"),
    ]
