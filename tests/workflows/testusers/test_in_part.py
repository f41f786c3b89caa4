"""What the service carries out of a request that fails: it ends, is told, and is done once."""

import json
from datetime import timedelta

import pytest

from bot.approvals.rules import Act, State
from bot.errors import Conflict
from bot.store import audit
from bot.testusers import asking, store
from bot.testusers.messages import notes
from bot.testusers.messages.card import act_buttons, card
from bot.testusers.rules.changes import Change
from tests.support.testusers import ADA, OTTO, WELCOME, World

HOUR = 3600


async def failed_in_part(world: World, text: str = "add welcome +1 +2 +3 for 2h"):
    """Of three people the service stores two; a minute later nothing is in doubt any more."""
    world.service.store_without("+3")
    request = await world.approved(text)
    await world.look()
    world.service.answers = list
    assert (await world.stored(request)).state is State.FAILED
    return request


async def ends(world: World) -> dict[str, float | None]:
    """When the grants end, in hours after the beginning."""
    async with world.database.read_only() as tx:
        granted = await store.grants_of_flow(tx, WELCOME)
    return {
        one: grant.ends_at and round(hours(world, grant.ends_at), 1)
        for one, grant in granted.items()
    }


def hours(world: World, at) -> float:
    return (at - world.clock.now()) / timedelta(hours=1)


async def parts_audited(world: World) -> list[tuple[list[str], list[str]]]:
    async with world.database.read_only() as tx:
        entries = await audit.latest(tx, 1000)
    details = [
        json.loads(entry.detail) for entry in entries if entry.action == "request.applied_in_part"
    ]
    return [(detail["additions"], detail["removals"]) for detail in details]


def shown(request) -> str:
    return json.dumps(
        [dict(block) for block in card(request, (), 1).slack_blocks], ensure_ascii=False
    )


def buttons(request) -> list[dict]:
    return act_buttons(request, *Act)


async def test_part_that_got_in_ends_though_nobody_retries(world):
    request = await failed_in_part(world)
    assert await ends(world) == {"+1": 2.0, "+2": 2.0}
    assert await parts_audited(world) == [(["+1", "+2"], [])]
    await world.pass_time(2 * HOUR)
    assert [button["text"]["text"] for button in buttons(await world.stored(request))] == ["Retry"]
    assert world.service.lists[WELCOME] == []
    assert [item.identity for item in (await world.stored(request)).progress.ended] == ["+1", "+2"]
    assert world.reported() == ["failed", "ended"]


async def test_card_and_messages_name_who_got_in_and_who_did_not(world):
    request = await world.stored(await failed_in_part(world))
    text = shown(request)
    assert "*Failed: only 2 of 3 changes went through*" in text
    assert "*Added until <!date^" in text
    assert "(2):*\\n`+1`  `+2`" in text
    assert "*Not added (1):*\\n`+3`" in text
    assert [button["text"]["text"] for button in buttons(request)] == ["Retry", "Undo"]
    told = notes.outcome(request, {"event": "failed", "reason": "x"}).text
    for said in (told, notes.failure_in_thread(request).text):
        assert "nly 2 of 3 changes went through" in said
        assert ": `+1`, `+2`\nNot added: `+3`" in said


async def test_retry_does_the_rest_and_leaves_the_first_ends(world):
    request = await failed_in_part(world)
    await world.pass_time(HOUR)
    await world.decide(Act.RETRY, request, ADA)
    await world.work()
    stored = await world.stored(request)
    assert (stored.state, stored.progress.part) == (State.APPLIED, None)
    assert stored.progress.done.change == Change(("+1", "+2", "+3"))
    assert (stored.progress.done.size_before, stored.progress.done.size_after) == (0, 3)
    assert await ends(world) == {"+1": 1.0, "+2": 1.0, "+3": 2.0}
    assert shown(stored).count("*Add until <!date^") == 2
    await world.pass_time(HOUR)
    assert world.service.lists[WELCOME] == ["+3"]
    await world.pass_time(HOUR)
    assert world.service.lists[WELCOME] == []


async def test_part_can_be_undone_and_then_not_be_retried(world):
    request = await failed_in_part(world)
    undo = (await asking.undo(world, await world.person(OTTO), request.id)).request
    assert undo.requested.change == Change(removals=("+1", "+2"))
    with pytest.raises(Conflict, match="someone has asked to undo it"):
        await world.decide(Act.RETRY, request, ADA)
    await world.decide(Act.APPROVE, undo, ADA)
    await world.work()
    assert (world.service.lists[WELCOME], await ends(world)) == ([], {})
    stored = await world.stored(request)
    assert (stored.state, stored.progress.is_undone) == (State.FAILED, True)
    with pytest.raises(Conflict, match="This was undone"):
        await world.decide(Act.RETRY, request, ADA)
