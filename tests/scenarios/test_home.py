"""The Home tab shows the right content, and its buttons work."""

import json
from datetime import timedelta

import pytest

from bot.errors import DatabaseUnavailable
from bot.slack.messages.replies import ABOUT_TEST_USERS
from tests.support.world import ABEL, ADA, ADAM, NORA, OTTO, VERA, empty_world, running_world

STAN = "U0STRANGER"


async def opened(world, user: str):
    """Open the Home tab. Return the published view."""
    before = len(publishes(world, user))
    delivery = await world.slack.open_home(user)
    assert (delivery.status, delivery.error) == (200, None)
    await world.slack.until(lambda: len(publishes(world, user)) > before)
    return world.slack.workspace.homes[user]


def publishes(world, user: str) -> list[float]:
    """Return the times at which the person's Home tab was published."""
    calls = world.slack.workspace.calls_of("views.publish")
    return [call.at for call in calls if call.args["user_id"] == user and call.ok]


async def test_home_has_the_headings_and_buttons(world):
    home = await opened(world, OTTO)
    for heading in ("Waiting for you", "Your requests", "Limits"):
        assert heading in home.all_text
    assert home.buttons == ["Change test users", "Organizations", "Rate limits"]
    assert ABOUT_TEST_USERS in home.all_text


async def test_approving_in_home_changes_the_list(world):
    await world.asked("add welcome +15550100 because a demo")
    ada = await opened(world, ADA)
    assert "+15550100" in ada.all_text
    assert ada.buttons[-2:] == ["Approve", "Deny"]
    await world.slack.click(ADA, ada, "Approve")
    await world.slack.until(lambda: world.flow.history == [["+15550100"]])
    await world.shows(ada, "Nothing is waiting for you")
    otto = await opened(world, OTTO)
    assert "*Applied*, approved by Ada Approver" in otto.all_text
    assert world.slack.workspace.dm(ADA) == []


async def test_home_says_that_the_groups_cannot_be_read(sqlite_url):
    roles = json.dumps({"viewer": ["*"], "operator": [OTTO], "approver": ["S0APPROVERS"]})
    async with running_world(sqlite_url, roles=roles) as world:
        await world.asked("add welcome +15550100")
        await world.later(timedelta(minutes=5))
        world.slack.workspace.faults.error("usergroups.users.list", "internal_error", times=None)
        abel = await opened(world, ABEL)
        assert "I couldn't check the user groups with Slack. Please try again." in abel.all_text
        assert "Nothing is waiting for you" not in abel.all_text


async def test_denying_in_home_asks_for_the_reason(world):
    await world.asked("add welcome +15550100")
    ada = await opened(world, ADA)
    await world.slack.click(ADA, ada, "Deny")
    form = await world.form(ADA)
    await world.slack.submit(ADA, form, {"Reason": "not today"})
    await world.shows(ada, "Nothing is waiting for you")
    assert "Approve" not in ada.buttons
    otto = await opened(world, OTTO)
    assert "*Denied* by Ada Approver: not today" in otto.all_text
    assert world.flow.history == []


async def test_cancelling_in_home_withdraws_the_request(world):
    card = await world.asked("add welcome +15550100")
    otto = await opened(world, OTTO)
    await world.shows(otto, "Waiting for approval")
    assert otto.buttons[-1] == "Cancel"
    await world.slack.click(OTTO, otto, "Cancel")
    await world.shows(otto, "Cancelled")
    await world.shows(card, "Cancelled")


async def test_refused_click_on_home_is_explained_directly(world):
    await world.asked("add welcome +15550100")
    ada = await opened(world, ADA)
    await world.slack.click(OTTO, ada, "Approve")
    (told,) = await world.slack.until(lambda: world.slack.workspace.dm(OTTO))
    assert "You need the approver role" in told.all_text


async def test_own_requests_do_not_wait_for_oneself(world):
    await world.asked("add welcome +15550100", by=ADAM)
    adam = await opened(world, ADAM)
    await world.shows(adam, "Waiting for approval")
    assert "Nothing is waiting for you" in adam.all_text


async def test_person_without_a_role_reads_who_manages_access(world):
    home = await opened(world, NORA)
    assert home.all_text.strip() == (
        "You don't have access to Gatehouse yet. Adam Admin manages access."
    )
    assert home.buttons == []


async def test_person_of_another_workspace_sees_nothing(world):
    home = await opened(world, STAN)
    assert "another workspace" in home.all_text
    assert home.buttons == []


async def test_viewer_sees_identities_masked(world):
    flow = world.flow
    vera = await opened(world, VERA)
    assert vera.buttons == ["Organizations", "Rate limits"]
    await world.asked("add welcome +15550100")
    assert "+15550100" not in vera.all_text
    assert flow.history == []


async def test_click_on_a_card_draws_the_tab_of_that_person(world):
    ada = await opened(world, ADA)
    card = await world.asked("add welcome +15550100")
    assert "+15550100" not in ada.all_text
    await opened(world, ADA)
    await world.slack.click(ADA, card, "Approve")
    await world.shows(ada, "Nothing is waiting for you")


async def test_click_of_somebody_else_leaves_the_tab(world):
    card = await world.asked("add welcome +15550100")
    ada = await opened(world, ADA)
    before = publishes(world, ADA)
    await world.slack.click(ABEL, card, "Approve")
    await world.shows(card, "*Applied*")
    await world.later(timedelta(minutes=5))
    assert publishes(world, ADA) == before
    assert "+15550100" in ada.all_text


async def test_every_click_in_the_tab_draws_it(world):
    home = await opened(world, OTTO)
    await world.asked("add welcome +15550100", by=ADAM)
    before = publishes(world, OTTO)
    await world.slack.click(OTTO, home, "Rate limits")
    await world.until(lambda: len(publishes(world, OTTO)) > len(before))
    assert publishes(world, OTTO)[:-1] == before


async def test_a_block_is_shown(world):
    world.services.state.limits.block(("com", "10234695"), 1070)
    await world.ask(OTTO, "/ratelimits", "check 10234695")
    home = await opened(world, OTTO)
    assert "is blocked (code 1070)" in home.all_text


async def test_publish_whose_answer_is_lost_is_made_good(world):
    for number in range(2):
        await world.asked(f"add welcome +1555010{number}")
    otto = await opened(world, OTTO)
    world.slack.workspace.faults.cut("views.publish")
    await world.slack.click(OTTO, otto, "Cancel")
    await world.shows(otto, "Cancelled")
    assert "+15550100" in otto.all_text
    assert "+15550101" in otto.all_text


async def test_slack_asking_to_wait_is_obeyed(world):
    world.slack.workspace.faults.ratelimit("views.publish", retry_after=1)
    await world.slack.open_home(OTTO)
    home = await world.slack.until(lambda: world.slack.workspace.homes[OTTO])
    assert "Your requests" in home.all_text


async def test_tab_that_could_not_be_published_is_after_a_restart(sqlite_url):
    settings = {"inventory_watch": "off"}
    async with empty_world(sqlite_url, **settings) as world:
        world.slack.workspace.faults.error("views.publish", "internal_error", times=None)
        await world.slack.open_home(OTTO)
        await world.asked("add welcome +15550100")
    async with running_world(sqlite_url, **settings) as world:
        home = await world.slack.until(lambda: world.slack.workspace.homes[OTTO])
        assert "+15550100" in home.all_text


@pytest.mark.parametrize(
    ("button", "words"), [("Organizations", "Northwind"), ("Rate limits", "Northwind")]
)
async def test_buttons_of_home_answer_in_the_conversation(world, button, words):
    home = await opened(world, OTTO)
    await world.slack.click(OTTO, home, button)
    (answer,) = await world.slack.until(lambda: world.slack.workspace.dm(OTTO))
    assert words in answer.all_text


async def test_change_test_users_opens_the_form(world):
    home = await opened(world, OTTO)
    await world.slack.click(OTTO, home, "Change test users")
    form = await world.form(OTTO)
    await world.slack.submit(OTTO, form, {"Flow": "welcome", "Identities": "+15550100"})
    (answer,) = await world.slack.until(lambda: world.slack.workspace.dm(OTTO))
    assert "Sent to" in answer.all_text


async def test_grants_that_end_soon_are_shown(world):
    await world.applied("add welcome +15550100 for 2h")
    otto = await opened(world, OTTO)
    ending = otto.all_text.partition("Access ending within 24 hours")[2]
    assert "+15550100" in ending
    assert otto.buttons[-1:] == ["Extend"]
    await world.slack.click(OTTO, otto, "Extend")
    form = await world.form(OTTO)
    await world.slack.submit(OTTO, form, {})
    assert "} at {time}|" in (await world.card(1)).all_text.partition("(currently until")[0]


async def test_every_grant_that_ends_soon_is_counted(world):
    many = " ".join(f"+1555{number:04}" for number in range(60))
    for text in (f"{many} for 2h", *(f"+1777{number} for 3h" for number in range(11))):
        await world.applied(f"add welcome {text}")
    otto = await opened(world, OTTO)
    assert "*60 test users* on *welcome* · until" in otto.all_text
    assert "And 2 more. `/testusers mine`" in otto.all_text


async def test_a_form_that_a_rule_approves_is_shown_as_applied(sqlite_url):
    rule = {"from": [OTTO], "longest": "4h", "a_day": 2}
    policies = json.dumps({"*": {"auto": rule}})
    async with empty_world(sqlite_url, inventory_watch="off", flow_policies=policies) as world:
        otto = await opened(world, OTTO)
        await world.slack.click(OTTO, otto, "Change test users")
        form = await world.form(OTTO)
        await world.slack.suggest(OTTO, form, "Flow", "wel")
        inputs = {"Flow": "welcome", "Identities": "+15550100", "For": "2h"}
        await world.slack.submit(OTTO, form, inputs)
        await world.shows(otto, "*Applied*, approved by an automatic rule")
        assert world.flow.identities == ["+15550100"]


async def test_a_form_is_answered_even_if_the_tab_cannot_be_drawn(world, monkeypatch):
    async def unavailable(*_):
        raise DatabaseUnavailable

    otto = await opened(world, OTTO)
    await world.slack.click(OTTO, otto, "Change test users")
    form = await world.form(OTTO)
    monkeypatch.setattr(world.bot.home, "open", unavailable)
    await world.slack.submit(OTTO, form, {"Flow": "welcome", "Identities": "+15550100"})
    (answer,) = await world.slack.until(lambda: world.slack.workspace.dm(OTTO))
    assert "Sent to" in answer.all_text


async def test_own_requests_that_have_no_room_are_counted(world):
    for number in range(16):
        await world.asked(f"add welcome +1777{number:02}")
    otto = await opened(world, OTTO)
    assert otto.buttons.count("Cancel") == 15
    assert "And 1 more. `/testusers requests` shows all open requests." in otto.all_text


@pytest.mark.parametrize(("hours", "is_shown"), [(24, True), (25, False)])
async def test_access_that_ends_within_24_hours_is_shown(world, hours, is_shown):
    await world.applied(f"add welcome +15550100 for {hours}h")
    home = await opened(world, OTTO)
    assert ("Access ending within 24 hours" in home.all_text) == is_shown


@pytest.mark.parametrize(("hours", "is_shown"), [(-1, True), (1, False)])
async def test_requests_of_the_last_seven_days_are_shown(world, hours, is_shown):
    await world.applied("add welcome +15550100")
    await world.later(timedelta(days=7, hours=hours))
    home = await opened(world, OTTO)
    mine = await world.ask(OTTO, "/testusers", "mine")
    for page in (home, mine):
        assert ("*Applied*, approved by Ada Approver" in page.all_text) == is_shown
