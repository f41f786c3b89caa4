"""Of all clicks on a request the first wins, and only those count who may."""

import asyncio

import pytest

from bot.approvals.rules import Act, Reason, State
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
    assert again.reason is Reason.QUORUM_OPEN
    stored = await world.stored(request)
    assert [approval.who.slack_user_id for approval in stored.progress.approvals] == [ADA]
    await world.decide(Act.APPROVE, request, ADAM)
    assert (await world.stored(request)).state is State.APPLYING
