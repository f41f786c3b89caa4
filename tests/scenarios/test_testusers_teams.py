"""Presets, start times, second requests and one's own, from the signed request on."""

import json

import pytest

from tests.support.world import running_world

WELCOME = "FW00000000000000000000000000000001"
OTTO, ADA, VERA = "U0OPERATOR", "U0APPROVER", "U0VIEWER"


@pytest.fixture
async def world(sqlite_url):
    async with running_world(sqlite_url) as world:
        world.services.state.flows[WELCOME].identities.clear()
        yield world


async def card(world, nth: int = 0):
    """Wait for a card in the channel of approvals."""
    cards = world.slack.workspace.messages
    await world.slack.until(lambda: len(cards("C0APPROVALS")) > nth)
    return cards("C0APPROVALS")[nth]


async def say(world, user: str, text: str) -> str:
    return (await world.ask(user, "/testusers", text)).all_text


async def test_a_preset_is_asked_for_from_tomorrow_and_cancelled_before(world):
    assert "Saved: `@demo` stands for `+1`, `+2`." in await say(
        world, OTTO, "preset save demo +1 +2"
    )
    assert "`@demo` (2 test users)" in await say(world, VERA, "presets")
    answer = await world.ask(OTTO, "/testusers", "add welcome @demo from tomorrow 9:00")
    assert "Sent to <#C0APPROVALS>: add `+1`, `+2` to *welcome* from <!date^" in answer.all_text
    message = await card(world)
    await world.slack.click(ADA, message, "Approve")
    await world.slack.until(lambda: "Starts <!date^" in message.all_text)
    assert message.buttons == ["Cancel"]
    assert "*scheduled*" in await say(world, OTTO, "mine")
    assert "Starts later: add" in await say(world, VERA, "list welcome")
    assert "Approved, starts later" in await say(world, VERA, "requests")
    await world.slack.click(OTTO, message, "Cancel")
    await world.slack.until(lambda: "Cancelled" in message.all_text)
    assert world.services.state.flows[WELCOME].history == []


async def test_a_mistyped_preset_is_offered_as_a_button(world):
    answer = await world.ask(OTTO, "/testusers", "preset sav Demo +1 +2")
    assert answer.buttons == ["/testusers preset save Demo +1 +2"]
    await world.slack.click(OTTO, answer, "/testusers preset save Demo +1 +2")
    await world.slack.until(lambda: "`@demo` stands for `+1`, `+2`" in answer.all_text)
    answer = await world.ask(OTTO, "/testusers", "add welcome @Dmo for 2h")
    assert answer.buttons == ["/testusers add welcome @demo for 2h"]
    answer = await world.ask(OTTO, "/testusers", "preset delete dmo")
    assert "put it in quotes" not in answer.all_text
    assert answer.buttons == ["/testusers preset delete demo"]
    assert "Saved: `@team`" in await say(world, OTTO, "presets save team +1")


async def test_the_same_again_is_asked_anyway_with_a_button(world):
    await world.ask(OTTO, "/testusers", "add welcome +1 because a demo")
    await card(world)
    answer = await world.ask(ADA, "/testusers", "add welcome +1")
    assert "Otto Operator already asked for this just now" in answer.all_text
    assert len(world.slack.workspace.messages("C0APPROVALS")) == 1
    await world.slack.click(ADA, answer, "Ask anyway")
    assert "Ada Approver" in (await card(world, 1)).all_text


async def test_a_list_is_filtered_by_what_its_reader_sees(world):
    world.services.state.flows[WELCOME].identities[:] = ["+15550100", "+15559999", "Zoë"]
    assert "*1 test user* with `0100` in them" in await say(world, OTTO, "list welcome 0100")
    assert "Zoë" in await say(world, OTTO, "list welcome zoe")
    assert "no test users with `1555` in them" in await say(world, VERA, "list welcome 1555")


async def test_policies_hold_over_http(sqlite_url):
    policies = {"welcome": {"approvers": [VERA], "longest": "1d"}}
    async with running_world(sqlite_url, flow_policies=json.dumps(policies)) as world:
        world.services.state.flows[WELCOME].identities.clear()
        assert "needs an end" in await say(world, OTTO, "add welcome +1")
        await world.ask(OTTO, "/testusers", "add welcome +1 for 2h")
        message = await card(world)
        assert f"Approvers: <@{VERA}>" in message.all_text
        await world.slack.click(VERA, message, "Approve")
        await world.slack.until(lambda: "*Applied*" in message.all_text)
