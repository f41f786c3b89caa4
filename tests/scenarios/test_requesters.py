"""The bot follows a policy's `requesters` and `channel` settings. Cards name the presets."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest

from sandbox.services.faults import Fault, FaultKind
from tests.support.world import ADA, ADAM, NORA, OTTO, VERA, World, empty_world

REFUSED = "You can't request or cancel changes to test users for this flow."
LACKS_THE_ROLE = "You need the operator role"


def policies(**keys: object) -> str:
    return json.dumps({"welcome": keys})


@pytest.fixture
async def limited(sqlite_url) -> AsyncIterator[World]:
    """Yield a world in which Otto is the only tester, and only testers may change `welcome`."""
    async with empty_world(sqlite_url, flow_policies=policies(requesters=["S0TESTERS"])) as world:
        yield world


async def lose_otto(world: World) -> None:
    """Remove Otto from the testers' group, and wait until the bot notices the change."""
    world.slack.workspace.groups["S0TESTERS"].members.clear()
    await world.later(world.clock.ahead + timedelta(minutes=6))


async def refused(world: World, user: str, text: str) -> None:
    answer = await world.ask(user, "/testusers", text)
    assert REFUSED in answer.all_text
    assert "@testers" in answer.all_text
    assert world.cards() == []


@pytest.mark.parametrize("user", [ADA, ADAM])
async def test_only_requesters_ask_with_a_command(limited, user):
    for text in ("add welcome +1", "remove welcome +1", "add welcome +1 until friday"):
        await refused(limited, user, text)
    await limited.ask(user, "/testusers", "add survey +1")
    assert "*survey*" in (await limited.card()).all_text


async def test_a_viewer_needs_the_role_as_well(sqlite_url):
    async with empty_world(sqlite_url, flow_policies=policies(requesters=[VERA])) as world:
        answer = await world.ask(VERA, "/testusers", "add welcome +1")
        assert "You need the operator role" in answer.all_text


async def test_a_requester_asks_and_an_admin_needs_no_list_for_now(limited):
    await limited.ask(OTTO, "/testusers", "add welcome +1")
    assert "`+1`" in (await limited.card()).all_text
    answer = await limited.ask(ADAM, "/testusers", "add welcome +2 now because urgent")
    assert "Applying now" in answer.all_text


async def test_only_requesters_ask_by_direct_message(limited):
    await limited.slack.direct_message(ADA, "testusers add welcome +1")
    await limited.told(ADA, REFUSED)
    assert limited.cards() == []


async def test_the_form_offers_only_flows_that_the_person_can_ask_for(limited):
    await limited.slack.command(ADA, "C0GENERAL", "/testusers", "")
    form = await limited.form(ADA)
    offered = await limited.slack.suggest(ADA, form, "Flow", "")
    assert "welcome" not in [option["value"] for option in offered]
    assert "survey" in [option["value"] for option in offered]
    chosen = {"text": {"type": "plain_text", "text": "welcome"}, "value": "welcome"}
    await limited.slack.submit(ADA, form, {"Flow": chosen, "Identities": "+1"})
    assert REFUSED in (await limited.answer(ADA)).all_text
    assert limited.cards() == []


async def test_who_only_approves_for_a_flow_reads_so(sqlite_url):
    async with empty_world(sqlite_url, flow_policies=policies(approvers=[NORA])) as world:
        answer = await world.ask(NORA, "/gatehouse", "whoami")
        assert "You can approve, deny or retry changes to test users of some" in answer.all_text
        answer = await world.ask(VERA, "/gatehouse", "whoami")
        assert "some flows" not in answer.all_text


async def test_only_requesters_are_offered_a_change_below_the_list(limited):
    for user, is_offered in ((OTTO, True), (ADA, False)):
        answer = await limited.ask(user, "/testusers", "list welcome")
        assert ("Change…" in answer.buttons) is is_offered


async def test_only_requesters_extend_and_undo(limited):
    card = await limited.applied("add welcome +1 for 90m")
    mine = await limited.ask(OTTO, "/testusers", "mine")
    await lose_otto(limited)
    assert REFUSED in (await limited.click(OTTO, mine, "Extend")).all_text
    assert REFUSED in (await limited.click(ADA, card, "Undo")).all_text
    assert len(limited.cards()) == 1


async def test_request_is_cancelled_at_the_approval_if_its_requester_may_no_longer_ask(limited):
    card = await limited.asked("add welcome +1")
    await lose_otto(limited)
    answer = await limited.click(ADA, card, "Approve")
    reason = "Otto Operator may no longer ask for changes to this flow."
    assert f"Nothing was applied. {reason} The request has been cancelled." in answer.all_text
    await limited.shows(card, "*Cancelled* by Gatehouse", reason)
    await limited.told(OTTO, reason)
    assert limited.flow.history == []


async def test_only_the_last_approval_looks_at_the_requester(sqlite_url):
    keys = policies(requesters=["S0TESTERS"], approvals_needed=2)
    async with empty_world(sqlite_url, flow_policies=keys) as world:
        card = await world.asked("add welcome +1")
        await lose_otto(world)
        await world.click(ADA, card, "Approve")
        await world.shows(card, "1 of 2 approvals")
        await world.click(ADAM, card, "Approve")
        await world.shows(card, "*Cancelled* by Gatehouse")
        assert world.flow.history == []


async def test_request_is_cancelled_at_the_retry_if_its_requester_may_no_longer_ask(limited):
    limited.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="POST", status=400))
    card = await limited.asked("add welcome +1")
    await limited.approve(card, "Failed: nothing was changed")
    limited.services.state.faults.lift()
    await lose_otto(limited)
    answer = await limited.click(ADA, card, "Retry")
    reason = "Otto Operator may no longer ask for changes to this flow."
    assert f"Nothing was applied. {reason} The request has been cancelled." in answer.all_text
    await limited.shows(card, "*Cancelled* by Gatehouse", reason)
    await limited.told(OTTO, reason)
    assert limited.flow.history == []


async def test_card_of_a_request_that_failed_and_was_cancelled_names_one_reason(limited):
    limited.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="POST", status=400))
    card = await limited.asked("add welcome +1")
    await limited.approve(card, "Failed: nothing was changed", "The flow service")
    await lose_otto(limited)
    await limited.click(ADA, card, "Retry")
    await limited.shows(card, "*Cancelled* by Gatehouse\n> Otto Operator may no longer ask")
    assert "The flow service" not in card.all_text


async def test_group_that_cannot_be_read_refuses_the_click_and_keeps_the_request(limited):
    card = await limited.asked("add welcome +1")
    await limited.later(limited.clock.ahead + timedelta(minutes=6))
    limited.slack.workspace.faults.error("usergroups.users.list", "internal_error", times=None)
    answer = await limited.click(ADA, card, "Approve")
    assert "Please try again" in answer.all_text
    assert "Approve" in card.buttons
    assert limited.flow.history == []


async def test_cards_of_a_flow_go_to_its_channel(sqlite_url):
    async with empty_world(sqlite_url, flow_policies=policies(channel="C0ALERTS")) as world:
        answer = await world.ask(OTTO, "/testusers", "add welcome +1")
        assert "Sent to <#C0ALERTS>" in answer.all_text
        messages = world.slack.workspace.messages
        (card,) = await world.slack.until(
            lambda: [item for item in messages("C0ALERTS") if "Approve" in item.buttons]
        )
        await world.slack.click(ADA, card, "Approve")
        await world.shows(card, "*Applied*")
        await world.ask(OTTO, "/testusers", "add survey +1")
        assert "*survey*" in (await world.card()).all_text


async def test_card_names_the_preset_with_its_people(limited):
    await limited.ask(OTTO, "/testusers", "preset save ada +1 +2")
    await limited.ask(OTTO, "/testusers", "add welcome @ada")
    card = await limited.card()
    for shown in ("`@ada`", "`+1`", "`+2`"):
        assert shown in card.all_text
    for page in ("requests", "mine", "history welcome"):
        assert "`@ada`" in (await limited.ask(OTTO, "/testusers", page)).all_text


async def test_list_names_the_preset_with_which_access_was_requested(database_url):
    async with empty_world(database_url, inventory_watch="off") as world:
        await world.ask(OTTO, "/testusers", "preset save ada +1 +2")
        await world.applied("add welcome @ada")
        await world.applied("add welcome +3")
        shown = (await world.ask(VERA, "/testusers", "list welcome")).text
        assert [line.endswith(" (from `@ada`)") for line in shown.splitlines()[1:]] == [
            *(True, True, False)
        ]


async def command(world: World, user: str) -> None:
    await world.slack.command(user, "C0GENERAL", "/testusers", "add welcome +2")


async def preset(world: World, user: str) -> None:
    await world.slack.command(user, "C0GENERAL", "/testusers", "add welcome @team")


async def direct_message(world: World, user: str) -> None:
    await world.slack.direct_message(user, "testusers add welcome +2")


async def form(world: World, user: str) -> None:
    await world.slack.command(user, "C0GENERAL", "/testusers", "")


async def home(world: World, user: str) -> None:
    await world.slack.click(user, world.slack.workspace.homes[OTTO], "Change test users")


async def shortcut(world: World, user: str) -> None:
    await world.slack.shortcut(user, "change_test_users")


async def extend(world: World, user: str) -> None:
    await world.slack.click(user, world.slack.workspace.ephemerals(OTTO)[-1], "Extend")


async def undo(world: World, user: str) -> None:
    await world.slack.click(user, world.cards()[0], "Undo")


async def outcome(world: World, user: str, ask: Callable[[World, str], Awaitable[None]]) -> str:
    """Make a request and submit any form that opens. Return the refusal, or "" if there is none."""
    workspace = world.slack.workspace
    cards = len(world.cards())

    def refusal() -> str:
        told = "".join(item.all_text for item in (*workspace.ephemerals(user), *workspace.dm(user)))
        return next((words for words in (REFUSED, LACKS_THE_ROLE) if words in told), "")

    def is_over() -> bool:
        return bool(refusal()) or len(world.cards()) > cards

    await ask(world, user)
    await world.slack.until(lambda: is_over() or workspace.open_view(user))
    if opened := workspace.open_view(user):
        welcome = {"text": {"type": "plain_text", "text": "welcome"}, "value": "welcome"}
        await world.slack.submit(user, opened, {"Flow": welcome, "Identities": "+2"})
        await world.slack.until(is_over)
    return refusal()


@pytest.mark.parametrize(
    "ask", [command, preset, direct_message, form, home, shortcut, extend, undo]
)
@pytest.mark.parametrize("requesters", [None, ["S0TESTERS"]], ids=["everyone", "testers"])
async def test_every_way_to_ask_needs_the_role_and_the_list(sqlite_url, ask, requesters):
    keys = {} if requesters is None else {"requesters": requesters}
    async with empty_world(sqlite_url, flow_policies=policies(**keys)) as world:
        await world.applied("add welcome +1 for 90m")
        await world.ask(OTTO, "/testusers", "preset save team +2")
        await world.slack.open_home(OTTO)
        await world.slack.until(lambda: world.slack.workspace.homes[OTTO])
        await world.ask(OTTO, "/testusers", "mine")
        assert await outcome(world, VERA, ask) == LACKS_THE_ROLE
        if requesters is not None:
            for user in (ADA, ADAM):
                assert await outcome(world, user, ask) == REFUSED
        assert len(world.cards()) == 1
        assert await outcome(world, ADA if requesters is None else OTTO, ask) == ""
        assert len(world.cards()) == 2
