"""A request is checked before anyone is asked, and what is asked is stored."""

import asyncio
from datetime import timedelta

import pytest

from bot.errors import Conflict, NotConfigured, NotFound, Refused
from bot.model.testusers.approval import Act, State
from bot.model.testusers.changes import Change
from bot.parsing.testusers import parse_testusers
from bot.service_errors import ServiceFailed
from bot.store import requests
from bot.workflows.testusers.asking import Asking
from bot.workflows.testusers.transitions import CARD
from tests.support.testusers import (
    ABEL,
    ADA,
    ADAM,
    NORA,
    OTTO,
    VERA,
    WELCOME,
    World,
    default_policy,
)


async def asked(world: World, text: str, by: str = OTTO):
    return await world.asking.ask(await world.person(by), parse_testusers(text))


async def pending(world: World):
    async with world.database.read_only() as tx:
        return await requests.pending(tx, limit=10)


async def test_a_request_is_stored_with_exactly_what_was_asked(world):
    world.service.lists[WELCOME] = ["old"]
    request = await world.ask("add Welcome “+1 555”, b@x.example for 2h because it’s a demo")
    stored = await world.stored(request)
    assert stored == request
    assert stored.state is State.PENDING
    assert stored.requested.change == Change(("+1 555", "b@x.example"))
    assert stored.requested.duration_seconds == 7200
    assert stored.requested.reason == "it’s a demo"
    assert stored.requested.seen == ("old",)
    assert stored.flow.name == "welcome"
    assert stored.expires_at - stored.created_at == timedelta(hours=24)


async def test_what_is_true_already_is_dropped_and_named(world):
    world.service.lists[WELCOME] = ["+1"]
    result = await asked(world, "add welcome +1 +2")
    assert result.effect.dropped == Change(("+1",))
    assert result.request.requested.change == Change(("+2",))


async def test_when_all_is_true_already_no_request_is_made(world):
    world.service.lists[WELCOME] = ["+1"]
    assert (await asked(world, "add welcome +1")).request is None
    assert (await asked(world, "remove welcome +2")).request is None
    assert await pending(world) == []


@pytest.mark.parametrize("by", [VERA, NORA])
async def test_who_may_not_ask_is_refused_before_any_call_and_audited(world, by):
    with pytest.raises(Refused):
        await asked(world, "add welcome +1", by)
    assert world.service.reads == 0
    assert await world.audited() == [(by, "permission.refused")]


@pytest.mark.parametrize("by", [OTTO, ADA])
async def test_only_an_admin_may_skip_the_approval(world, by):
    with pytest.raises(Refused):
        await asked(world, "add welcome +1 now because x", by)
    assert world.service.reads == 0


async def test_an_unknown_flow_is_said_with_those_that_there_are(world):
    with pytest.raises(NotFound, match=r"I don't know a flow “other”. \(Flows: survey, welcome\)"):
        await asked(world, "add other +1")


async def test_a_list_that_cannot_be_read_makes_no_request(world):
    world.service.read_faults = [ServiceFailed("flow", "Down.", status=500)]
    with pytest.raises(ServiceFailed):
        await asked(world, "add welcome +1")
    assert await pending(world) == []


async def test_without_its_settings_it_says_which_are_needed(world):
    bare = World(world.database, world.clock)
    object.__setattr__(bare.setup, "flow_service", None)
    with pytest.raises(NotConfigured, match="FLOW_BASE_URL"):
        await asked(bare, "add welcome +1")


async def test_the_approvers_of_a_flow_are_those_of_its_sid_in_any_case(database, clock):
    sid = "FW" + "ab" * 16
    world = World(database, clock, policy=default_policy(flow_approvers={sid.upper(): (ABEL,)}))
    world.service.lists |= {sid: [], sid.upper(): []}
    for spelled in (sid, sid.upper()):
        request = await world.ask(f"add {spelled} +1")
        with pytest.raises(Refused, match="for this flow"):
            await world.decide(Act.APPROVE, request, ADA)


async def undo(world: World, request, by: str = OTTO):
    return await Asking(world.setup).undo(await world.person(by), request.id)


async def applied(world: World, text: str):
    request = await world.ask(text)
    await world.decide(Act.APPROVE, request)
    await world.work()
    return request


async def test_undo_reads_no_list_that_could_not_be_read_just_now(world):
    request = await applied(world, "add welcome +1")
    world.service.read_faults = [ServiceFailed("flow", "It broke.", status=500)]
    reads = world.service.reads
    for _ in range(3):
        with pytest.raises(ServiceFailed):
            await undo(world, request)
    assert world.service.reads == reads + 1


async def test_an_undo_is_a_request_of_its_own_that_needs_approval(world):
    world.service.lists[WELCOME] = ["old"]
    request = await applied(world, "add welcome +1")
    inverse = (await undo(world, request)).request
    assert inverse.requested.change == Change((), ("+1",))
    assert inverse.requested.undo_of == request.id
    assert world.service.lists[WELCOME] == ["old", "+1"]
    await world.decide(Act.APPROVE, inverse)
    await world.work()
    assert world.service.lists[WELCOME] == ["old"]
    assert (await world.stored(request)).progress.is_undone


async def test_an_undo_takes_back_only_what_was_really_done(world):
    request = await world.ask("add welcome +1 +2")
    world.service.lists[WELCOME] = ["+1"]
    await world.decide(Act.APPROVE, request)
    await world.work()
    assert (await undo(world, request)).request.requested.change == Change((), ("+2",))


async def test_an_undo_gives_a_removed_person_the_time_that_was_left(world):
    await applied(world, "add welcome +1 for 2h")
    removal = await applied(world, "remove welcome +1")
    world.clock.advance(3600)
    inverse = (await undo(world, removal)).request
    await world.decide(Act.APPROVE, inverse, ABEL)
    await world.work()
    assert world.service.lists[WELCOME] == ["+1"]
    await world.pass_time(3601)
    assert world.service.lists[WELCOME] == []


async def test_an_undo_of_an_extension_restores_the_earlier_end(world):
    await applied(world, "add welcome +1 for 2h")
    longer = await applied(world, "add welcome +1 for 3d")
    inverse = (await undo(world, longer)).request
    await world.decide(Act.APPROVE, inverse)
    await world.work()
    assert world.service.lists[WELCOME] == ["+1"]
    await world.pass_time(7201)
    assert world.service.lists[WELCOME] == []


async def test_an_undo_of_an_extension_that_came_after_the_end_takes_the_person_out(world):
    await applied(world, "add welcome +1 for 2h")
    world.clock.advance(7000)
    late = await world.ask("add welcome +1 for 2h")
    assert late.requested.end_changes == ("+1",)
    await world.pass_time(300)
    assert world.service.lists[WELCOME] == []
    await world.decide(Act.APPROVE, late)
    await world.work()
    assert world.service.lists[WELCOME] == ["+1"]
    inverse = (await undo(world, late)).request
    assert inverse.requested.change == Change((), ("+1",))
    await world.decide(Act.APPROVE, inverse)
    await world.work()
    assert world.service.lists[WELCOME] == []


@pytest.mark.parametrize("together", [True, False])
async def test_an_undo_restores_an_end_that_nobody_knew_when_it_was_asked(world, together):
    first, longer = [await world.ask(f"add welcome +1 for {hours}h") for hours in (2, 5)]
    await world.decide(Act.APPROVE, first)
    if not together:
        await world.work()
    world.clock.advance(1)
    await world.decide(Act.APPROVE, longer)
    await world.work()
    inverse = (await undo(world, longer)).request
    assert inverse.requested.end_changes == ("+1",)
    await world.decide(Act.APPROVE, inverse)
    await world.work()
    assert world.service.lists[WELCOME] == ["+1"]
    await world.pass_time(7201)
    assert world.service.lists[WELCOME] == []


async def test_an_undo_of_an_extension_brings_nobody_back(world):
    await applied(world, "add welcome +1 for 2h")
    longer = await applied(world, "add welcome +1 for 3d")
    world.service.lists[WELCOME] = []
    assert (await undo(world, longer)).request is None


async def test_an_undo_of_what_gave_an_end_takes_the_end_away(world):
    world.service.lists[WELCOME] = ["+1"]
    timed = await applied(world, "add welcome +1 for 2h")
    inverse = (await undo(world, timed)).request
    assert (inverse.requested.end_changes, inverse.requested.ends) == (("+1",), {})
    await world.decide(Act.APPROVE, inverse)
    await world.pass_time(7201)
    assert world.service.lists[WELCOME] == ["+1"]


async def test_what_an_undo_of_the_undo_brings_back_can_be_undone_again(world):
    chain = [await applied(world, "add welcome +1")]
    for number in range(1, 5):
        chain.append((await undo(world, chain[-1])).request)
        await world.decide(Act.APPROVE, chain[-1])
        world.messages.clear()
        await world.work()
        assert world.service.lists[WELCOME] == (["+1"] if number % 2 == 0 else [])
        stored = [await world.stored(one) for one in chain]
        for one, after in zip(reversed(stored[:-1]), range(number), strict=True):
            assert one.progress.is_undone is (after % 2 == 0)
            assert (one.progress.undone_by is not None) is (after % 2 == 0)
        cards = {one.subject for one in world.messages if one.kind == CARD}
        assert cards == {one.id for one in chain}
    assert (await undo(world, chain[0])).request is not None


async def test_an_undo_that_is_given_up_leaves_another_ones_mark(world):
    request = await applied(world, "add welcome +1")
    first = (await undo(world, request)).request
    await world.decide(Act.APPROVE, first)
    await world.work()
    back = (await undo(world, first)).request
    await world.decide(Act.APPROVE, back)
    await world.work()
    waiting = (await undo(world, request)).request
    again = (await undo(world, back)).request
    await world.decide(Act.APPROVE, again)
    await world.work()
    await world.decide(Act.DENY, waiting, ADA, "no")
    assert (await world.stored(request)).progress.undone_by == first.id


async def test_a_change_is_undone_once_unless_the_undo_is_given_up(world):
    request = await applied(world, "add welcome +1")
    inverse = (await undo(world, request)).request
    with pytest.raises(Conflict, match="already asked to undo"):
        await undo(world, request, ADA)
    assert (await undo(world, request)).request == inverse
    assert len(await pending(world)) == 1
    await world.decide(Act.DENY, inverse, ADA, "no")
    await world.pass_time(60)
    assert (await undo(world, request)).request is not None


@pytest.mark.parametrize(("act", "by"), [(Act.CANCEL, OTTO), (Act.DENY, ADA)])
async def test_undo_that_was_given_up_is_asked_again_after_a_minute(world, act, by):
    request = await applied(world, "add welcome +1")
    inverse = (await undo(world, request)).request
    world.clock.advance(5)
    await world.decide(act, inverse, by, "no" if act is Act.DENY else "")
    world.clock.advance(42.5)
    for somebody in (OTTO, ADA):
        with pytest.raises(Conflict, match="You can ask again in 18 s"):
            await undo(world, request, somebody)
    assert await pending(world) == []
    world.clock.advance(17.5)
    assert (await undo(world, request)).request is not None


async def test_only_an_applied_change_is_undone(world):
    request = await world.ask("add welcome +1")
    with pytest.raises(Conflict, match="still waiting for approval"):
        await undo(world, request)


async def test_who_may_not_ask_may_not_undo(world):
    request = await applied(world, "add welcome +1")
    with pytest.raises(Refused):
        await undo(world, request, VERA)


async def test_an_undo_that_finds_nothing_to_take_back_says_so(world):
    request = await applied(world, "add welcome +1")
    world.service.lists[WELCOME] = []
    assert (await undo(world, request, ADAM)).request is None


async def test_a_delivery_that_comes_again_asks_for_the_same_request(world):
    person, command = await world.person(OTTO), parse_testusers("add welcome +1")
    first, again = await asyncio.gather(
        world.asking.ask(person, command, "one"), world.asking.ask(person, command, "one")
    )
    assert first.request is not None
    assert again.request is not None
    assert first.request.id == again.request.id
    assert len(await pending(world)) == 1
    assert [action for _, action in await world.audited()] == ["request.created"]
    await world.asking.ask(person, command, "two")
    assert len(await pending(world)) == 2


async def test_a_delivery_is_followed_again_once_its_request_is_decided(world):
    """Somebody else's Slack may give the same ids to different deliveries."""
    person, command = await world.person(OTTO), parse_testusers("add welcome +1")
    first = await world.asking.ask(person, command, "one")
    assert first.request is not None
    await world.decide(Act.CANCEL, first.request, OTTO)
    again = await world.asking.ask(person, command, "one")
    assert again.request is not None
    assert again.request.id != first.request.id
    assert again.request.state is State.PENDING


async def test_one_person_has_twenty_requests_waiting_at_most(world):
    for number in range(20):
        await world.ask(f"add welcome +1{number:03}")
    with pytest.raises(Conflict, match="20 requests of yours wait"):
        await asked(world, "add welcome +2")
    await world.ask("add welcome +2", by=ADA)
    mine = next(one for one in await pending(world) if one.requester.slack_user_id == OTTO)
    await world.decide(Act.CANCEL, mine, by=OTTO)
    await world.ask("add welcome +2")


async def test_twenty_at_once_beside_nineteen_are_one_more(world):
    for number in range(19):
        await world.ask(f"add welcome +1{number:03}")
    at_once = [asked(world, f"add welcome +2{number:03}") for number in range(20)]
    results = await asyncio.gather(*at_once, return_exceptions=True)
    assert sum(isinstance(one, Conflict) for one in results) == 19
