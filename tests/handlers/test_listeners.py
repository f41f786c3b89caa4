"""Test that every listener acknowledges immediately and always answers the person."""

import asyncio

import pytest
from structlog.testing import capture_logs

from bot.errors import NotFound, Unsent
from bot.permissions import Permission
from bot.slack.messages.block_kit import Message
from handlers import listening
from handlers.listening import STORED_CLICK, AnswerAt, Needs
from tests.support.entry_points import EntryPoint, payload_of
from tests.support.listening import (
    BUTTON,
    CHANNEL,
    USER,
    Held,
    seen,
    shown_button,
    small_bot,
)

# If a listener forgets to acknowledge, Bolt responds after three seconds. Others take
# milliseconds, or a few hundred on a busy machine.
AT_ONCE = 2.9


async def test_a_command_is_acknowledged_while_its_work_stands_still(bot):
    work = Held(Message("done"))
    bot.command("/slow", work)
    delivery = await bot.slack.command(USER, CHANNEL, "/slow")
    assert (delivery.status, delivery.body, delivery.error) == (200, "", None)
    assert delivery.seconds < AT_ONCE
    work.release.set()
    await bot.slack.until(lambda: seen(bot) == ["done"])


async def test_a_slow_error_replaces_the_notice(bot):
    work = Held(NotFound("There is no such thing."))
    bot.command("/slow", work)
    await bot.slack.command(USER, CHANNEL, "/slow")
    notice = await bot.slack.until(lambda: bot.slack.workspace.ephemerals(USER)[0])
    work.release.set()
    await bot.slack.until(lambda: notice.text == "There is no such thing.")
    assert await bot.outcomes() == {("/slow", "not_found"): 1.0}


@pytest.mark.parametrize("error", [NotFound("No such thing."), KeyError("x"), RecursionError()])
async def test_an_error_right_after_the_acknowledgement_does_not_undo_it(bot, error):
    async def broken(ask):
        raise error

    bot.command("/broken", broken)
    delivery = await bot.slack.command(USER, CHANNEL, "/broken")
    assert (delivery.status, delivery.error) == (200, None)
    assert delivery.seconds < AT_ONCE
    answer = await bot.slack.until(lambda: seen(bot)[0])
    expected = isinstance(error, NotFound)
    assert ("No such thing." in answer) is expected
    assert ("Something went wrong" in answer) is not expected


async def test_no_words_stay_beside_a_form_that_opens_late(bot, monkeypatch):
    monkeypatch.setattr(listening, "PATIENCE_SECONDS", 0.0)
    message = await shown_button(bot)
    work = Held(None)
    bot.action("press", work)
    await bot.slack.click(USER, message, "Next")
    work.release.set()
    await bot.parts.tasks.drain(5)
    assert seen(bot) == ["the list"]


async def test_an_error_leaves_the_clicked_message(bot):
    message = await shown_button(bot)
    work = Held(NotFound("It is gone."))
    work.release.set()
    bot.action("press", work, place=AnswerAt.CLICKED)
    await bot.slack.click(USER, message, "Next")
    await bot.slack.until(lambda: seen(bot) == ["the list", "It is gone."])
    assert message.buttons == ["Next"]


async def test_a_slow_error_of_a_button_offers_the_way_back(bot):
    message = await shown_button(bot)
    work = Held(NotFound("It is gone."))
    bot.action("press", work, place=AnswerAt.CLICKED)
    await bot.slack.click(USER, message, "Next")
    await bot.slack.until(lambda: "Working on it" in message.text)
    work.release.set()
    await bot.slack.until(lambda: "It is gone." in message.all_text)
    assert message.buttons == ["Try again"]
    work._result = BUTTON
    await bot.slack.click(USER, message, "Try again")
    await bot.slack.until(lambda: message.buttons == ["Next"])
    assert seen(bot) == ["the list"]


async def test_a_button_that_answers_below_never_touches_its_message(bot, monkeypatch):
    monkeypatch.setattr(listening, "PATIENCE_SECONDS", 0.0)
    message = await shown_button(bot)
    work = Held(Message("details"))
    bot.action("press", work)
    await bot.slack.click(USER, message, "Next")
    work.release.set()
    await bot.parts.tasks.drain(5)
    assert seen(bot)[1:] == ["details"]
    assert (message.text, message.is_edited) == ("the list", False)


async def test_commands_over_the_limit_are_declined_kindly():
    async with small_bot(commands_per_minute=3) as bot:
        work = Held(Message("done"))
        work.release.set()
        bot.command("/x", work)
        for _ in range(5):
            delivery = await bot.slack.command(USER, CHANNEL, "/x")
            assert delivery.status == 200
        await bot.slack.command("U0ADMIN", CHANNEL, "/x")
        await bot.slack.until(lambda: len(seen(bot)) == 5)
        assert sorted(text == "done" for text in seen(bot)) == [False, False, True, True, True]
        refused = [text for text in seen(bot) if text != "done"]
        assert all("Try again in" in text for text in refused)
        admins = await bot.slack.until(lambda: bot.slack.workspace.ephemerals("U0ADMIN"))
        assert [admin.text for admin in admins] == ["done"]
        assert (await bot.outcomes())[("/x", "too_many_commands")] == 2


async def test_clicks_over_the_limit_are_declined_and_do_nothing():
    async with small_bot(commands_per_minute=2) as bot:
        message = await shown_button(bot)
        work = Held(None)
        work.release.set()
        bot.action("press", work, place=AnswerAt.CLICKED)
        deliveries = [await bot.slack.click(USER, message, "Next") for _ in range(9)]
        assert {delivery.status for delivery in deliveries} == {200}
        outcomes = await bot.outcomes()
        assert (outcomes["press", "ok"], outcomes["press", "too_many_commands"]) == (4.0, 5.0)
        assert len([text for text in seen(bot) if "lot of clicks" in text]) == 5


async def test_stored_clicks_over_the_limit_are_not_stored():
    async with small_bot(commands_per_minute=1) as bot:
        stored = []

        async def keep(_bot, _person, body):
            stored.append(body)

        message = await shown_button(bot)
        bot.app.action("press")(bot.app.listening.listener(keep, STORED_CLICK))
        for _ in range(6):
            assert (await bot.slack.click(USER, message, "Next")).status == 200
        await bot.outcomes()
        assert len(stored) == 2
        assert len([text for text in seen(bot) if "lot of clicks" in text]) == 4


@pytest.mark.parametrize("is_stored", [True, False])
async def test_forms_over_the_limit_are_declined_kindly(is_stored):
    async with small_bot(commands_per_minute=1) as bot:
        done = []

        async def work(_bot, _person, body):
            done.append(body)

        if is_stored:
            listener = bot.app.listening.listener(work, STORED_CLICK)
        else:
            asks = Needs(
                Permission.ASK_FOR_HELP, AnswerAt.NEW_MESSAGE, filled_form=lambda _: Unsent("7")
            )
            listener = bot.app.listening.listener(work, asks)
        bot.app.view("form")(listener)
        asked = EntryPoint("submission", "form", None, "{}")
        for _ in range(4):
            body = payload_of(bot.slack, USER, asked, "{}")
            await bot.slack._deliverer.interaction(body)
        await bot.outcomes()
        assert len(done) == 2
        declined = bot.slack.workspace.ephemerals(USER)
        assert ["lot of clicks" in item.text for item in declined] == [True, True]
        assert [item.buttons for item in declined] == [[] if is_stored else ["Try again"]] * 2


@pytest.mark.parametrize("error", [NotFound("x"), KeyError("x"), None])
async def test_a_type_ahead_in_trouble_gets_no_option(bot, error, monkeypatch):
    monkeypatch.setattr(listening, "SUGGEST_SECONDS", 0.1)

    async def suggest(_bot, _person, _body):
        if error is None:
            await asyncio.Event().wait()
        raise error

    asks = Needs(Permission.REQUEST, pace="")
    bot.app.options("menu")(bot.app.listening.suggest(suggest, asks))
    asked = EntryPoint("options", "menu", None, "typed")
    payload = payload_of(bot.slack, USER, asked, "typed")
    delivery = await bot.slack._deliverer.interaction(payload)
    assert (delivery.status, delivery.json["options"]) == (200, [])


async def test_an_error_outside_the_answer_is_logged(bot, monkeypatch, broken_tasks):
    async def broken(*_, **__):
        raise KeyError("x")

    work = Held(Message("done"))
    bot.command("/x", work)
    monkeypatch.setattr(bot.app.listening, "answer", broken)
    with capture_logs() as logs:
        assert (await bot.slack.command(USER, CHANNEL, "/x")).status == 200
        await bot.parts.tasks.drain(5)
    (line,) = [line for line in logs if line["event"] == "task.broken"]
    assert (line["task"], line["log_level"]) == ("/x", "error")
    assert isinstance(line["exc_info"], KeyError)
    assert broken_tasks == ["/x: KeyError('x')"]
    broken_tasks.clear()
