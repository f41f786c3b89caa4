"""The Approve and Retry buttons either do what the card says or change nothing."""

import json
import re
from datetime import timedelta

import pytest

from sandbox.services.faults import Fault, FaultKind
from tests.support.steady import LaterClock
from tests.support.world import ABEL, ADA, ADAM, OTTO, SURVEY, WELCOME, empty_world


@pytest.fixture
async def clock():
    return LaterClock()


async def denied(world, message, by: str = ADA) -> None:
    await world.slack.click(by, message, "Deny")
    view = await world.form(by)
    await world.slack.submit(by, view, {"Reason": "no"})


def times(message) -> list[str]:
    """Return the times in a message as Unix timestamps."""
    return re.findall(r"<!date\^(\d+)", message.all_text)


async def home_of(world, user: str) -> str:
    """Open a person's Home tab, and return its text."""
    world.slack.workspace.homes.pop(user, None)
    await world.slack.open_home(user)
    return (await world.slack.until(lambda: world.slack.workspace.homes.get(user))).all_text


async def test_extension_reads_as_an_extension_and_never_as_a_removal(world):
    first = await world.applied("add welcome +1 for 2h")
    message = await world.asked("add welcome +1 for 30d")
    assert "keep *1 test user* on *welcome* until 30 d after approval (currently until" in (
        message.all_text
    )
    answer = world.slack.workspace.ephemerals(OTTO)[-1].all_text
    home = await home_of(world, ADA)
    for text in (message.text, answer, home):
        assert "until 30 d after approval (currently until" in text
        assert "remove" not in message.all_text + text
    assert "Already on the list" not in message.all_text
    assert (
        "This request will be withdrawn: change the end date of +1 on welcome." in message.all_text
    )
    await world.approve(message, "*Applied*")
    assert world.flow.identities == ["+1"]
    await world.shows(first, "*Replaced by a later request:* `+1`")


async def test_extension_whose_old_end_has_passed_reads_as_an_addition(world):
    await world.applied("add welcome +1 for 2s")
    message = await world.asked("add welcome +1 for 30d")
    assert "keep *1 test user*" in message.all_text
    await world.shows(message, "wants to add *1 test user* to *welcome* for 30 d")
    assert "0 → 1 test user" in message.all_text
    assert world.flow.identities == []
    await world.approve(message, "*Applied*")
    assert world.flow.identities == ["+1"]


@pytest.mark.parametrize(
    ("before", "edited", "now"),
    [
        ("keep *1 test user*", [], "wants to add *1 test user* to *welcome* for 30 d"),
        ("keep *1 test user*", ["+2"], "1 → 2 test users"),
    ],
)
async def test_extension_of_somebody_removed_in_the_console_asks_again(
    world, clock, before, edited, now
):
    await world.applied("add welcome +1 for 2h")
    await world.later(timedelta(seconds=61))
    message = await world.asked("add welcome +1 for 30d")
    assert before in message.all_text
    world.flow.identities[:] = edited
    await world.approve(message, "*Needs approval again*")
    await world.shows(message, now)
    assert "so it adds them" in message.all_text
    assert (world.flow.identities, len(world.flow.history)) == (edited, 1)
    await world.later(timedelta(seconds=200))
    await world.approve(message, "*Applied*")
    assert world.flow.identities == [*edited, "+1"]


async def test_addition_of_somebody_added_in_the_console_asks_again(world):
    message = await world.asked("add welcome +1 +2 for 2h")
    world.flow.identities[:] = ["+1"]
    await world.approve(message, "already on the list with longer access")
    assert "keep *1 test user* on *welcome* only until 2 h after approval" in message.all_text
    assert world.flow.history == []
    await world.approve(message, "*Applied*")
    assert world.flow.identities == ["+1", "+2"]


@pytest.mark.parametrize(("words", "by"), [("", OTTO), (" now because urgent", ADAM)])
async def test_retry_reads_the_list_again(world, words, by):
    world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="POST", status=400))
    message = await world.asked(f"add welcome +1 for 2h{words}", by=by)
    if not words:
        await world.click(ADA, message, "Approve")
    await world.shows(message, "Failed")
    world.flow.identities[:] = ["+1"]
    await world.click(ADA, message, "Retry")
    await world.shows(message, "*Needs approval again*")
    assert message.buttons == ["Approve", "Deny", "Cancel"]


async def test_access_without_an_end_says_so(world):
    message = await world.asked("add welcome +1")
    assert "add *1 test user* to *welcome* with no end date" in message.all_text
    answer = world.slack.workspace.ephemerals(OTTO)[-1].all_text
    for text in (message.text, answer, await home_of(world, ADA)):
        assert "add `+1` to *welcome* with no end date" in text
    await world.approve(message, "to *welcome* with no end date")
    await world.told(OTTO, "to *welcome* with no end date")


def restarted(sqlite_url, **settings):
    """Restart the bot with a different channel for approvals, so that it posts the cards again."""
    return empty_world(sqlite_url, approvals_channel="C0ALERTS", **settings)


async def moved_card(world):
    """Wait until the card appears in the new channel."""
    cards = world.slack.workspace.messages
    return await world.slack.until(lambda: cards("C0ALERTS") and cards("C0ALERTS")[-1])


def limited(**policy) -> str:
    return json.dumps({"welcome": policy})


@pytest.mark.parametrize("text", ["add welcome +1", "add welcome +1 for 3d"])
async def test_tightened_policy_asks_again_with_the_longest_time(sqlite_url, text):
    async with empty_world(sqlite_url) as world:
        await world.asked(text)
    async with restarted(sqlite_url, flow_policies=limited(longest="1h")) as world:
        message = await moved_card(world)
        said = (await world.click(ADA, message, "Approve")).all_text
        assert "Nothing was applied. Access to this flow can now last at most 1h." in said
        await world.shows(message, "*Needs approval again*")
        assert "to *welcome* for 1 h" in message.all_text
        assert message.buttons == ["Approve", "Deny", "Cancel"]
        assert world.flow.history == []
        await world.approve(message, "*Applied*")
        assert "until <!date^" in message.all_text


async def test_alias_that_moved_asks_again_about_the_old_flow(sqlite_url):
    async with empty_world(sqlite_url) as world:
        await world.asked("add welcome +1 for 2h")
    aliases = json.dumps({"welcome": SURVEY})
    async with restarted(sqlite_url, flow_aliases=aliases) as world:
        message = await moved_card(world)
        await world.shows(message, f"to `{WELCOME}` for 2 h")
        assert f"`{WELCOME}` · requester" not in message.all_text
        said = (await world.click(ADA, message, "Approve")).all_text
        assert "“welcome” is no longer this flow's alias" in said
        await world.shows(message, "*Needs approval again*")
        assert world.flow.history == []
        await world.approve(message, "*Applied*")
        assert f"to `{WELCOME}` until <!date^" in message.all_text


async def test_flows_whose_aliases_were_swapped_have_one_name_everywhere(sqlite_url):
    async with empty_world(sqlite_url) as world:
        await world.applied("add welcome +1 for 2h")
        await world.asked("add welcome +2")
    aliases = json.dumps({"welcome": SURVEY, "survey": WELCOME})
    async with restarted(sqlite_url, flow_aliases=aliases) as world:
        world.flow.identities[:] = ["+1"]
        assert "+2` to *survey*" in (await moved_card(world)).all_text
        for text in ("requests", "mine", "history survey"):
            answer = (await world.ask(OTTO, "/testusers", text)).all_text
            assert "+2` to *survey*" in answer
            assert "*welcome*" not in answer
        for user in (ADA, OTTO):
            home = await home_of(world, user)
            assert "+2` to *survey*" in home
            assert "*welcome*" not in home
        history = await world.ask(OTTO, "/testusers", "history survey")
        undo = await world.click(OTTO, history, "Undo")
        assert "remove `+1` from *survey*" in undo.all_text
        await world.later(timedelta(hours=2))
        await world.told(OTTO, "Access to *survey* has ended for `+1`")


async def test_retry_keeps_to_the_policy_of_now(sqlite_url):
    async with empty_world(sqlite_url) as world:
        world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="POST", status=400))
        message = await world.asked("add welcome +1")
        await world.approve(message, "Failed")
    policy = limited(longest="1h", approvals_needed=2)
    async with restarted(sqlite_url, flow_policies=policy) as world:
        message = await moved_card(world)
        assert "Nothing was applied" in (await world.click(ADA, message, "Retry")).all_text
        await world.shows(message, "*Needs approval again*")
        assert "0 of 2 approvals" in message.all_text
        await world.click(ADA, message, "Approve")
        assert world.flow.history == []
        await world.approve(message, "*Applied*", by=ABEL)
        assert "until <!date^" in message.all_text


async def test_card_names_other_open_requests_for_the_same_person(world):
    first = await world.asked("add welcome +1 for 2h")
    second = await world.asked("add welcome +1 until tomorrow 9:00")
    assert (
        "*Other open requests for the same people:* add `+1` to *welcome* for 2 h, by Otto Operator"
        in (second.all_text)
    )
    await world.shows(
        first, "*Other open requests for the same people:* add `+1` to *welcome* until"
    )
    await world.click(OTTO, second, "Cancel")
    await world.slack.until(lambda: "Other open requests" not in first.all_text)


async def test_card_says_who_can_approve_though_others_are_notified(sqlite_url):
    policy = limited(approvers=[ADA], notify=["S0APPROVERS"])
    async with empty_world(sqlite_url, flow_policies=policy) as world:
        message = await world.asked("add welcome +1")
        told = "Only Ada Approver can approve this request. Notified: <!subteam^S0APPROVERS>"
        assert told in message.all_text


async def cancelled(world, message) -> None:
    await world.click(OTTO, message, "Cancel")


@pytest.mark.parametrize(
    ("decide", "outcome", "label"),
    [
        (denied, "*Denied*", "denied"),
        (cancelled, "*Cancelled*", "cancelled"),
    ],
)
async def test_each_time_is_labelled(world, decide, outcome, label):
    message = await world.asked("add welcome +1")
    await decide(world, message)
    await world.shows(message, outcome)
    assert "*Otto Operator* asked to" in message.all_text
    assert f" · {label} <!date^" in message.all_text


async def test_card_of_a_change_made_now_says_when(world):
    message = await world.asked("add welcome +1 now because urgent", by=ADAM)
    assert re.search(r"requested <!date\^\S+ .* · applied <!date\^", message.all_text)


async def test_card_shows_the_end_that_another_extension_has_set(world):
    await world.applied("add welcome +1 for 1h")
    card = await world.asked("add welcome +1 for 9d")
    first = re.search(r"currently until <!date\^(\d+)", card.all_text)[1]
    await world.approve(await world.asked("add welcome +1 for 2h"), "*Applied*")
    await world.slack.until(lambda: f"currently until <!date^{first}" not in card.all_text)
    second = re.search(r"currently until <!date\^(\d+)", card.all_text)[1]
    assert 3595 <= int(second) - int(first) <= 3630
    assert "Needs approval again" not in card.all_text
    await world.approve(card, "*Applied*")


async def test_stale_undo_leaves_a_later_extension_alone(world):
    first = await world.applied("add welcome +1 for 2h")
    await world.shows(first, "Undo")
    stale = json.loads(json.dumps(first.blocks))
    await world.applied("add welcome +1 for 30d")
    await world.slack.until(lambda: first.buttons == [])
    first.blocks[:] = stale
    assert "there's nothing to undo" in (await world.click(ADA, first, "Undo")).all_text
    assert len(world.cards()) == 2


async def test_earlier_approver_whom_slack_no_longer_knows_does_not_count(sqlite_url):
    async with empty_world(sqlite_url, approvals_needed="2") as world:
        message = await world.asked("add welcome +1")
        await world.approve(message, "1 of 2 approvals")
    async with restarted(sqlite_url, approvals_needed="2") as world:
        message = await moved_card(world)
        del world.slack.workspace.people[ADA]
        await world.click(ABEL, message, "Approve")
        await world.shows(message, "*1 of 2 approvals* (Abel Approver)")
        assert world.flow.history == []
        await world.approve(message, "*Applied*", by=ADAM)
        assert world.flow.history == [["+1"]]


async def test_an_approval_that_is_enough_by_now_can_be_given_again(sqlite_url):
    both, one = limited(approvers=[ADA, ABEL], approvals_needed=2), limited(approvers=[ADA])
    async with empty_world(sqlite_url, flow_policies=both) as world:
        message = await world.asked("add welcome +1")
        await world.approve(message, "1 of 2 approvals")
        assert "Approve" not in await home_of(world, ADA)
    async with restarted(sqlite_url, flow_policies=one) as world:
        message = await moved_card(world)
        assert f"Approvers: <@{ADA}>" in message.all_text
        assert "+1" in (await home_of(world, ADA)).split("Your requests")[0]
        await world.approve(message, "*Applied*")
