"""Tests the checks that a request must pass before the request is stored and posted."""

import asyncio
import json
import random

import pytest

from bot.approvals.rules import Act, FlowPolicy, State
from bot.errors import Conflict, NotFound, Refused
from bot.explain import explain
from bot.flows.rules import Change, Flow
from bot.permissions import Role
from bot.store import audit
from bot.store.engine import Database
from bot.testusers import asking, presets, store
from bot.testusers.messages import notes, phrases
from bot.testusers.parse.command import ShownRequest, parse_testusers
from bot.testusers.rules.people import Effect
from tests.support.testusers import (
    ABEL,
    ADA,
    ADAM,
    NAMES,
    NORA,
    OTTO,
    VERA,
    WELCOME,
    World,
    default_policy,
    wanted,
)


async def asked(world: World, text: str, by: str = OTTO):
    return await asking.ask(world, await world.person(by), parse_testusers(text))


async def pending(world: World):
    async with world.database.read_only() as tx:
        return await store.requests_in(tx, State.PENDING)


async def test_when_all_is_true_already_no_request_is_made(world):
    world.service.lists[WELCOME] = ["+1"]
    assert (await asked(world, "add welcome +1")).request is None
    assert (await asked(world, "remove welcome +2")).request is None
    assert await pending(world) == []


async def undo(world: World, request, by: str = OTTO):
    version = (await world.stored(request)).requested.card_version
    shown = ShownRequest(request.id, version)
    return await asking.undo(world, await world.person(by), shown)


@pytest.mark.parametrize("is_asked_first", [False, True])
async def test_an_undo_adds_no_second_spelling_of_somebody_who_is_there_again(
    world, is_asked_first
):
    world.service.lists[WELCOME] = ["whatsapp:Bob", "whatsapp:bob"]
    removal = await world.applied("remove welcome whatsapp:bob")
    assert world.service.lists[WELCOME] == []
    asked = await undo(world, removal) if is_asked_first else None
    world.service.lists[WELCOME] = ["whatsapp:BOB"]
    if asked:
        await world.decide(Act.APPROVE, asked.request)
        await world.work()
        stored = await world.stored(asked.request)
        assert stored.state is State.APPLIED
        assert (stored.result.size_before, stored.result.size_after) == (1, 1)
    else:
        assert (await undo(world, removal)).request is None
    assert world.service.lists[WELCOME] == ["whatsapp:BOB"]


async def test_an_undo_takes_back_only_what_was_really_done(world):
    request = await world.ask("add welcome +1 +2")
    world.service.lists[WELCOME] = ["+1"]
    await world.decide(Act.APPROVE, request)
    await world.work()
    assert wanted((await undo(world, request)).request) == Change((), ("+2",))


async def test_an_undo_gives_a_removed_person_the_time_that_was_left(world):
    await world.applied("add welcome +1 for 2h")
    removal = await world.applied("remove welcome +1")
    world.clock.advance(3600)
    inverse = (await undo(world, removal)).request
    await world.decide(Act.APPROVE, inverse, ABEL)
    await world.work()
    assert world.service.lists[WELCOME] == ["+1"]
    await world.pass_time(3601)
    assert world.service.lists[WELCOME] == []


async def test_an_undo_restores_an_end_that_was_set_after_the_request(world):
    first, longer = [await world.ask(f"add welcome +1 for {hours}h") for hours in (2, 5)]
    await world.decide(Act.APPROVE, first)
    await world.work()
    world.clock.advance(1)
    await world.decide(Act.APPROVE, longer)
    await world.work()
    inverse = (await undo(world, longer)).request
    assert [one.shown for one in inverse.people] == [Effect.LIMIT]
    await world.decide(Act.APPROVE, inverse)
    await world.work()
    assert world.service.lists[WELCOME] == ["+1"]
    await world.pass_time(7201)
    assert world.service.lists[WELCOME] == []


async def test_an_undo_that_waits_until_the_earlier_end_says_that_it_removes(world):
    await world.applied("add welcome +1 for 2h")
    inverse = (await undo(world, await world.applied("add welcome +1 for 5h"))).request
    await world.decide(Act.APPROVE, inverse)
    world.clock.advance(7200)
    await world.work()
    assert [one.shown for one in (await world.stored(inverse)).people] == [Effect.REMOVE]


async def test_a_change_is_undone_once_unless_the_undo_is_given_up(world):
    request = await world.applied("add welcome +1")
    inverse = (await undo(world, request)).request
    with pytest.raises(Conflict, match="Someone has already asked to undo this"):
        await undo(world, request, ADA)
    again = await undo(world, request)
    assert again.is_repeated
    assert again.request.id == inverse.id
    assert len(await pending(world)) == 1
    await world.decide(Act.DENY, inverse, ADA, "no")
    await world.pass_time(60)
    assert (await undo(world, request)).request is not None


async def test_somebody_who_had_vanished_before_a_change_loses_access_by_its_undo(world):
    await world.applied("add welcome +1 for 2h")
    await world.pass_time(90)
    world.service.lists[WELCOME] = []
    request = await world.stored(await world.applied("add welcome +1 for 5h"))
    assert request.people[0].earlier_end
    assert phrases.undo_in_plain(request) == "remove +1 from welcome"


async def test_only_an_applied_change_is_undone(world):
    request = await world.ask("add welcome +1")
    with pytest.raises(Conflict, match="nothing to undo"):
        await undo(world, request)


async def test_an_undo_that_finds_nothing_to_take_back_says_so(world):
    request = await world.applied("add welcome +1")
    world.service.lists[WELCOME] = []
    await world.pass_time(60)
    assert (await undo(world, request, ADAM)).request is None


async def test_one_person_has_twenty_requests_waiting_at_most(world):
    for number in range(20):
        await world.ask(f"add welcome +1{number:03}")
    with pytest.raises(Conflict, match="already have 20 requests waiting"):
        await asked(world, "add welcome +2")
    await world.ask("add welcome +2", by=ADA)
    mine = next(item for item in await pending(world) if item.requester.slack_user_id == OTTO)
    await world.decide(Act.CANCEL, mine, by=OTTO)
    await world.ask("add welcome +3")


MARKED, OTHER = "\u202a+15550100\u202c", "\u200e+15550100"
COMPOSED, DECOMPOSED = "caf\u00e9@b.c", "cafe\u0301@b.c"


@pytest.mark.parametrize(
    ("listed", "typed"),
    [
        (MARKED, "+15550100"),
        (MARKED, OTHER),
        (DECOMPOSED, COMPOSED),
    ],
)
async def test_who_is_listed_in_another_spelling_can_be_removed(world, listed, typed):
    world.service.lists[WELCOME] = ["x", listed, "\u200ey"]
    request = await world.applied(f"remove welcome {typed}")
    assert wanted(request) == Change(removals=(listed,))
    assert world.service.lists[WELCOME] == ["x", "\u200ey"]


async def test_who_is_listed_in_another_spelling_is_not_added_again(world):
    world.service.lists[WELCOME] = [MARKED]
    result = await asked(world, "add welcome +15550100 +2")
    assert result.dropped == Change((MARKED,))
    assert wanted(result.request) == Change(("+2",))
    assert (await asked(world, "add welcome +15550100")).request is None


async def test_saving_and_deleting_are_audited_with_what_was(world):
    otto = await world.person(OTTO)
    await presets.save_preset(world, otto, "demo", ("+1",))
    await presets.delete_preset(world, otto, "demo")
    with pytest.raises(NotFound, match="no preset “@demo”"):
        await presets.delete_preset(world, otto, "demo")
    assert await world.audited() == [(OTTO, "preset.saved"), (OTTO, "preset.deleted")]
    assert await presets.every_preset(world) == []


@pytest.mark.postgres
async def test_a_preset_is_changed_by_one_person_at_a_time(postgres_url, clock):
    databases = [Database(postgres_url, clock) for _ in range(2)]
    worlds = [World(database, clock, owner=str(database)) for database in databases]
    otto = await worlds[0].person(OTTO)
    await asyncio.gather(
        *(presets.save_preset(worlds[n % 2], otto, "demo", (f"+{n}",)) for n in range(6))
    )
    gone = await asyncio.gather(
        *(presets.delete_preset(worlds[n % 2], otto, "demo") for n in range(6)),
        return_exceptions=True,
    )
    assert sum(isinstance(one, NotFound) for one in gone) == 5
    async with databases[0].read_only() as tx:
        entries = [json.loads(entry.detail) for entry in await audit.latest(tx, 100)][::-1]
    saved = [entry for entry in entries if "after" in entry]
    assert [entry["before"] for entry in saved[1:]] == [entry["after"] for entry in saved[:-1]]
    for one in databases:
        await one.close()


async def test_a_viewer_looks_and_changes_nothing(world):
    vera = await world.person(VERA)
    await presets.save_preset(world, await world.person(ADA), "demo", ("+15550100",))
    for act in (
        presets.save_preset(world, vera, "demo", ("+1",)),
        presets.delete_preset(world, vera, "demo"),
    ):
        with pytest.raises(Refused):
            await act
    shown = notes.presets(await presets.every_preset(world), phrases.masked).text
    assert "`@demo` (1 test user): `…0100` · saved by Ada Approver" in shown
    assert "5550" not in shown


HOUR = 3600


def with_policy(database, clock, **keys) -> World:
    policies = {WELCOME: FlowPolicy(**keys)}
    return World(database, clock, policy=default_policy(flow_policies=policies))


async def test_an_undo_gives_no_longer_access_than_the_policy_allows(database, clock):
    world = with_policy(database, clock, longest_seconds=24 * HOUR)
    world.service.lists[WELCOME] = ["+9"]
    request = await world.applied("remove welcome +9")
    with pytest.raises(Conflict, match=r"Add an end.*so use /testusers add"):
        await world.undo(request)


async def test_until_is_measured_against_the_longest_time(database, clock):
    """The test starts at 10:00 Berlin time."""
    world = with_policy(database, clock, longest_seconds=24 * HOUR)
    await world.ask("add welcome +1 until 2026-03-03 9:59")
    with pytest.raises(Conflict, match="at most 1d"):
        await world.ask("add welcome +2 until 2026-03-03 10:01")


PEOPLE = (OTTO, ADA, ABEL, ADAM, VERA, NORA)
CASES = 60


async def test_explaining_agrees_with_what_then_happens(database, clock):
    chance = random.Random(19)
    ids = (*PEOPLE, "S0APPROVERS")
    agreed = 0
    plain = World(database, clock)
    stored = await plain.ask("add welcome +1")
    for _ in range(CASES):
        named = {
            key: FlowPolicy(approvers=tuple(chance.sample(ids, 2)), approvals_needed=20)
            for key in (WELCOME, "*")
            if chance.random() < 0.5
        }
        roles = {role: tuple(chance.sample(ids, 2)) for role in Role}
        policy = default_policy(
            roles=roles,
            flow_policies=named,
            allow_self_approval=chance.random() < 0.3,
            approvals_needed=20,
        )
        world = World(database, clock, policy=policy)
        user = chance.choice(PEOPLE)
        lines = await explain(world.people, Flow(WELCOME, "welcome"), user)
        told = next(line for line in lines if line.startswith(f"{NAMES[user]} ({user})"))
        is_own = user == OTTO
        own_line = [line for line in lines if line.startswith("People ")]
        expected = " can approve " in told
        if is_own and expected:
            expected = own_line == ["People can approve their own requests [ALLOW_SELF_APPROVAL]"]
        happened = await is_taken(world, stored, user)
        assert happened == expected, (lines, policy)
        agreed += happened
    assert CASES / 10 < agreed < CASES * 9 / 10


async def is_taken(world: World, request, user: str) -> bool:
    """Try to approve a request, and return True if the person is allowed to approve it."""
    try:
        await world.decide(Act.APPROVE, request, user)
    except Refused:
        return False
    except Conflict:
        return True
    return True
