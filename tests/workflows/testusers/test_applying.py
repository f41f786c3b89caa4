"""Tests that an approved change takes effect exactly once, even if calls fail."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from bot.approvals.rules import Act, State
from bot.errors import Conflict
from bot.flows.rules import CONFIRMED, Change, own_changes
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    RateLimited,
    ServiceFailed,
    ServiceRefused,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.store import audit, jobs
from bot.store.job_loop import Lease, LeaseLost
from bot.testusers import store
from bot.testusers.applying import run_changes
from bot.testusers.messages import notes
from bot.testusers.messages.card import Surroundings, act_buttons, card
from bot.testusers.rules.people import Over
from tests.conftest import BOTH
from tests.support.testusers import ADA, ADAM, WELCOME, World, made, wanted


def timed_out() -> ServiceTimeout:
    return ServiceTimeout("flow", "The flow service gave no answer in time.")


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_flow_is_changed_by_one_process_at_a_time(world):
    first, second = await world.ask("add welcome +1"), await world.ask("add welcome +2")
    await world.decide(Act.APPROVE, first)
    other = World(world.database, world.clock, world.service, owner="two")
    seen = []

    async def other_works(call: str) -> None:
        if call == "replace":
            world.service.on_call = None
            reads = world.service.reads
            await other.decide(Act.APPROVE, second)
            await other.work()
            seen.append((world.service.reads - reads, list(world.service.posts)))

    world.service.on_call = other_works
    await world.work()
    assert seen == [(0, [])]
    assert world.service.posts == [("+1",), ("+1", "+2")]


async def test_an_edit_after_a_lost_answer_is_kept(world):
    request = await world.approved("add welcome +1")
    world.service.lost_answers = [timed_out()]
    await world.work()
    world.service.lists[WELCOME] = ["new", "+1"]
    await world.pass_time(1)
    assert world.service.lists[WELCOME] == ["new", "+1"]
    assert (await world.stored(request)).result.outside == Change(("new",))


async def test_the_size_of_a_list_counts_what_stands_there_twice(world):
    world.service.lists[WELCOME] = ["old", "old"]
    request = await world.approved("add welcome +1")
    await world.work()
    result = (await world.stored(request)).result
    assert world.service.lists[WELCOME] == ["old", "old", "+1"]
    assert (result.size_before, result.size_after) == (2, 3)


async def test_a_lost_lease_never_sends(world):
    await world.approved("add welcome +1")
    async with world.database.transaction() as tx:
        (job,) = [
            item for item in await jobs.claim(tx, "slow", 9) if item.kind == "testusers.apply"
        ]
    world.clock.advance(jobs.LEASE_SECONDS + 1)
    with pytest.raises(LeaseLost):
        await run_changes(world, job, Lease(world.database, "slow", job))
    assert world.service.posts == []
    await world.work()
    assert world.service.posts == [("+1",)]


async def test_a_machine_that_slept_while_connecting_does_not_send(world):
    """While the machine sleeps, the event loop's clock and timeouts stop."""
    request = await world.approved("add welcome +1")

    async def sleep(call: str) -> None:
        if call == "replace":
            world.service.on_call = None
            world.clock.advance(6)

    world.service.on_call = sleep
    await world.work()
    assert world.service.posts == []
    async with world.database.read_only() as tx:
        assert await store.post_of(tx, WELCOME) is None
    await world.pass_time(1)
    assert world.service.posts == [("+1",)]
    assert (await world.stored(request)).state is State.APPLIED


async def test_the_audit_has_the_list_before_and_after_every_change(world):
    world.service.lists[WELCOME] = ["old"]
    request = await world.approved("add welcome +1")
    world.clock.advance(60)
    at = world.clock.now()
    await world.work()
    async with world.database.read_only() as tx:
        entries = await audit.latest(tx, 9)
    (changed,) = [entry for entry in entries if entry.action == "flow.changed"]
    detail = json.loads(changed.detail)
    assert (detail["before"], detail["after"]) == (["old"], ["old", "+1"])
    assert (changed.at, detail["requests"]) == (at, [request.id])


HOUR = 3600


async def state(world: World, request) -> State:
    return (await world.stored(request)).state


async def is_in_doubt(world: World) -> bool:
    async with world.database.read_only() as tx:
        return await store.post_of(tx, WELCOME) is not None


async def test_failed_request_that_arrives_is_applied_and_ends(world):
    world.service.late = 1
    request = await world.approved("add welcome +1 for 2h")
    await world.work()
    world.service.read_faults = [ServiceFailed("flow", "x", status=502) for _ in range(20)]
    await world.look(40)
    stored = await world.stored(request)
    assert (stored.state, stored.attempts.is_unsure) == (State.FAILED, True)
    world.service.land()
    world.service.read_faults.clear()
    await world.look(120)
    assert await state(world, request) is State.APPLIED
    assert world.reported() == ["failed", "applied"]
    await world.pass_time(2 * HOUR)
    assert world.service.lists[WELCOME] == []


async def test_failed_request_that_never_arrives_says_so(world):
    world.service.late = 1
    request = await world.approved("add welcome +1")
    await world.work()
    world.service.read_faults = [ServiceFailed("flow", "x", status=502) for _ in range(20)]
    await world.look(90)
    world.service.read_faults.clear()
    await world.look(600)
    stored = await world.stored(request)
    assert (stored.state, stored.attempts.is_unsure) == (State.FAILED, False)
    assert not await is_in_doubt(world)


async def test_part_that_is_stored_takes_effect_and_the_rest_is_sent_again(world):
    world.service.late = 1
    request = await world.approved("add welcome +1 +2 for 2h")
    await world.work()
    world.service.in_the_air.clear()
    world.service.lists[WELCOME] = ["+2"]
    await world.look(65)
    assert world.service.posts == [("+2", "+1")]
    stored = await world.stored(request)
    assert stored.state is State.APPLIED
    assert made(stored) == Change(("+1", "+2"))
    async with world.database.read_only() as tx:
        assert {*await store.access_in(tx, WELCOME)} == {"+1", "+2"}


@pytest.mark.parametrize(
    "error",
    [
        ServiceUnreachable("flow", "Not there.", sent=False),
        CredentialsRefused("flow", "No."),
        PermissionMissing("flow", "No."),
        RateLimited("flow", "Too many.", code=None),
        ServiceRefused("flow", "No.", status=400),
    ],
    ids=lambda error: error.outcome,
)
async def test_refused_post_is_not_in_doubt(world, error):
    world.service.post_faults = [error]
    await world.approved("add welcome +1")
    await world.work()
    assert not await is_in_doubt(world)


@pytest.mark.parametrize(
    "error",
    [
        ServiceTimeout("flow", "No answer."),
        ServiceUnreachable("flow", "It broke."),
        ServiceRefused("flow", "Timeout.", status=408),
        ServiceFailed("flow", "Bad gateway.", status=502),
    ],
    ids=lambda error: error.outcome,
)
async def test_post_without_an_answer_is_not_sent_again_for_a_minute(world, error):
    world.service.post_faults = [error]
    await world.approved("add welcome +1")
    await world.look(60)
    assert world.service.posts == []
    await world.look(10)
    assert world.service.posts == [("+1",)]


async def test_service_that_fails_for_one_fails_only_its_request(world):
    world.service.lists[WELCOME] = ["x"]
    down = ServiceFailed("flow", "x", status=503)
    world.service.refuses = lambda identities: down if "bad" in identities else None
    some = [await world.ask(f"add welcome {who}") for who in ("+1", "“bad”")]
    some.append(await world.ask("remove welcome “x”"))
    for one in some:
        await world.decide(Act.APPROVE, one)
    await world.look(30)
    states = [await state(world, item) for item in some]
    assert states == [State.APPLIED, State.FAILED, State.APPLIED]
    assert world.service.lists[WELCOME] == ["+1"]


async def failed_in_part(world: World, text: str = "add welcome +1 +2 +3 for 2h"):
    """Approve a request while the service drops the identity `+3`, so that the request fails."""
    world.service.store_without("+3")
    request = await world.approved(text)
    await world.look()
    world.service.answers = list
    assert (await world.stored(request)).state is State.FAILED
    return request


async def ends(world: World) -> dict[str, float | None]:
    """Return the number of hours until each test user's access ends."""
    async with world.database.read_only() as tx:
        granted = await store.access_in(tx, WELCOME)
    return {
        one: grant.ends_at and round(hours(world, grant.ends_at), 1)
        for one, grant in granted.items()
    }


def hours(world: World, at) -> float:
    return (at - world.clock.now()) / timedelta(hours=1)


def shown(request) -> str:
    return json.dumps(
        [dict(block) for block in card(request, Surroundings()).slack_blocks], ensure_ascii=False
    )


def buttons(request) -> list[dict]:
    return act_buttons(request, *Act)


async def test_a_dropped_identity_is_not_taken_for_somebody_whom_the_service_respelled(world):
    def respell_and_drop(identities: list[str]) -> list[str]:
        identities[:] = ["chat:zoe"]
        return list(identities)

    await world.applied("add welcome chat:Zoe")
    world.service.answers = respell_and_drop
    request = await world.approved("add welcome +1 for 1h")
    await world.look()
    assert await ends(world) == {"chat:Zoe": None}
    assert (await world.stored(request)).state is State.FAILED


async def test_part_in_the_answer_counts_though_an_old_list_follows(world):
    world.service.store_without("+3")
    await world.approved("add welcome +1 +2 +3 for 2h")
    await world.work()
    world.service.lists[WELCOME] = []
    await world.look()
    assert world.service.posts == [("+1", "+2", "+3")]
    assert await ends(world) == {"+1": 2.0, "+2": 2.0}


async def test_access_that_a_failed_request_gave_ends_though_nobody_retries(world):
    request = await failed_in_part(world)
    assert await ends(world) == {"+1": 2.0, "+2": 2.0}
    await world.pass_time(2 * HOUR)
    assert [button["text"]["text"] for button in buttons(await world.stored(request))] == ["Retry"]
    assert world.service.lists[WELCOME] == []
    assert [one.over for one in (await world.stored(request)).people] == [
        Over.ENDED,
        Over.ENDED,
        None,
    ]
    assert world.reported() == ["failed", "ended"]


async def test_a_failed_request_says_what_the_list_has_now(world):
    request = await world.stored(await failed_in_part(world))
    text = shown(request)
    assert "*Failed: only part of the change was made*" in text
    assert "*On the list now:* `+1`, `+2`\\n*Not on the list:* `+3`" in text
    assert [button["text"]["text"] for button in buttons(request)] == ["Retry", "Undo"]
    said = notes.outcome(request, {"event": "failed", "reason": "x"}).text
    assert "only part of the change was made" in said
    assert "On the list now: `+1`, `+2`\nNot on the list: `+3`" in said


async def test_retry_does_the_rest_and_leaves_the_first_ends(world):
    request = await failed_in_part(world)
    await world.pass_time(HOUR)
    await world.decide(Act.RETRY, request, ADA)
    await world.work()
    stored = await world.stored(request)
    assert stored.state is State.APPLIED
    assert made(stored) == Change(("+1", "+2", "+3"))
    assert (stored.result.size_before, stored.result.size_after) == (0, 3)
    assert await ends(world) == {"+1": 1.0, "+2": 1.0, "+3": 2.0}
    assert shown(stored).count("*Add until <!date^") == 2
    await world.pass_time(HOUR)
    assert world.service.lists[WELCOME] == ["+3"]
    await world.pass_time(HOUR)
    assert world.service.lists[WELCOME] == []


async def test_retry_knows_who_is_on_the_list(world):
    await world.applied("add welcome +1 for 2h")
    request = await world.approved("add welcome +1 +2 for 30d")
    world.service.post_faults = [ServiceRefused("flow", "No.", status=400)]
    await world.work()
    assert await state(world, request) is State.FAILED
    await world.decide(Act.RETRY, request)
    await world.work()
    assert await state(world, request) is State.APPLIED
    assert await ends(world) == {"+1": 720.0, "+2": 720.0}


async def test_retry_of_the_rest_reads_the_list_again(world):
    request = await failed_in_part(world)
    world.service.lists[WELCOME].append("+3")
    await world.decide(Act.RETRY, request, ADA)
    await world.work()
    stored = await world.stored(request)
    assert stored.state is State.FAILED
    assert "list with longer access. Please make a new request" in stored.attempts.failure
    assert "+3" not in await ends(world)


async def test_a_failed_request_can_be_undone_and_then_not_be_retried(world):
    request = await failed_in_part(world)
    undo = await world.undo(request)
    assert wanted(undo) == Change(removals=("+1", "+2"))
    with pytest.raises(Conflict, match="someone has asked to undo it"):
        await world.decide(Act.RETRY, request, ADA)
    await world.decide(Act.APPROVE, undo, ADA)
    await world.work()
    assert (world.service.lists[WELCOME], await ends(world)) == ([], {})
    stored = await world.stored(request)
    assert (stored.state, stored.undo) == (State.FAILED, State.APPLIED)
    with pytest.raises(Conflict, match="because it was undone or"):
        await world.decide(Act.RETRY, request, ADA)


async def test_undo_after_a_retry_takes_back_what_both_attempts_changed(world):
    request = await failed_in_part(world)
    await world.decide(Act.RETRY, request, ADA)
    await world.work()
    undo = await world.undo(request)
    assert wanted(undo) == Change(removals=("+1", "+2", "+3"))


@pytest.mark.parametrize(("seconds", "is_disbelieved"), [(59, True), (61, False)])
async def test_list_without_a_confirmed_change_is_disbelieved_for_60_s(
    world, seconds, is_disbelieved
):
    await world.applied("add welcome +1")
    world.clock.advance(seconds)
    async with world.database.read_only() as tx:
        recent, _ = await store.recent_lists(tx, WELCOME, await tx.now() - CONFIRMED)
    assert any(own_changes(recent)) == is_disbelieved
    assert recent


@contextmanager
def counted_queries(world: World) -> Iterator[list[str]]:
    """Record the statements that read requests."""
    engine, queries = world.database.engine.sync_engine, list[str]()

    def note(*seen: Any) -> None:
        if "FROM requests" in seen[2]:
            queries.append(seen[2])

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield queries
    finally:
        event.remove(engine, "before_cursor_execute", note)


async def test_many_who_vanish_at_once_take_as_many_queries_as_few(world):
    counts = []
    for number in (2, 12):
        for nth in range(number):
            await world.applied(f"add welcome +{number}{nth:02}")
        await world.pass_time(90)
        world.service.lists[WELCOME] = []
        # Nobody notices before the list is read again.
        await world.ask("add welcome +9")
        with counted_queries(world) as queries:
            await world.look()
        counts.append(len(queries))
        assert await ends(world) == {}
    assert counts[0] == counts[1]


async def test_many_who_cannot_be_removed_take_as_many_queries_as_few(world):
    counts = []
    for number in (2, 12):
        for nth in range(number):
            await world.applied(f"add welcome +{number}{nth:02} for 1h")
        world.service.post_faults = [ServiceFailed("flow", "x", status=500) for _ in range(20)]
        with counted_queries(world) as queries:
            await world.pass_time(HOUR + 1)
        counts.append(len(queries))
        world.service.post_faults = []
        await world.pass_time(HOUR)
        assert await ends(world) == {}
    assert counts[0] == counts[1]


async def test_two_spellings_of_one_person_are_one_access(world):
    waiting = await world.ask("add welcome whatsapp:Bob")
    await world.applied("add welcome whatsapp:bob for 1h")
    stored = await world.stored(waiting)
    assert "extends the access of 1 person" in " ".join(stored.round.news)
    await world.decide(Act.APPROVE, waiting)
    await world.work()
    assert world.service.lists[WELCOME] == ["whatsapp:bob"]
    await world.pass_time(HOUR + 1)
    assert world.service.lists[WELCOME] == ["whatsapp:bob"]


async def test_two_approved_spellings_of_one_person_are_one_entry(world):
    requests = [await world.ask(f"add welcome {typed}") for typed in ("chat:Bob +1", "chat:bob +2")]
    for request in requests:
        await world.decide(Act.APPROVE, request)
        world.clock.advance(1)
    await world.look()
    assert world.service.lists[WELCOME] == ["chat:Bob", "+1", "+2"]
    assert [await state(world, request) for request in requests] == [State.APPLIED] * 2


async def test_of_two_approved_requests_the_later_shortens_no_access_unasked(world):
    requests = [await world.ask(f"add welcome +1{end}") for end in ("", " for 1h")]
    for request in requests:
        await world.decide(Act.APPROVE, request)
        world.clock.advance(1)
    await world.look()
    assert await ends(world) == {"+1": None}
    assert "shortens the access" in " ".join((await world.stored(requests[1])).round.news)


async def test_a_change_without_approval_adds_no_second_spelling(world):
    request = await world.ask("add welcome chat:Bob for 2h now because fire", ADAM)
    world.service.lists[WELCOME] = ["chat:bob"]
    await world.look()
    assert world.service.lists[WELCOME] == ["chat:bob"]
    assert await state(world, request) is State.APPLIED


async def test_who_is_respelled_after_the_approval_has_no_access_once_removed(world):
    await world.applied("add welcome chat:Bob")
    await world.pass_time(90)
    removal = await world.ask("remove welcome chat:Bob")
    await world.decide(Act.APPROVE, removal)
    world.service.lists[WELCOME] = ["chat:bob"]
    await world.look()
    assert (world.service.lists[WELCOME], await ends(world)) == ([], {})


async def test_an_end_and_an_addition_of_two_spellings_never_block_the_flow(world):
    def in_lower_case(identities: list[str]) -> list[str]:
        identities[:] = dict.fromkeys(identity.lower() for identity in identities)
        return list(identities)

    world.service.answers = in_lower_case
    waiting = await world.ask("add welcome whatsapp:Bob")
    await world.applied("add welcome whatsapp:bob for 1h")
    world.clock.advance(HOUR + 1)
    with pytest.raises(Conflict, match="adds them again"):
        await world.decide(Act.APPROVE, waiting)
    await world.decide(Act.APPROVE, waiting)
    await world.look()
    assert await state(world, waiting) is State.APPLIED
    await world.applied("add welcome +1")
    assert world.service.lists[WELCOME] == ["whatsapp:bob", "+1"]
