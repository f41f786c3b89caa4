"""What a flow's policy says is what happens: who approves, how many, for how long."""

import random

import pytest

from bot.approvals.rules import Act, FlowPolicy
from bot.errors import Conflict, Refused
from bot.permissions import Role
from bot.testusers import asking
from bot.testusers.policy_cli import explain
from bot.testusers.rules.changes import Flow
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
)

HOUR = 3600


def with_policy(database, clock, **keys) -> World:
    policies = {WELCOME: FlowPolicy(**keys)}
    return World(database, clock, policy=default_policy(flow_policies=policies))


async def test_an_undo_gives_no_longer_access_than_the_policy_lets_it(database, clock):
    world = with_policy(database, clock, longest_seconds=24 * HOUR)
    world.service.lists[WELCOME] = ["+9"]
    request = await world.applied("remove welcome +9")
    with pytest.raises(Conflict, match="Add an end"):
        await asking.undo(world, await world.person(OTTO), request.id)


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
        own_line = [line for line in lines if line.startswith("They ")]
        expected = " can approve: " in told
        if is_own and expected:
            expected = own_line == ["They can approve their own requests [ALLOW_SELF_APPROVAL]"]
        happened = await is_taken(world, stored, user)
        assert happened == expected, (lines, policy)
        agreed += happened
    assert CASES / 10 < agreed < CASES * 9 / 10


async def is_taken(world: World, request, user: str) -> bool:
    """Whether the click of a person who approves counts, or has counted before."""
    try:
        await world.decide(Act.APPROVE, request, user)
    except Refused:
        return False
    except Conflict:
        return True
    return True
