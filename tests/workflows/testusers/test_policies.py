"""What a flow's policy says is what happens: who approves, how many, for how long."""

import random

import pytest

from bot.approvals.rules import Act, AutomaticRule, FlowPolicy
from bot.errors import Conflict, Refused, UsageError
from bot.permissions import Role
from bot.store.outbox import OutboxMessage
from bot.testusers import asking
from bot.testusers.policy_cli import explain
from bot.testusers.rendering import RequestMessages
from bot.testusers.rules.changes import Flow
from tests.support.testusers import (
    ABEL,
    ADA,
    ADAM,
    NAMES,
    NORA,
    OTTO,
    SURVEY,
    VERA,
    WELCOME,
    World,
    default_policy,
)

HOUR = 3600


def with_policy(database, clock, **keys) -> World:
    policies = {WELCOME: FlowPolicy(**keys)}
    return World(database, clock, policy=default_policy(flow_policies=policies))


async def test_nobody_is_added_for_longer_than_the_policy_lets_them(database, clock):
    world = with_policy(database, clock, longest_seconds=24 * HOUR)
    for text, said in (
        ("add welcome +1", "can last at most 1d. Add an end, like “for 1d”"),
        ("add welcome +1 for 25h", "can last at most 1d"),
    ):
        with pytest.raises(UsageError, match=said):
            await world.ask(text)
    with pytest.raises(UsageError, match="Add an end"):
        await world.ask("add welcome +1 now because urgent", ADAM)
    await world.ask("add welcome +1 for 1d")
    await world.ask("add survey +1")
    world.service.lists[WELCOME] = ["+9"]
    await world.ask("remove welcome +9")


async def test_an_undo_gives_no_longer_access_than_the_policy_lets_it(database, clock):
    world = with_policy(database, clock, longest_seconds=24 * HOUR)
    world.service.lists[WELCOME] = ["+9"]
    request = await world.ask("remove welcome +9")
    await world.decide(Act.APPROVE, request)
    await world.work()
    with pytest.raises(Conflict, match="Add an end"):
        await asking.undo(world, await world.person(OTTO), request.id)


async def rendered(world: World, request, kind: str):
    kind = f"testusers.{kind}"
    render = RequestMessages(world).renderers[kind]
    return await render(OutboxMessage(f"{kind}:{request.id}", kind, request.id))


def escalating(database, clock, **more) -> World:
    policy = FlowPolicy(escalate_after_seconds=2 * HOUR, escalate_to=("S0LEADS", ADAM))
    return World(database, clock, policy=default_policy(flow_policies={"*": policy}), **more)


def escalations(world: World) -> int:
    return [message.kind for message in world.messages].count("testusers.escalation")


async def test_a_request_that_waits_is_escalated_once_and_on_time(database, clock):
    world = escalating(database, clock)
    request = await world.ask("add welcome +1")
    await world.pass_time(2 * HOUR - 1)
    assert escalations(world) == 0
    await world.pass_time(1)
    assert escalations(world) == 1
    await world.pass_time(8 * HOUR)
    assert escalations(world) == 1
    note = await rendered(world, request, "escalation")
    assert note.under == f"request:{request.id}"
    assert note.message.text.startswith(
        f"<!subteam^S0LEADS> <@{ADAM}> Still waiting: Otto Operator"
    )
    assert [action for _, action in await world.audited()].count("request.escalated") == 1


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


AUTOMATIC = (
    "Automatic approval: additions requested by U0OTTO, for at most 2h, up to 3 per person per day"
    " [FLOW_POLICIES (this flow)]"
)


async def test_explaining_names_every_rule_with_its_setting(database, clock):
    world = with_policy(
        database,
        clock,
        approvers=(ADA, "S0APPROVERS"),
        longest_seconds=7 * 24 * HOUR,
        escalate_after_seconds=2 * HOUR,
        escalate_to=(ADAM,),
        auto=AutomaticRule((OTTO,), 2 * HOUR, 3),
    )
    flow = Flow(WELCOME, "welcome")
    abel = f"{NAMES[ABEL]} ({ABEL})"
    lines = await explain(world.people, flow, ABEL)
    assert lines == [
        f"Flow welcome ({WELCOME})",
        "Approvers: U0ADA, S0APPROVERS [FLOW_POLICIES (this flow)]",
        "Approvals needed: 1 [APPROVALS_NEEDED]",
        "Card mentions: U0ADA, S0APPROVERS",
        "Longest access: 7d [FLOW_POLICIES (this flow)]",
        "Escalation: after 2h, to U0ADAM [FLOW_POLICIES (this flow)]",
        AUTOMATIC,
        f"{abel} can approve: in S0APPROVERS, which FLOW_POLICIES (this flow) names.",
        "They can't approve their own requests [ALLOW_SELF_APPROVAL]",
    ]
    (verdict,) = [item for item in await explain(world.people, flow, ADAM) if "U0ADAM)" in item]
    assert verdict.startswith(
        "Adam Admin (U0ADAM) can't approve. Gatehouse would tell them: You can't approve"
    )
    by_role = await explain(world.people, Flow(SURVEY), ADA)
    assert "Ada Approver (U0ADA) can approve: has the approver role [ROLES]." in by_role
