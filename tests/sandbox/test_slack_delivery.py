"""The stand-in Slack as people use it: commands, buttons, modals and what the bot answers.

The bot here is a small one made with Bolt, which checks signatures and reads payloads on its own.
"""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from sandbox.slack.filling import NotThereError
from sandbox.slack.payloads import escaped
from sandbox.slack.server import RunningSlack, running_slack
from sandbox.slack.workspace import Workspace

MODAL: dict[str, Any] = {
    "type": "modal",
    "callback_id": "ask",
    "title": {"type": "plain_text", "text": "Ask"},
    "submit": {"type": "plain_text", "text": "Send"},
    "blocks": [
        {
            "type": "input",
            "block_id": "flow",
            "label": {"type": "plain_text", "text": "Flow"},
            "element": {"type": "external_select", "action_id": "flows", "min_query_length": 0},
        },
        {
            "type": "input",
            "block_id": "reason",
            "optional": True,
            "label": {"type": "plain_text", "text": "Reason"},
            "element": {"type": "plain_text_input", "action_id": "text"},
        },
    ],
}


def card(words: str) -> list[dict[str, Any]]:
    button = {
        "type": "button",
        "action_id": "press",
        "value": "7",
        "text": {"type": "plain_text", "text": words},
    }
    return [{"type": "actions", "elements": [button]}]


class Seen(list[Any]):
    """What the small bot was sent; whoever waits for it looks again."""

    def __init__(self, slack: RunningSlack) -> None:
        super().__init__()
        self._slack = slack

    def append(self, what: Any) -> None:
        super().append(what)
        self._slack.workspace.changed()


def small_bot(slack: RunningSlack, clock: Any) -> AsyncApp:
    async def authorize(**_: Any) -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=None, team_id="T0GATEHOUSE", bot_token="xoxb-sandbox", bot_id="B"
        )

    client = AsyncWebClient(base_url=slack.api_url)
    app = AsyncApp(client=client, authorize=authorize, signing_secret=slack.signing_secret)
    seen = Seen(slack)
    app.seen = seen  # type: ignore[attr-defined]

    @app.command("/echo")
    async def echo(ack: Any, command: Any) -> None:
        await ack(f"{command['user_id']} {command['channel_name']} {command['text']}")

    @app.command("/card")
    async def show(ack: Any, respond: Any) -> None:
        await ack()
        await respond(text="a card", blocks=card("Press"))

    @app.command("/ask")
    async def ask(ack: Any, command: Any, client: Any) -> None:
        clock.later(float(command["text"] or 0))
        await ack()
        try:
            await client.views_open(trigger_id=command["trigger_id"], view=MODAL)
        except SlackApiError as refusal:
            seen.append(refusal.response["error"])

    @app.action("press")
    async def press(ack: Any, body: Any, respond: Any) -> None:
        await ack()
        seen.append(body)
        await respond(text="pressed", replace_original=True)

    @app.options("flows")
    async def flows(ack: Any, payload: Any) -> None:
        names = [name for name in ("welcome", "survey") if name.startswith(payload["value"])]
        text = [{"text": {"type": "plain_text", "text": n}, "value": n.upper()} for n in names]
        await ack(options=text)

    @app.view("ask")
    async def submitted(ack: Any, view: Any) -> None:
        values = view["state"]["values"]
        seen.append(values)
        if values["reason"]["text"]["value"] == "bad":
            await ack(response_action="errors", errors={"reason": "Say why"})
        else:
            await ack()

    return app


class Clock:
    def __init__(self) -> None:
        self.time = 1_800_000_000.0

    def __call__(self) -> float:
        return self.time

    def later(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def slack(clock: Clock) -> AsyncIterator[RunningSlack]:
    async with running_slack(Workspace(now=clock)) as running:
        running.bot = small_bot(running, clock)  # type: ignore[attr-defined]
        runner = web.AppRunner(running.bot.web_app(path="/slack/events"))  # type: ignore[attr-defined]
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        running.bot_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield running
        await runner.cleanup()


def seen(slack: RunningSlack) -> list[Any]:
    return slack.bot.seen  # type: ignore[attr-defined,no-any-return]


async def test_command_is_delivered_as_typed_and_answered_privately(
    slack: RunningSlack,
) -> None:
    delivery = await slack.command("U0VIEWER", "C0GENERAL", "/echo", "hi @otto & <b> #alerts")
    expected = "U0VIEWER general hi <@U0OPERATOR|otto> &amp; &lt;b&gt; <#C0ALERTS|alerts>"
    assert delivery.status == 200
    assert [m.text for m in slack.workspace.ephemerals("U0VIEWER")] == [expected]
    assert slack.workspace.messages("C0GENERAL") == []


@pytest.mark.parametrize(
    ("typed", "delivered"),
    [
        (
            "@otto, @nobody @approvers.",
            "<@U0OPERATOR|otto>, @nobody <!subteam^S0APPROVERS|@approvers>.",
        ),
        ("grace@example.com", "<mailto:grace@example.com|grace@example.com>"),
        ("https://example.com/?a=1&b=2", "<https://example.com/?a=1&amp;b=2>"),
        ("whatsapp:+1555 sip:me@example", "whatsapp:+1555 sip:me@example"),
    ],
)
def test_what_is_typed_is_delivered_as_should_escape_has_it(typed: str, delivered: str) -> None:
    assert escaped(Workspace(), typed) == delivered


async def test_a_command_in_the_direct_messages_says_so(slack: RunningSlack) -> None:
    delivery = await slack.command("U0VIEWER", "D0VIEWER", "/echo", "x")
    assert delivery.body == "U0VIEWER directmessage x"


async def test_an_unknown_command_shows_slacks_own_error(slack: RunningSlack) -> None:
    delivery = await slack.command("U0VIEWER", "C0GENERAL", "/nothing")
    assert delivery.error == "dispatch_failed"
    assert "dispatch_failed" in slack.workspace.ephemerals("U0VIEWER")[0].text


async def test_forged_and_honest_signatures_differ(slack: RunningSlack) -> None:
    body = "command=/echo&text=x&user_id=U&channel_name=c"
    headers = slack.signed_headers(body)
    assert (await slack.raw(body, headers)).status == 200
    assert (await slack.raw(body, {**headers, "X-Slack-Signature": "v0=00"})).status == 401


async def test_a_button_works_and_its_message_is_replaced(slack: RunningSlack) -> None:
    await slack.command("U0VIEWER", "C0GENERAL", "/card")
    message = await slack.until(lambda: slack.workspace.ephemerals("U0VIEWER")[0])
    assert message.buttons == ["Press"]
    await slack.click("U0VIEWER", message, "Press")
    await slack.until(lambda: message.text == "pressed")
    await slack.click("U0VIEWER", message, "press")  # on a screen that was not redrawn yet
    await slack.until(lambda: len(seen(slack)) == 2)
    payload = seen(slack)[0]
    assert payload["actions"][0]["value"] == "7"
    assert payload["container"]["is_ephemeral"]
    assert payload["user"] == {
        "id": "U0VIEWER",
        "username": "vera",
        "name": "vera",
        "team_id": "T0GATEHOUSE",
    }


async def test_pressing_what_is_not_there_says_what_is(slack: RunningSlack) -> None:
    await slack.command("U0VIEWER", "C0GENERAL", "/card")
    message = await slack.until(lambda: slack.workspace.ephemerals("U0VIEWER")[0])
    with pytest.raises(NotThereError, match="nothing called 'Approve'"):
        await slack.click("U0VIEWER", message, "Approve")


async def test_a_modal_is_filled_in_and_sent(slack: RunningSlack) -> None:
    await slack.command("U0OPERATOR", "C0GENERAL", "/ask")
    view = await slack.until(lambda: slack.workspace.open_view("U0OPERATOR"))
    offered = await slack.suggest("U0OPERATOR", view, "Flow", "wel")
    assert [option["value"] for option in offered] == ["WELCOME"]
    await slack.submit("U0OPERATOR", view, {"Flow": "welcome", "Reason": "bad"})
    assert view.errors == {"reason": "Say why"}
    await slack.submit("U0OPERATOR", view, {"reason": ""})
    assert slack.workspace.open_view("U0OPERATOR") is None
    values = seen(slack)[-1]
    assert values["flow"]["flows"]["selected_option"]["value"] == "WELCOME"
    assert values["reason"]["text"] == {"type": "plain_text_input", "value": None}


async def test_a_modal_with_an_empty_required_input_is_not_sent(slack: RunningSlack) -> None:
    await slack.command("U0OPERATOR", "C0GENERAL", "/ask")
    view = await slack.until(lambda: slack.workspace.open_view("U0OPERATOR"))
    with pytest.raises(NotThereError, match="required"):
        await slack.submit("U0OPERATOR", view, {"Reason": "x"})
    assert seen(slack) == []


async def test_a_trigger_is_good_for_three_seconds(slack: RunningSlack) -> None:
    await slack.command("U0OPERATOR", "C0GENERAL", "/ask", "3.5")
    assert await slack.until(lambda: seen(slack)) == ["expired_trigger_id"]


async def test_a_trigger_is_good_once(slack: RunningSlack) -> None:
    trigger_id = slack.workspace.new_trigger("U0OPERATOR")
    client = AsyncWebClient("xoxb-sandbox", slack.api_url)
    await client.views_open(trigger_id=trigger_id, view=MODAL)
    with pytest.raises(SlackApiError, match="exchanged_trigger_id"):
        await client.views_open(trigger_id=trigger_id, view=MODAL)


async def post(url: str, body: dict[str, Any]) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
        return answer.status, await answer.text()


async def test_a_response_url_is_good_five_times(slack: RunningSlack) -> None:
    key = slack.workspace.new_response_url("C0GENERAL", "U0VIEWER")
    url = f"{slack.address}/response/{key}"
    answers = [await post(url, {"text": str(n)}) for n in range(6)]
    assert [status for status, _ in answers] == [200] * 5 + [404]
    assert "used_url" in answers[-1][1]
    assert [m.text for m in slack.workspace.ephemerals("U0VIEWER")] == list("01234")


async def test_a_response_url_is_good_for_thirty_minutes(slack: RunningSlack, clock: Clock) -> None:
    key = slack.workspace.new_response_url("C0GENERAL", "U0VIEWER")
    clock.later(30 * 60 + 1)
    status, body = await post(f"{slack.address}/response/{key}", {"text": "late"})
    assert (status, "expired_url" in body) == (404, True)


async def test_a_response_url_posts_replaces_and_deletes(slack: RunningSlack) -> None:
    key = slack.workspace.new_response_url("C0GENERAL", "U0VIEWER")
    url = f"{slack.address}/response/{key}"
    await post(url, {"text": "working"})
    message = slack.workspace.ephemerals("U0VIEWER")[0]
    await post(url, {"text": "done", "replace_original": True})
    assert (message.text, len(slack.workspace.ephemerals("U0VIEWER"))) == ("done", 1)
    await post(url, {"text": "for all", "response_type": "in_channel"})
    assert [m.text for m in slack.workspace.messages("C0GENERAL")] == ["for all"]
    await post(url, {"delete_original": True})
    assert slack.workspace.ephemerals("U0VIEWER") == []
