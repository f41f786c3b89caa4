"""A flow's policy can require a reason, and warn everyone who asks or decides."""

import json
from collections.abc import AsyncIterator

import pytest

from tests.support.world import ADAM, OTTO, World, empty_world

NEEDED = "Changes to this flow need a reason."
WARNING = "Production: ask <Vera> *first*"
SHOWN = "Production: ask &lt;Vera&gt; \u2060*first*"


@pytest.fixture
async def world(sqlite_url) -> AsyncIterator[World]:
    """Yield a world in which changes to `welcome` need a reason, and those to `survey` don't."""
    policies = {"welcome": {"reason": "required", "warning": WARNING}}
    async with empty_world(sqlite_url, flow_policies=json.dumps(policies)) as world:
        yield world


@pytest.mark.parametrize("text", ["add welcome +1", "remove welcome +1", "add welcome +1 for 2h"])
async def test_a_command_without_a_reason_is_refused(world, text):
    assert NEEDED in (await world.ask(OTTO, "/testusers", text)).all_text
    await world.slack.direct_message(OTTO, f"testusers {text}")
    await world.told(OTTO, NEEDED)
    assert world.cards() == []
    answer = await world.ask(OTTO, "/testusers", f"{text} because demo")
    assert NEEDED not in answer.all_text
    assert "Sent to" in answer.all_text or text.startswith("remove")


@pytest.mark.parametrize("reason", ["\u200b", "\u2800 \u2060", "\ufe0f", "\u3164"])
async def test_a_reason_of_which_nothing_can_be_seen_is_none(world, reason):
    text = f"add welcome +1 because {reason}"
    assert "Add a reason" in (await world.ask(OTTO, "/testusers", text)).all_text
    text = f"add survey +1 now because {reason}"
    assert "Add a reason" in (await world.ask(ADAM, "/testusers", text)).all_text
    form = await world.opened_form()
    chosen = {"text": {"type": "plain_text", "text": "welcome"}, "value": "welcome"}
    inputs = {"Flow": chosen, "Identities": "+1", "Reason": reason}
    await world.slack.submit(OTTO, form, inputs)
    assert NEEDED in str(form.errors)
    card = await world.asked("add welcome +1 because demo")
    await world.slack.click(ADAM, card, "Deny")
    denial = await world.form(ADAM)
    await world.slack.submit(ADAM, denial, {"Reason": reason})
    assert "Please give a reason" in str(denial.errors)


async def test_flow_without_the_policy_needs_no_reason(world):
    card = await world.asked("add survey +1")
    assert "add `+1`" in card.all_text
    assert SHOWN not in card.all_text


async def test_the_form_insists_on_a_reason_once_the_flow_is_known(world):
    answer = await world.ask(OTTO, "/testusers", "add welcome +1")
    await world.slack.click(OTTO, answer, "Open the form")
    form = await world.form()
    inputs = {block.get("block_id"): block for block in form.blocks}
    reason = next(block for name, block in inputs.items() if "reason" in str(name))
    assert reason["optional"] is False
    await world.slack.submit(OTTO, form, {"Identities": "+1", "Reason": "demo"})
    assert "demo" in (await world.card()).all_text


async def test_an_empty_reason_is_refused_at_the_input(world):
    form = await world.opened_form()
    chosen = {"text": {"type": "plain_text", "text": "welcome"}, "value": "welcome"}
    await world.slack.submit(OTTO, form, {"Flow": chosen, "Identities": "+1"})
    assert NEEDED in str(form.errors)
    await world.slack.submit(OTTO, form, {"Flow": chosen, "Identities": "+1", "Reason": "demo"})
    assert SHOWN in (await world.answer(OTTO)).all_text


async def test_the_warning_is_in_the_answer_and_on_the_card(world):
    answer = await world.ask(OTTO, "/testusers", "add welcome +1 because demo")
    assert SHOWN in answer.all_text
    card = await world.card()
    assert SHOWN in card.all_text
    assert SHOWN in card.text
    await world.approve(card, "*Applied*", SHOWN, by=ADAM)
