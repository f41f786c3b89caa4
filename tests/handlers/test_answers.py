"""Test that a reply arrives exactly once even if Slack drops, delays or refuses it."""

import json

import pytest

from bot.permissions import Permission
from bot.slack.messages import block_kit
from bot.slack.messages.block_kit import Message
from handlers.listening import AnswerAt, Needs
from tests.support.listening import BUTTON, CHANNEL, MODAL, USER, Held, seen


async def done(_ask):
    return Message("done")


async def test_slack_asking_to_wait_is_obeyed(bot):
    bot.command("/x", done)
    bot.slack.workspace.faults.ratelimit("response_url", retry_after=7)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.slack.until(lambda: seen(bot) == ["done"])
    assert bot.waits.slept == [7]


async def test_long_wait_that_slack_asks_for_is_not_waited_for(bot):
    bot.command("/x", done)
    bot.slack.workspace.faults.ratelimit("response_url", retry_after=3600, times=None)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.parts.tasks.drain(5)
    assert bot.waits.slept == []
    assert await bot.outcomes() == {("/x", "ok"): 1.0}


@pytest.mark.parametrize("status", [500, 503])
async def test_an_answer_that_slack_drops_is_sent_again(bot, status):
    bot.command("/x", done)
    bot.slack.workspace.faults.status("response_url", status, times=2)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.slack.until(lambda: seen(bot) == ["done"])
    assert bot.waits.slept == [1.0, 2.0]


async def test_an_answer_with_a_used_up_response_url_is_a_direct_message(bot):
    bot.command("/x", done)
    bot.slack.workspace.faults.status("response_url", 404, body="used_url", times=None)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.parts.tasks.drain(5)
    assert seen(bot) == []
    assert [item.text for item in bot.slack.workspace.dm(USER)] == ["done"]
    assert bot.waits.slept == []


@pytest.mark.parametrize("trouble", ["cut", "drop"])
async def test_an_answer_that_may_have_arrived_is_not_said_again_elsewhere(bot, trouble):
    bot.command("/x", done)
    getattr(bot.slack.workspace.faults, trouble)("response_url", times=None)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.parts.tasks.drain(5)
    assert bot.slack.workspace.dm(USER) == []


@pytest.mark.parametrize("body", ["invalid_blocks", '{"ok": false, "error": "invalid_blocks"}'])
async def test_blocks_that_slack_refuses_are_said_in_plain_text(bot, body):
    async def answer(ask):
        return BUTTON

    bot.command("/x", answer)
    bot.slack.workspace.faults.status("response_url", 400, body=body)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.slack.until(lambda: seen(bot) == ["the list"])
    assert bot.slack.workspace.ephemerals(USER)[0].buttons == ["Next"]
    assert bot.slack.workspace.dm(USER) == []


async def test_form_left_open_for_too_long_is_answered_all_the_same(bot):
    async def answer(_bot, _person, _body):
        return Message("thanks")

    asks = Needs(Permission.ASK_FOR_HELP, AnswerAt.NEW_MESSAGE)
    bot.app.view("form")(bot.app.listening.listener(answer, asks))
    gone = json.dumps({"reply_to": f"{bot.slack.address}/response/gone"})
    view = bot.slack.workspace.open(USER, {**MODAL, "private_metadata": gone})
    await bot.slack.submit(USER, view, {"Why": "because"})
    (answer,) = await bot.slack.until(lambda: bot.slack.workspace.dm(USER))
    assert answer.text == "thanks"


CHART = {"type": "data_visualization", "title": "Calls", "chart": {"type": "pie", "segments": []}}
TABLE = block_kit.table([("Name", "State"), ("A & B", "ok")])
NEXT = block_kit.actions(block_kit.button("Next", "press", "7"))


async def test_chart_and_table_that_slack_refuses_leave_their_buttons(bot):
    async def answer(ask):
        return Message("Name · State\nA &amp; B · ok", (TABLE, CHART, NEXT))

    bot.command("/x", answer)
    bot.slack.workspace.faults.status("response_url", 400, body="invalid_blocks")
    await bot.slack.command(USER, CHANNEL, "/x")
    message = await bot.slack.until(lambda: bot.slack.workspace.ephemerals(USER)[0])
    assert message.buttons == ["Next"]
    assert "Name · State\nA &amp; B · ok" in message.all_text
    assert [block["type"] for block in message.blocks] == ["section", "actions"]


async def test_an_answer_that_slack_accepts_nowhere_is_dropped(bot):
    bot.command("/x", done)
    for method in ("response_url", "chat.postMessage"):
        bot.slack.workspace.faults.status(method, 500, times=None)
    await bot.slack.command(USER, CHANNEL, "/x")
    assert await bot.outcomes() == {("/x", "ok"): 1.0}
    assert seen(bot) == []


async def test_a_notice_that_slack_does_not_take_holds_nothing_up(bot):
    work = Held(Message("done"))
    bot.command("/x", work)
    bot.slack.workspace.faults.ratelimit("response_url", retry_after=5)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.slack.until(lambda: bot.slack.workspace.calls_of("response_url"))
    work.release.set()
    await bot.slack.until(lambda: seen(bot) == ["done"])
    assert bot.waits.slept == []
