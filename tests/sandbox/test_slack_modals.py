"""The stand-in's modals: opened, stacked, updated, closed, and the answers to a submission."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from sandbox.slack.delivery import TROUBLE
from sandbox.slack.messages import View
from sandbox.slack.server import RunningSlack, running_slack

USER = "U0OPERATOR"
Answer = Callable[[dict[str, Any]], dict[str, Any] | str | None]


def modal(title: str = "Ask", **more: Any) -> dict[str, Any]:
    reason = {
        "type": "input",
        "block_id": "reason",
        "label": {"type": "plain_text", "text": "Reason"},
        "element": {"type": "plain_text_input", "action_id": "text", "max_length": 5},
    }
    return {
        "type": "modal",
        "title": {"type": "plain_text", "text": title},
        "submit": {"type": "plain_text", "text": "Send"},
        "blocks": [reason],
    } | more


@asynccontextmanager
async def slack_with(answer: Answer) -> AsyncIterator[RunningSlack]:
    """The stand-in, and a bot that gives one answer to everything it is sent."""

    async def handle(request: web.Request) -> web.Response:
        payload = json.loads(str((await request.post())["payload"]))
        said = answer(payload)
        return web.json_response(said) if isinstance(said, dict) else web.Response(text=said or "")

    app = web.Application()
    app.router.add_post("/slack/events", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with running_slack(bot_url=url) as slack:
        yield slack
    await runner.cleanup()


@pytest.fixture
async def slack() -> AsyncIterator[RunningSlack]:
    async with running_slack() as running:
        yield running


@pytest.fixture
def client(slack: RunningSlack) -> AsyncWebClient:
    return AsyncWebClient("xoxb-sandbox", slack.api_url)


async def refused(call: Awaitable[Any]) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


def title(view: View | None) -> str | None:
    return view.title if view else None


async def test_an_update_needs_the_hash_it_knew(
    slack: RunningSlack, client: AsyncWebClient
) -> None:
    opened = slack.workspace.open(USER, modal())
    first = opened.hash
    await client.views_update(view_id=opened.id, hash=first, view=modal("New"))
    assert opened.title == "New"
    stale = client.views_update(view_id=opened.id, hash=first, view=modal("Old"))
    assert await refused(stale) == "hash_conflict"
    assert opened.title == "New"


async def test_an_update_keeps_what_was_typed(slack: RunningSlack, client: AsyncWebClient) -> None:
    opened = slack.workspace.open(USER, modal(external_id="mine"))
    opened.values = {"reason": {"text": {"type": "plain_text_input", "value": "x"}}}
    answer = await client.views_update(external_id="mine", view=modal("New"))
    assert answer["view"]["state"]["values"]["reason"]["text"]["value"] == "x"


async def test_a_closed_modal_cannot_be_updated(
    slack: RunningSlack, client: AsyncWebClient
) -> None:
    opened = slack.workspace.open(USER, modal())
    await slack.close(USER, opened)
    assert await refused(client.views_update(view_id=opened.id, view=modal())) == "not_found"


async def test_three_modals_lie_on_each_other_and_no_more(
    slack: RunningSlack, client: AsyncWebClient
) -> None:
    workspace = slack.workspace
    first = workspace.open(USER, modal("1"))
    for name in ("2", "3"):
        trigger = workspace.new_trigger(USER, workspace.open_view(USER))
        await client.views_push(trigger_id=trigger, view=modal(name))
    top = workspace.open_view(USER)
    assert title(top) == "3"
    assert top
    assert top.root_id == first.id
    trigger = workspace.new_trigger(USER, top)
    assert (
        await refused(client.views_push(trigger_id=trigger, view=modal())) == "push_limit_reached"
    )
    await slack.close(USER, top)
    assert title(workspace.open_view(USER)) == "2"


async def test_an_invalid_modal_is_refused_with_its_place(
    slack: RunningSlack, client: AsyncWebClient
) -> None:
    trigger = slack.workspace.new_trigger(USER)
    with pytest.raises(SlackApiError) as caught:
        await client.views_open(trigger_id=trigger, view=modal("x" * 25))
    assert caught.value.response["error"] == "invalid_arguments"
    assert "/view/title/text" in str(caught.value.response["response_metadata"])


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (None, None),
        ({"response_action": "clear"}, None),
        ({"response_action": "update", "view": modal("Next")}, "Next"),
        ({"response_action": "push", "view": modal("Next")}, "Next"),
        ({"response_action": "update", "view": modal("x" * 25)}, "Ask"),
        ({"response_action": "errors", "errors": {"reason": "No"}}, "Ask"),
    ],
)
async def test_a_submission_closes_changes_or_keeps_the_modal(
    answer: dict[str, Any] | None, shown: str | None
) -> None:
    async with slack_with(lambda _: answer) as slack:
        view = slack.workspace.open(USER, modal())
        await slack.submit(USER, view, {"Reason": "x"})
        assert title(slack.workspace.open_view(USER)) == shown


@pytest.mark.parametrize(
    "answer",
    [{"response_action": "errors", "errors": {"nowhere": "No"}}, {"response_action": "errors"}],
)
async def test_errors_at_no_input_are_trouble(answer: dict[str, Any]) -> None:
    async with slack_with(lambda _: answer) as slack:
        view = slack.workspace.open(USER, modal())
        await slack.submit(USER, view, {"Reason": "x"})
        assert view.errors == {"": TROUBLE}


async def test_a_bot_that_is_silent_for_three_seconds_is_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sandbox.slack.delivery.ACK_SECONDS", 0.05)
    silent = asyncio.Event()

    async def never(_request: web.Request) -> web.Response:
        await silent.wait()
        return web.Response()

    app = web.Application()
    app.router.add_post("/slack/events", never)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with running_slack(bot_url=f"http://127.0.0.1:{runner.addresses[0][1]}") as slack:
        view = slack.workspace.open(USER, modal())
        delivery = await slack.submit(USER, view, {"Reason": "x"})
        assert delivery.error == "operation_timeout"
        assert view.errors == {"": TROUBLE}
    silent.set()
    await runner.cleanup()


async def test_dismissing_is_told_to_a_bot_that_asked() -> None:
    seen: list[dict[str, Any]] = []
    async with slack_with(seen.append) as slack:
        quiet = slack.workspace.open(USER, modal())
        assert await slack.close(USER, quiet) is None
        asked = slack.workspace.open(USER, modal(notify_on_close=True))
        await slack.close(USER, asked)
    assert [(one["type"], one["view"]["id"]) for one in seen] == [("view_closed", asked.id)]


async def test_a_choice_in_a_modal_is_told_with_what_stands_in_it() -> None:
    choice = {
        "type": "actions",
        "block_id": "row",
        "elements": [
            {
                "type": "static_select",
                "action_id": "pick",
                "placeholder": {"type": "plain_text", "text": "Pick"},
                "options": [
                    {"text": {"type": "plain_text", "text": name}, "value": name.lower()}
                    for name in ("One", "Two")
                ],
            }
        ],
    }
    seen: list[dict[str, Any]] = []
    async with slack_with(seen.append) as slack:
        view = slack.workspace.open(USER, modal(blocks=[choice]))
        await slack.click(USER, view, "Pick", "Two")
    [payload] = seen
    assert payload["actions"][0]["selected_option"]["value"] == "two"
    values = payload["view"]["state"]["values"]
    assert values["row"]["pick"]["selected_option"]["value"] == "two"
