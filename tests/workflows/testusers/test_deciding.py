"""Tests that the first click wins, every click gets a reply, and every decision is audited."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

import pytest

from bot.approvals.rules import Act, State
from bot.errors import DatabaseUnavailable
from bot.flows.rules import CONFIRMED
from bot.slack.messages.block_kit import Message
from bot.store import audit, jobs, outbox
from bot.store.job_loop import Lease, Runner
from bot.store.jobs import Again
from bot.testusers import store
from bot.testusers.interactions import (
    INTERACTION,
    StoredInteraction,
    run_click,
    store_click,
)
from tests.conftest import BOTH
from tests.support.testusers import (
    ABEL,
    ADA,
    ADAM,
    OTTO,
    WELCOME,
    World,
    default_policy,
)


@pytest.fixture
def two_needed(database, clock) -> World:
    return World(database, clock, policy=default_policy(approvals_needed=2))


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_of_an_approval_and_a_denial_at_once_one_wins(world):
    for _ in range(5):
        request = await world.ask("add welcome +1")
        await asyncio.gather(
            world.decide(Act.APPROVE, request, ADA),
            world.decide(Act.DENY, request, ABEL, "no"),
            world.decide(Act.CANCEL, request, OTTO),
            return_exceptions=True,
        )
        await world.work()
        approved = (await world.stored(request)).state is State.APPLIED
        assert world.service.lists[WELCOME] == (["+1"] if approved else [])
        world.service.lists[WELCOME] = []
        await world.pass_time(CONFIRMED.seconds)


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_two_approvals_at_once_of_a_quorum_both_count(two_needed):
    world = two_needed
    request = await world.ask("add welcome +1")
    await asyncio.gather(
        world.decide(Act.APPROVE, request, ADA), world.decide(Act.APPROVE, request, ABEL)
    )
    assert (await world.stored(request)).state is State.APPLYING


async def test_an_approval_whose_right_was_lost_in_between_does_not_count(two_needed):
    world = two_needed
    request = await world.ask("add welcome +1")
    await world.decide(Act.APPROVE, request, ABEL)
    world.slack.groups["S0APPROVERS"] = frozenset()
    again = await world.decide(Act.APPROVE, request, ADA)
    assert again.state is State.PENDING
    stored = await world.stored(request)
    assert [approval.who.slack_user_id for approval in stored.round.approvals] == [ADA]
    await world.decide(Act.APPROVE, request, ADAM)
    assert (await world.stored(request)).state is State.APPLYING


DAY = 24 * 3600
DECISIONS = [(Act.APPROVE, ADA), (Act.DENY, ABEL), (Act.CANCEL, OTTO)]


@pytest.fixture
def fill_audit(monkeypatch):
    """Return a function that makes the audit log refuse new entries."""
    append = audit.append

    def fill(action: str | None = None) -> None:
        async def refuse(tx, *entries) -> None:
            if any(action in (None, entry.action) for entry in entries):
                raise DatabaseUnavailable
            await append(tx, *entries)

        monkeypatch.setattr(audit, "append", refuse)

    return fill


async def waiting_messages(world: World, request) -> int:
    async with world.database.read_only() as tx:
        return len((await outbox.waiting(tx, f"request:{request.id}")).messages)


async def test_no_request_without_its_entry(world, fill_audit):
    fill_audit()
    with pytest.raises(DatabaseUnavailable):
        await world.ask("add welcome +1")
    async with world.database.read_only() as tx:
        assert await store.count_pending(tx) == 0
    await world.pass_time(DAY)
    assert world.messages == []


@pytest.mark.parametrize(("act", "by"), DECISIONS)
async def test_no_decision_without_its_entry(world, fill_audit, act, by):
    request = await world.ask("add welcome +1")
    await world.work()
    fill_audit()
    with pytest.raises(DatabaseUnavailable):
        await world.decide(act, request, by, "no")
    assert (await world.stored(request)).state is State.PENDING
    assert await waiting_messages(world, request) == 0
    await world.work()
    assert world.service.posts == []
    assert world.reported() == []


@pytest.mark.parametrize("action", ["flow.changed", "request.applied"])
async def test_no_change_is_called_applied_without_its_entries(
    world, fill_audit, monkeypatch, action
):
    request = await world.approved("add welcome +1")
    fill_audit(action)
    with pytest.raises(DatabaseUnavailable):
        await world.work()
    assert (await world.stored(request)).state is State.APPLYING
    assert world.reported() == []
    monkeypatch.undo()
    world.clock.advance(jobs.LEASE_SECONDS)
    await world.work()
    assert (await world.stored(request)).state is State.APPLIED
    assert world.service.posts == [("+1",)]
    assert [action for _, action in await world.audited()][-2:] == [
        "flow.changed",
        "request.applied",
    ]


@dataclass
class FakeReplies:
    """Fake replies.

    If `takes` is False, every reply sent to a `response_url` is refused. Direct messages always
    arrive.
    """

    takes: bool = True
    said: list[str] = field(default_factory=list)
    direct: list[str] = field(default_factory=list)

    async def say(
        self, response_url: str, message: Message, *, to: str, replace: bool = False
    ) -> bool:
        if not response_url:
            self.direct.append(message.text)
            return True
        self.said.append(message.text)
        return self.takes


def clicks_of(world: World, replies: FakeReplies) -> Runner:
    world.replies = replies
    return partial(run_click, world)


async def kept(world: World, request) -> jobs.Job:
    """Return the job that remains when a process dies after someone clicks `Approve`."""
    await world.work()
    hook = "https://hooks.example/1"
    click = StoredInteraction(Act.APPROVE, request.id, ADA, (), hook, version=1)
    await store_click(world, click)
    async with world.database.transaction() as tx:
        (job,) = await jobs.claim(tx, "one", 9)
    assert job.kind == INTERACTION
    return job


async def test_click_whose_answer_slack_refuses_is_decided_once(database, clock):
    world = World(database, clock, policy=default_policy(approvals_needed=2))
    request = await world.ask("add welcome +1")
    job = await kept(world, request)
    replies = FakeReplies(takes=False)
    assert await clicks_of(world, replies)(job, Lease(database, "one", job)) is None
    assert (len(replies.said), replies.direct) == (1, [])
    assert [item for item in await world.audited() if item[0] == ADA] == [(ADA, "request.approved")]


async def test_click_that_slack_knows_nothing_of_is_followed_again(world):
    request = await world.ask("add welcome +1")
    job = await kept(world, request)
    world.slack.silent_about.add(ADA)
    replies = FakeReplies(takes=False)
    again = await clicks_of(world, replies)(job, Lease(world.database, "one", job))
    assert again == Again(world.clock.now() + timedelta(seconds=10), 1)
    world.slack.silent_about.clear()
    await clicks_of(world, replies)(job, Lease(world.database, "one", job))
    assert (await world.stored(request)).state is State.APPLYING


async def test_click_that_slack_knows_nothing_of_is_followed_for_ten_minutes(world):
    job = await kept(world, await world.ask("add welcome +1"))
    world.slack.silent_about.add(ADA)
    follow = clicks_of(world, FakeReplies(takes=False))
    for tries in (0, 6, 59):
        again = await follow(replace(job, tries=tries), Lease(world.database, "one", job))
        assert again == Again(world.clock.now() + timedelta(seconds=10), tries + 1)
    assert await follow(replace(job, tries=60), Lease(world.database, "one", job)) is None


async def test_click_is_retried_when_an_earlier_approver_is_unknown(database, clock):
    policy = default_policy(approvals_needed=2)
    before = World(database, clock, policy=policy)
    request = await before.ask("add welcome +1")
    await before.decide(Act.APPROVE, request, ABEL)
    world = World(database, clock, before.service, policy=policy)
    job = await kept(world, request)
    world.slack.silent_about.add(ABEL)
    replies = FakeReplies(takes=False)
    clicks, lease = clicks_of(world, replies), Lease(database, "one", job)
    assert await clicks(job, lease) == Again(clock.now() + timedelta(seconds=10), 1)
    assert "couldn't check a permission with Slack" in replies.said[0]
    world.slack.silent_about.clear()
    assert await clicks(job, lease) is None
    assert (await world.stored(request)).state is State.APPLYING


async def test_person_is_told_once_that_a_click_waits_for_the_database(world, monkeypatch):
    async def unavailable(*_: object) -> None:
        raise DatabaseUnavailable

    request = await world.ask("add welcome +1")
    job = await kept(world, request)
    monkeypatch.setattr("bot.testusers.interactions.decide", unavailable)
    replies = FakeReplies()
    for _ in range(3):
        with pytest.raises(DatabaseUnavailable):
            await clicks_of(world, replies)(job, Lease(world.database, "one", job))
        world.clock.advance(jobs.LEASE_SECONDS + 1)
    (said,) = replies.said
    assert "Your click was saved" in said
