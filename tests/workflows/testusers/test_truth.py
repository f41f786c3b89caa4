"""Tests that cards, messages and undo requests match the current state."""

import pytest

from bot.approvals.rules import Act, FlowPolicy, State
from bot.errors import Conflict
from bot.flows.rules import Change
from bot.services.errors import ResponseUnreadable, ServiceFailed, ServiceRefused, ServiceTimeout
from bot.slack.messages.block_kit import Wanted
from bot.store.outbox import OutboxMessage
from bot.testusers import asking, reading, store
from bot.testusers.deciding import Click, decide
from bot.testusers.parse.command import ShownRequest, parse_testusers
from bot.testusers.rendering import RequestMessages
from bot.testusers.work import OUTCOME
from tests.support.testusers import ABEL, ADA, ADAM, OTTO, WELCOME, World, default_policy, wanted

HOUR = 3600


def with_policy(database, clock, **keys) -> World:
    policies = {WELCOME: FlowPolicy(**keys)}
    return World(database, clock, policy=default_policy(flow_policies=policies))


async def text_of(world: World, event: str, request) -> str | None:
    """Return the text of the direct message about an event, or None if no message is sent."""
    payload = {"event": event, "reason": "x"}
    message = OutboxMessage(f"requester:{request.id}", OUTCOME, request.id, payload)
    async with world.database.read_only() as tx:
        outgoing = await RequestMessages(world).notes[OUTCOME](tx, message)
    return outgoing and (await outgoing.draw()).text


# The tests' clock starts at 9:00 UTC, which is 10:00 in the requester's time zone.
@pytest.mark.parametrize("by_admin", [False, True])
async def test_access_that_ends_before_it_could_be_given_expires(world, by_admin):
    down = ServiceFailed("flow", "x", status=503)
    world.service.post_faults = [down] * 9
    if by_admin:
        request = await world.ask("add welcome +1 until 10:01 now because x", ADAM)
    else:
        request = await world.approved("add welcome +1 until 10:01")
    world.clock.advance(HOUR)
    await world.work()
    stored = await world.stored(request)
    assert stored.state is State.EXPIRED
    assert world.service.posts == []
    said = await text_of(world, "expired", stored)
    assert "*Expired* because the requested access would already have ended" in said


async def test_access_that_ends_while_its_post_is_in_doubt_expires(world):
    request = await world.ask("add welcome +1 until 10:01")
    world.clock.advance(40)
    await world.decide(Act.APPROVE, request)
    world.service.post_faults = [ServiceTimeout("flow", "x")]
    await world.look()
    assert (await world.stored(request)).state is State.EXPIRED
    assert (world.service.posts, world.service.lists[WELCOME]) == ([], [])


@pytest.mark.parametrize("is_applying", [True, False])
async def test_an_undo_that_restores_access_too_late_expires(world, is_applying):
    await world.applied("add welcome +1 for 1h")
    undo = await world.undo(await world.applied("remove welcome +1"))
    posts = [*world.service.posts]
    if is_applying:
        world.service.post_faults = [ServiceFailed("flow", "x", status=503)]
        await world.decide(Act.APPROVE, undo)
        await world.work()
    world.clock.advance(HOUR)
    if not is_applying:
        with pytest.raises(Conflict, match="has expired"):
            await world.decide(Act.APPROVE, undo)
    await world.work()
    stored = await world.stored(undo)
    assert (stored.state, world.service.posts) == (State.EXPIRED, posts)
    said = await text_of(world, "expired", stored)
    assert "*Expired* because the requested access would already have ended" in said


async def outdated(world: World):
    """Request an extension of access, and let the access end before the request is approved."""
    await world.applied("add welcome +1 for 30s")
    request = await world.ask("add welcome +1 for 2h")
    await world.pass_time(31)
    return await world.stored(request)


@pytest.mark.parametrize("act", [Act.APPROVE, Act.DENY, Act.CANCEL])
@pytest.mark.parametrize("version", [0, 1, 3])
async def test_a_click_on_a_card_of_another_version_does_nothing(world, act, version):
    request = await outdated(world)
    assert (request.state, request.requested.card_version) == (State.PENDING, 2)
    who = await world.person(OTTO if act is Act.CANCEL else ADA)
    with pytest.raises(Conflict, match="Nothing was applied"):
        await decide(world, Click(who, act, ShownRequest(request.id, version), "no"))
    assert (await world.stored(request)).state is State.PENDING
    await world.decide(act, request, who.slack_user_id, "no")
    assert (await world.stored(request)).state is not State.PENDING


async def test_a_click_on_an_old_button_names_what_has_changed(world):
    request = await outdated(world)
    ada = await world.person(ADA)
    with pytest.raises(Conflict, match="no longer be on the list when this change takes effect"):
        await decide(world, Click(ada, Act.APPROVE, ShownRequest(request.id, 1)))
    with pytest.raises(Conflict, match="from an older version"):
        await decide(world, Click(ada, Act.APPROVE, ShownRequest(request.id)))


async def test_the_first_of_two_approvals_leaves_the_version(database, clock):
    world = World(database, clock, policy=default_policy(approvals_needed=2))
    request = await world.ask("add welcome +1")
    for who in (ADA, ABEL):
        shown = ShownRequest(request.id, 1)
        await decide(world, Click(await world.person(who), Act.APPROVE, shown))
    assert (await world.stored(request)).state is State.APPLYING


async def test_a_retry_or_an_undo_on_an_outdated_card_does_nothing(world):
    failed, applied = await world.ask("add welcome +1"), await world.applied("add welcome +2")
    world.service.post_faults = [ServiceRefused("flow", "x", status=400, message="x")]
    await world.decide(Act.APPROVE, failed)
    await world.work()
    with pytest.raises(Conflict, match="Nothing was applied"):
        await decide(world, Click(await world.person(ADA), Act.RETRY, ShownRequest(failed.id)))
    assert (await world.stored(failed)).state is State.FAILED
    with pytest.raises(Conflict, match="Nothing was applied"):
        await asking.undo(world, await world.person(OTTO), ShownRequest(applied.id))


async def test_a_second_round_of_approval_has_its_own_reminder(database, clock):
    world = with_policy(database, clock, escalate_after_seconds=2 * HOUR, escalate_to=(ADAM,))
    world.service.post_faults = [ServiceRefused("flow", "x", status=400, message="x")]
    request = await world.ask("add welcome +1 for 2h")
    await world.pass_time(5 * HOUR)
    assert (await world.stored(request)).round.rung == ("escalate", "remind")
    await world.decide(Act.APPROVE, request)
    await world.work()
    world.service.lists[WELCOME] = ["+1"]
    await world.decide(Act.RETRY, request)
    await world.work()
    await world.pass_time(2 * HOUR - 1)
    assert (await world.stored(request)).round.rung == ()
    await world.pass_time(1)
    assert (await world.stored(request)).round.rung == ("escalate",)
    await world.pass_time(2 * HOUR)
    assert (await world.stored(request)).round.rung == ("escalate", "remind")


async def test_an_undo_leaves_what_a_later_request_gave(world):
    first = await world.applied("add welcome +1 +2 for 2h")
    await world.applied("add welcome +1 for 30d")
    assert wanted(await world.undo(first)) == Change(removals=("+2",))


async def test_an_undo_leaves_people_who_were_added_back_by_hand(world):
    first = await world.applied("add welcome +1 +2")
    await world.applied("remove welcome +1")
    world.service.lists[WELCOME].append("+1")
    await world.pass_time(60)
    assert wanted(await world.undo(first)) == Change(removals=("+2",))


async def test_undoing_a_removal_leaves_access_that_was_given_since(world):
    await world.applied("add welcome +1 +2 for 2h")
    removal = await world.applied("remove welcome +1 +2")
    await world.applied("add welcome +1 for 30d")
    undo = await world.undo(removal)
    assert wanted(undo) == Change(additions=("+2",))


async def test_an_outdated_list_is_read_again_when_somebody_asks(world):
    await world.applied("add welcome +1")
    answers = [[], ["+1"]]

    async def old_list(_flow_sid: str) -> list[str]:
        return answers.pop(0)

    world.service.read = old_list
    assert wanted(await world.ask("remove welcome +1")) == Change(removals=("+1",))


@pytest.mark.parametrize("seconds", [59, 61])
async def test_a_list_without_a_new_change_is_not_believed_for_a_minute(world, seconds):
    await world.applied("add welcome +1")
    world.service.lists[WELCOME] = []
    world.clock.advance(seconds)
    otto = await world.person(OTTO)
    shown = reading.listed(world, otto, Wanted(flow="welcome"))
    if seconds > 60:
        assert "has no test users" in (await shown).text
        return
    with pytest.raises(ResponseUnreadable, match="doesn't show a change that I made"):
        await shown
    command = parse_testusers("remove welcome +1")
    with pytest.raises(ResponseUnreadable, match="doesn't show a change that I made"):
        await asking.ask(world, otto, command)


async def test_a_direct_message_that_is_no_longer_true_is_not_sent(world):
    request = await world.ask("add welcome +1")
    assert await text_of(world, "failed", request) is None
    assert await text_of(world, "asked_again", request) is not None
    await world.work()
    await world.decide(Act.APPROVE, request)
    await world.work()
    assert await text_of(world, "asked_again", request) is None
    assert "*Applied*" in await text_of(world, "applied", request)


@pytest.mark.parametrize("page", ["list", "ask"])
async def test_a_list_without_somebody_ends_their_grant(world, page):
    await world.applied("add welcome +7 for 3d")
    await world.pass_time(61)
    world.service.lists[WELCOME] = []
    otto = await world.person(OTTO)
    if page == "list":
        await reading.listed(world, otto, Wanted(flow="welcome"))
    else:
        await world.ask("add welcome +8")
    await world.work()
    await world.pass_time(59)
    assert await granted(world) == ["+7"]
    await world.pass_time(1)
    assert await granted(world) == []


async def granted(world: World) -> list[str]:
    async with world.database.read_only() as tx:
        return list(await store.access_in(tx, WELCOME))


async def test_two_changes_in_a_row_do_not_end_the_grant_of_somebody_missing(world):
    await world.applied("add welcome +7 for 3d")
    await world.pass_time(61)
    world.service.lists[WELCOME] = []
    for who in ("+1", "+2"):
        await world.applied(f"add welcome {who}")
    assert "+7" in await granted(world)


async def test_outside_edits_seen_while_asking_again_are_mentioned(world):
    world.service.lists[WELCOME] = ["+1"]
    request = await world.ask("add welcome +1 for 2h")
    world.service.lists[WELCOME] = ["+7"]
    await world.decide(Act.APPROVE, request)
    await world.work()
    assert (await world.stored(request)).state is State.PENDING
    await world.decide(Act.APPROVE, request)
    await world.work()
    assert (await world.stored(request)).result.outside == Change(additions=("+7",))


async def test_a_second_retry_hears_who_retried(world):
    world.service.post_faults = [ServiceRefused("flow", "x", status=400, message="x")]
    request = await world.approved("add welcome +1")
    await world.work()
    await world.decide(Act.RETRY, request, ABEL)
    with pytest.raises(Conflict, match="Abel Approver already retried this"):
        await world.decide(Act.RETRY, request, ADA)
