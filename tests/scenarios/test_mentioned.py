"""Each message that asks for approval mentions someone who can approve the request now."""

import json
from datetime import timedelta

import pytest

from tests.support.world import ABEL, ADA, ADAM, OTTO, ROLES, VERA, empty_world

GROUP = "<!subteam^S0APPROVERS>"
NOBODY = "*Nobody can approve this now.*"


def roles(**changed: list[str]) -> str:
    return json.dumps(ROLES | changed)


def mentioned(message) -> set[str]:
    people = (ADA, ABEL, ADAM, OTTO, VERA)
    found = {person for person in people if f"<@{person}>" in message.all_text}
    return found | ({GROUP} if GROUP in message.all_text else set())


def deactivate(world, *people: str) -> None:
    for person in people:
        world.slack.workspace.people[person].deleted = True


async def thread(world, message, count: int):
    found = world.slack.workspace.thread
    return await world.slack.until(
        lambda: len(found("C0APPROVALS", message.ts)) == count and found("C0APPROVALS", message.ts)
    )


async def test_approvers_are_mentioned_and_admins_left_in_peace(world):
    assert mentioned(await world.asked("add welcome +1")) == {ADA, GROUP}


async def test_the_admin_is_mentioned_if_the_requester_is_the_only_approver(sqlite_url):
    async with empty_world(sqlite_url, roles=roles(approver=[ADA])) as world:
        message = await world.asked("add welcome +1", by=ADA)
        assert mentioned(message) == {ADAM}
        await world.approve(message, "*Applied*", by=ADAM)


async def test_the_admin_is_mentioned_if_the_requester_is_alone_in_the_group(sqlite_url):
    async with empty_world(sqlite_url, roles=roles(approver=["S0APPROVERS"])) as world:
        assert mentioned(await world.asked("add welcome +1", by=ABEL)) == {ADAM}
        assert mentioned(await world.asked("add welcome +2")) == {GROUP}


@pytest.mark.parametrize("members", [[], [VERA]])
async def test_a_group_in_which_nobody_is_left_is_not_mentioned(sqlite_url, members):
    async with empty_world(sqlite_url, roles=roles(approver=["S0APPROVERS"])) as world:
        world.slack.workspace.groups["S0APPROVERS"].members[:] = members
        deactivate(world, VERA)
        assert mentioned(await world.asked("add welcome +1")) == {ADAM}


async def test_deactivated_approvers_are_not_mentioned(sqlite_url):
    async with empty_world(sqlite_url, roles=roles(approver=[ADA, ABEL])) as world:
        deactivate(world, ADA)
        assert mentioned(await world.asked("add welcome +1")) == {ABEL}


async def test_the_second_approval_is_asked_of_whoever_is_left(sqlite_url):
    async with empty_world(sqlite_url, roles=roles(approver=[ADA]), approvals_needed="2") as world:
        message = await world.asked("add welcome +1")
        assert mentioned(message) == {ADA}
        await world.approve(message, "1 of 2 approvals", f"<@{ADAM}>")
        assert mentioned(message) == {ADAM}
        await world.later(timedelta(hours=5))
        (reminder,) = await thread(world, message, 1)
        assert mentioned(reminder) == {ADAM}
        await world.approve(message, "*Applied*", by=ADAM)


async def test_card_answer_and_reminder_say_that_nobody_can_approve(world):
    deactivate(world, ADA, ABEL, ADAM)
    message = await world.asked("add welcome +1")
    assert NOBODY in message.all_text
    assert mentioned(message) == set()
    answer = world.slack.workspace.ephemerals(OTTO)[-1].all_text
    assert NOBODY in answer
    assert "when someone decides" not in answer
    await world.later(timedelta(hours=5))
    (reminder,) = await thread(world, message, 1)
    assert NOBODY in reminder.all_text


async def test_people_slack_does_not_tell_about_stay_mentioned(world):
    world.slack.workspace.faults.error("usergroups.users.list", "fatal_error", times=None)
    assert mentioned(await world.asked("add welcome +1", by=ADAM)) == {ADA, GROUP}


async def test_an_approver_is_mentioned_beside_people_who_are_only_notified(sqlite_url):
    policy = json.dumps({"welcome": {"approvers": [ADA], "notify": [VERA]}})
    async with empty_world(sqlite_url, flow_policies=policy) as world:
        message = await world.asked("add welcome +1")
        assert "Only Ada Approver can approve this request." in message.all_text
        assert mentioned(message) == {ADA, VERA}
        deactivate(world, ADA)
        other = await world.asked("add welcome +2")
        assert mentioned(other) == {ADA, VERA}


@pytest.mark.parametrize(("escalate_to", "called"), [(ADAM, {ADAM}), (VERA, {VERA, ADA, GROUP})])
async def test_an_escalation_mentions_somebody_who_can_approve(sqlite_url, escalate_to, called):
    policy = json.dumps({"*": {"escalate_after": "2h", "escalate_to": [escalate_to]}})
    async with empty_world(sqlite_url, flow_policies=policy) as world:
        message = await world.asked("add welcome +1")
        await world.later(timedelta(hours=3))
        (escalation,) = await thread(world, message, 1)
        assert mentioned(escalation) == called
