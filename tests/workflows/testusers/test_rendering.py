"""At a start every open card is shown as the settings of now have it."""

import pytest

from bot.approvals.rules import Act, State
from bot.store import outbox
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
        await RequestMessages(world).plan(tx)
    await world.work()
    assert {message.subject for message in world.messages} == {pending.id, failed.id}


@pytest.mark.parametrize(
    ("act", "by", "words"),
    [
        (Act.APPROVE, ADA, "No longer waiting, approved by Ada Approver"),
        (Act.CANCEL, OTTO, "No longer waiting, Otto Operator cancelled it"),
    ],
)
async def test_reminder_is_corrected_once_the_request_is_decided(world: World, act, by, words):
    request = await world.ask("add welcome +1")
    await world.pass_time(4 * 3600)
    reminder = [message for message in world.messages if message.kind == "testusers.reminder"][-1]
    messages = RequestMessages(world)
    shown = await messages.waiting(reminder)
    assert "Still waiting for approval" in shown.message.text
    await posted(world, reminder.key)
    world.messages.clear()
    await world.decide(act, request, by, "no")
    await world.work()
    (again,) = [message for message in world.messages if message.kind == "testusers.reminder"]
    assert words in (await messages.waiting(again)).message.text


async def posted(world: World, key: str) -> None:
    async with world.database.transaction() as tx:
        await outbox.replace_card(tx, outbox.SentCard(key, "C", "2", "", await tx.now()), None)
