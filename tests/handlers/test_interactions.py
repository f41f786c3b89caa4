"""Test that the bot reads payloads in all formats and stores clicks before acknowledging them."""

import asyncio
import json
from dataclasses import replace

import pytest
from slack_bolt.async_app import AsyncBoltRequest
from structlog.testing import capture_logs

from bot.errors import DatabaseUnavailable
from bot.ops.logs import current_digest
from bot.permissions import ACTING, Permission
from bot.slack.messages.block_kit import Message
from handlers.listening import STORED_CLICK
from handlers.payloads import Payload
from tests.support.entry_points import EntryPoint, payload_of
from tests.support.listening import USER, seen, shown_button


def register_stored(bot, keep, seconds=1.5):
    store = bot.app.listening.listener(keep, replace(STORED_CLICK, ack_seconds=seconds))
    bot.app.action("press")(store)


async def held_storing(bot, seconds=1.5):
    """Add a button whose clicks are stored only after an event is set.

    Return the button's message, the event, and the list of stored clicks.
    """
    stored, go_on = [], asyncio.Event()

    async def keep(_bot, _person, body):
        await go_on.wait()
        stored.append(body.value)

    message = await shown_button(bot)
    register_stored(bot, keep, seconds)
    return message, go_on, stored


async def test_a_click_is_stored_before_its_acknowledgement(bot):
    message, go_on, stored = await held_storing(bot)
    clicking = asyncio.create_task(bot.slack.click(USER, message, "Next"))
    await asyncio.wait({clicking}, timeout=0.1)
    assert not clicking.done()
    go_on.set()
    assert (await clicking).status == 200
    assert stored == ["7"]


async def test_slowly_stored_click_is_acknowledged_in_time(bot):
    message, go_on, stored = await held_storing(bot, seconds=0.1)
    assert (await bot.slack.click(USER, message, "Next")).status == 200
    assert stored == []
    go_on.set()
    await bot.parts.tasks.drain(5)
    assert stored == ["7"]


@pytest.mark.parametrize(
    ("error", "words"),
    [(DatabaseUnavailable(), "Nothing was changed"), (KeyError("x"), "Reference: `")],
)
async def test_a_click_that_cannot_be_stored_gets_an_answer(bot, error, words):
    async def keep(_bot, _person, _body):
        raise error

    message = await shown_button(bot)
    register_stored(bot, keep)
    with capture_logs() as logs:
        assert (await bot.slack.click(USER, message, "Next")).status == 200
        await bot.slack.until(lambda: words in seen(bot)[-1])
    references = [line["reference"] for line in logs if line["event"] == "answer.broken"]
    assert all(reference in seen(bot)[-1] for reference in references)
    assert message.text == "the list"


@pytest.mark.parametrize("escaped", ["\\u0000", "\\ud83d", "\\udc00"])
def test_characters_that_a_database_cannot_store_are_refused(escaped):
    character = json.loads(f'"{escaped}"')
    command = Payload({"text": f"list {character}"}).text("text")
    press = Payload({"value": f"a{character}b"}).value
    hidden = Payload({"private_metadata": f'{{"request": "a{escaped}b"}}'}).hidden("request")
    assert (command, press, hidden) == ("list \ufffd", "a\ufffdb", "a\ufffdb")


def test_text_of_a_form_is_read_without_such_characters():
    values = {"why": {"typed": {"value": "be\0cause \ud83d \ud83d\ude00"}}}
    view = {"state": {"values": values}}
    assert Payload(view).typed("why") == "be\ufffdcause \ufffd \ufffd\ufffd"


async def test_payload_of_a_socket_is_known_by_its_trigger(bot):
    digests = []

    async def answer(ask):
        digests.append(current_digest())

    bot.command("/act", answer)
    for trigger in ("1.2", "1.2", "1.3"):
        body = {"command": "/act", "user_id": USER, "trigger_id": trigger}
        await bot.app.async_dispatch(AsyncBoltRequest(body=body, mode="socket_mode"))
    await bot.outcomes()
    first, again, other = digests
    assert first == again != other


async def press_what_requires(bot, permission) -> list[str]:
    """Press a button that requires this permission. Return the recorded actions."""
    done = []

    async def answer(ask):
        done.append(ask["actions"][0]["value"])
        return Message("done")

    bot.action("act", answer, permission=permission)
    pressed = EntryPoint("action", "act", permission)
    await bot.slack._deliverer.interaction(payload_of(bot.slack, USER, pressed, "1"))
    await bot.outcomes()
    return done


@pytest.mark.parametrize("permission", sorted(ACTING))
async def test_a_replayed_click_does_nothing_and_gets_no_answer(bot, permission):
    bot.deliveries.is_first = False
    assert await press_what_requires(bot, permission) == []
    assert seen(bot) == []
    assert await bot.outcomes() == {("act", "replayed"): 1.0}


@pytest.mark.parametrize("permission", [Permission.READ, Permission.ASK_FOR_HELP])
async def test_a_click_that_changes_nothing_is_not_stored(bot, permission):
    assert await press_what_requires(bot, permission) == ["1"]
    assert bot.deliveries.asked == 0
