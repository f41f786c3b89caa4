"""If Slack doesn't accept a message right away, the bot sends the message again later."""

import asyncio
import json
from datetime import timedelta

import pytest

from sandbox.patience import PATIENCE_SECONDS
from sandbox.services.faults import Fault, FaultKind
from tests.support.world import ADA, ADAM, OTTO, empty_world

POLICIES = json.dumps({"welcome": {"escalate_after": "2h", "escalate_to": [ADAM]}})
SETTINGS = {
    "inventory_watch": "off",
    "commands_per_minute": "0",
    "flow_policies": POLICIES,
}


@pytest.fixture
async def world(sqlite_url):
    async with empty_world(sqlite_url, **SETTINGS) as world:
        yield world


def thread(world, message):
    return world.slack.workspace.thread("C0APPROVALS", message.ts)


async def test_reminder_and_escalation_wait_for_the_card(world):
    faults = world.slack.workspace.faults
    faults.status("chat.postMessage", 503, times=None)
    await world.ask(OTTO, "/testusers", "add welcome +1")
    await world.later(timedelta(hours=5))
    refused = len(world.slack.workspace.calls_of("chat.postMessage"))
    await world.slack.until(
        lambda: len(world.slack.workspace.calls_of("chat.postMessage")) > refused + 1
    )
    faults.clear()
    message = await world.card()
    await world.slack.until(lambda: len(thread(world, message)) == 2)
    said = "\n".join(item.text for item in thread(world, message))
    assert "Still waiting for approval: Otto Operator wants to add" in said
    assert f"<@{ADAM}> Still waiting for approval: Otto Operator wants to add" in said


async def test_nobody_is_reminded_of_a_request_that_expired_while_nothing_ran(world):
    message = await world.asked("add welcome +1")
    await world.later(timedelta(hours=25))
    await world.told(OTTO, "*Expired* because it wasn't approved in time")
    record = (await world.ask(ADAM, "/gatehouse", "audit 20")).all_text
    assert "waited too long" not in record
    assert thread(world, message) == []


async def test_a_card_is_posted_once_more_for_each_change_where_slack_edits_nothing(world):
    message = await world.asked("add welcome +1")
    world.slack.workspace.faults.error("chat.update", "edit_window_closed", times=None)
    await world.click(ADA, message, "Approve")
    await world.told(OTTO, "*Applied*")
    posted = await world.card(1)
    await world.shows(posted, "*Applied*")
    await world.later(timedelta(minutes=10))
    assert world.cards() == [message, posted]
    undo = await world.click(OTTO, posted, "Undo")
    assert "Sent to" in undo.all_text
    await world.slack.until(lambda: len(world.cards()) == 4)
    assert "*Undo requested*" in "".join(card.all_text for card in world.cards()[2:])


async def test_refused_direct_message_is_given_up_after_a_day(world):
    message = await world.asked("add welcome +1")
    workspace = world.slack.workspace
    workspace.faults.error("chat.postMessage", "restricted_action", times=None)

    def tries() -> int:
        calls = workspace.calls_of("chat.postMessage")
        return [call.args["channel"] for call in calls].count(OTTO)

    await world.click(ADA, message, "Approve")
    await world.slack.until(tries)
    for hours in (12, 25):
        before = tries()
        await world.later(timedelta(hours=hours))
        await world.slack.until(lambda before=before: tries() > before)
    assert tries() == 3
    await world.later(timedelta(days=3))
    status = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while ", 0 late" not in status:
            status = (await world.ask(ADAM, "/gatehouse", "status")).all_text
    assert "Undelivered messages: 1" in status
    assert tries() == 3


async def test_a_second_round_of_approval_has_a_reminder_and_an_escalation_of_its_own(world):
    refusal = Fault(FaultKind.STATUS, "flow", method="POST", status=400, message="x")
    world.services.state.faults.add(refusal)
    message = await world.asked("add welcome +1 for 2h")
    await world.later(timedelta(hours=5))
    await world.slack.until(lambda: len(thread(world, message)) == 2)
    await world.approve(message, "Failed")
    refusal.lift()
    world.flow.identities[:] = ["+1"]
    await world.click(ADA, message, "Retry")
    await world.shows(message, "*Needs approval again*")
    await world.later(timedelta(hours=11))

    def reminders():
        return [item for item in thread(world, message) if "waiting for approval" in item.text]

    new = await world.slack.until(lambda: len(reminders()) == 4 and reminders()[2:])
    assert all("Still waiting for approval" in item.text for item in new)
