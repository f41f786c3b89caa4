"""At a start every open card is shown as the settings of now have it."""

import pytest

from bot.approvals.rules.approval import Act, State
from bot.errors import SlackError, SlackUnreachable
from bot.store import outbox
from bot.store.outbox import OutboxMessage
from bot.testusers.card_links import CardLinks
from bot.testusers.rendering import RequestMessages
from tests.support.testusers import ADA, OTTO, WELCOME, World


async def test_start_shows_open_cards_anew_and_no_others(world: World) -> None:
    pending = await world.ask("add welcome +1")
    failed = await world.ask("add welcome +2")
    applied = await world.ask("add welcome +3")
    denied = await world.ask("add welcome +4")
    await world.decide(Act.DENY, denied)
    await world.decide(Act.APPROVE, applied)
    await world.work()
    del world.service.lists[WELCOME]
    await world.decide(Act.APPROVE, failed)
    for _ in range(4):
        await world.pass_time(5)
    assert (await world.stored(failed)).state is State.FAILED
    world.messages.clear()
    async with world.database.transaction() as tx:
        await RequestMessages(world.setup).plan(tx)
    await world.work()
    assert {message.subject for message in world.messages} == {pending.id, failed.id}


@pytest.mark.parametrize(
    ("act", "by", "words"),
    [
        (Act.APPROVE, ADA, "No longer waiting, approved by Ada Approver"),
        (Act.DENY, ADA, "No longer waiting, Ada Approver denied it"),
        (Act.CANCEL, OTTO, "No longer waiting, Otto Operator cancelled it"),
    ],
)
async def test_reminder_is_corrected_once_the_request_is_decided(world: World, act, by, words):
    request = await world.ask("add welcome +1")
    await world.pass_time(4 * 3600)
    reminder = [message for message in world.messages if message.kind == "testusers.reminder"][-1]
    messages = RequestMessages(world.setup)
    shown = await messages.reminder(reminder)
    assert "Still waiting for approval" in shown.message.text
    await posted(world, reminder.key)
    world.messages.clear()
    await world.decide(act, request, by, "no")
    await world.work()
    (again,) = [message for message in world.messages if message.kind == "testusers.reminder"]
    assert words in (await messages.reminder(again)).message.text


class FakeLinks:
    def __init__(self, error: SlackError | None = None) -> None:
        self._error = error

    async def permalink(self, channel_id: str, message_ts: str) -> str:
        if self._error:
            raise self._error
        return f"https://slack.example/{channel_id}/p{message_ts}"


@pytest.mark.parametrize(
    ("is_posted", "error", "is_linked"),
    [(True, None, True), (False, None, False), (True, SlackUnreachable(), False)],
    ids=["posted", "not posted", "Slack away"],
)
async def test_outcome_links_to_the_card_where_it_is_known(
    world: World, is_posted, error, is_linked
) -> None:
    world.is_channel_well = is_posted
    request = await world.ask("add welcome +1")
    await world.decide(Act.DENY, request, ADA, "no")
    await world.work()
    (message,) = [item for item in world.messages if item.kind == "testusers.outcome"]
    links = CardLinks(world.database, FakeLinks(error), world.clock)
    note = await RequestMessages(world.setup, links).outcome(message)
    assert "Denied" in note.message.text
    assert ("<https://slack.example/C/p1|View the card>" in note.message.text) is is_linked


async def test_reminder_that_was_not_posted_says_nothing_of_a_decision(world: World) -> None:
    request = await world.ask("add welcome +1")
    await world.work()
    await world.decide(Act.DENY, request)
    late = OutboxMessage(f"testusers.reminder:{request.id}", "testusers.reminder", request.id)
    assert await RequestMessages(world.setup).reminder(late) is None


async def posted(world: World, key: str) -> None:
    async with world.database.transaction() as tx:
        await outbox.remember_card(tx, outbox.SentCard(key, "C", "2", "", await tx.now()))


async def test_end_that_is_told_late_names_nobody_who_is_let_in_again(world: World) -> None:
    await world.decide(Act.APPROVE, await world.ask("add welcome +1 +2 for 1h"))
    await world.work()
    await world.pass_time(3600)
    (message,) = [item for item in world.messages if item.payload.get("event") == "ended"]
    messages = RequestMessages(world.setup)
    assert "+1" in (await messages.outcome(message)).message.text
    await world.decide(Act.APPROVE, await world.ask("add welcome +1"))
    await world.work()
    told = (await messages.outcome(message)).message.text
    assert ("+1" in told, "+2" in told) == (False, True)
    await world.decide(Act.APPROVE, await world.ask("add welcome +2"))
    await world.work()
    assert await messages.outcome(message) is None
