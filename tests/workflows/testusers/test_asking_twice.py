"""A second request for the same is noticed, and asked all the same where people want that."""

from datetime import timedelta

import pytest

from bot.approvals.rules.approval import Act
from bot.testusers import asking
from bot.testusers.messages import notes
from bot.testusers.parse.command import parse_testusers
from tests.support.testusers import ADA

ASKED = "add welcome +1 +2 for 2h because a demo"


async def ask(world, text: str, by: str = ADA, **options):
    return await asking.ask(world.setup, await world.person(by), parse_testusers(text), **options)


@pytest.mark.parametrize("again", [ASKED, "add welcome +2 +1 for 120m because another demo"])
async def test_the_same_again_names_who_asked_before(world, again):
    first = await world.ask(ASKED)
    world.clock.advance(125)
    asked = await ask(world, again, anyway=False)
    assert asked.request is None
    assert (asked.earlier.id, asked.age) == (first.id, timedelta(seconds=125))
    message = notes.asked_before(asked.earlier, asked.age, parse_testusers(again), "C0A")
    assert message.text.startswith("Otto Operator already asked for this 2 min ago: add `+1`, `+2`")
    assert message.text.endswith("It's waiting in <#C0A>.")
    (button,) = message.slack_blocks[-1]["elements"]
    assert button["text"]["text"] == "Ask anyway"
    assert parse_testusers(button["value"].removeprefix("/testusers ")) == parse_testusers(again)
    assert (await ask(world, again, anyway=True)).request is not None


@pytest.mark.parametrize(
    "other",
    [
        "add welcome +1 for 2h",
        "add welcome +1 +2 for 3h",
        "add welcome +1 +2",
        "add survey +1 +2 for 2h",
        "add welcome +1 +2 for 2h from tomorrow 9:00",
    ],
)
async def test_something_else_is_asked_at_once(world, other):
    await world.ask(ASKED)
    asked = await ask(world, other, anyway=False)
    assert asked.earlier is None
    assert asked.request is not None


async def test_what_was_decided_is_asked_again_at_once(world):
    first = await world.ask(ASKED)
    await world.decide(Act.DENY, first, ADA, "no")
    assert (await ask(world, ASKED, anyway=False)).request is not None
