"""Teams can use presets, choose times, extend access, and list their own test users."""

import json
import re
import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from bot.slack.messages.replies import ABOUT_TEST_USERS
from tests.support.world import ADA, OTTO, VERA, empty_world, running_world


async def say(world, user: str, text: str) -> str:
    return (await world.ask(user, "/testusers", text)).all_text


async def test_a_request_for_a_preset_can_be_cancelled(world):
    assert "Saved the preset `@demo` with `+1`, `+2`." in await say(
        world, OTTO, "preset save demo +1 +2"
    )
    assert "`@demo` (2 test users)" in await say(world, VERA, "presets")
    answer = await world.ask(OTTO, "/testusers", "add welcome @demo until tomorrow 9:00")
    assert "> for approval: add `+1`, `+2` to *welcome* until <!date^" in answer.all_text
    message = await world.card()
    assert "*Waiting for approval*" in await say(world, OTTO, "mine")
    await world.slack.click(OTTO, message, "Cancel")
    await world.shows(message, "Cancelled")
    assert world.flow.history == []


async def test_a_mistyped_word_before_a_preset_is_offered_as_a_button(world):
    answer = await world.ask(OTTO, "/testusers", "preset sav Demo +1 +2")
    assert answer.buttons == ["/testusers preset save Demo +1 +2"]
    await world.slack.click(OTTO, answer, "/testusers preset save Demo +1 +2")
    await world.shows(answer, "the preset `@demo` with `+1`, `+2`")
    answer = await world.ask(OTTO, "/testusers", "add welcome @Dmo for 2h")
    assert "There's no preset “@dmo”. See /testusers presets." in answer.all_text


async def test_a_preset_can_be_used_in_the_form(world):
    await say(world, OTTO, "preset save demo +1 +2")
    answer = await world.ask(OTTO, "/testusers", "add welcome @demo vera")
    await world.slack.click(OTTO, answer, "Open the form")
    await world.slack.submit(OTTO, await world.form(), {"Identities": "@demo"})
    card = (await world.card()).all_text
    assert "add `+1`, `+2` to *welcome*" in card
    assert "@demo" in card


async def test_the_list_of_presets_fits_into_a_message(sqlite_url):
    async with empty_world(sqlite_url, commands_per_minute="0") as world:
        for number in range(40):
            people = " ".join(f"chat:{'long-name' * 5}{person}" for person in range(6))
            await world.ask(OTTO, "/testusers", f"preset save team{number:02} {people}")
        answer = await world.ask(OTTO, "/testusers", "presets")
        shown = "\n".join(block["text"]["text"] for block in answer.blocks)
        assert 10_000 < len(shown) < 12_000
        assert shown.startswith("*40 presets*")
        assert shown.endswith(f"\nAnd {40 - shown.count('`@team')} more.")


async def test_deleting_a_preset_shows_its_content(world):
    await say(world, OTTO, 'preset save demo +1 "Ben & Jerry"')
    await say(world, OTTO, "preset save demo +2")
    assert "It contained `+2`." in await say(world, OTTO, "preset delete demo")


async def test_the_same_again_is_answered_with_a_link_to_the_open_card(world):
    await world.ask(OTTO, "/testusers", "add welcome +1 for 2h because a demo")
    await world.card()
    again = await world.ask(OTTO, "/testusers", "add welcome +1 for 2h because a demo")
    assert "View the card" in again.all_text
    assert len(world.cards()) == 1
    for other in (
        "+1 for 3h because a demo",
        "+1 for 2h because a test",
        "+2 for 2h because a demo",
    ):
        await world.ask(OTTO, "/testusers", f"add welcome {other}")
    await world.ask(ADA, "/testusers", "add welcome +1 for 2h because a demo")
    await world.card(4)


async def test_a_list_is_filtered_by_what_its_reader_sees(world):
    world.flow.identities[:] = ["+15550100", "+15559999", "Zoë"]
    assert "*1 test user* matching `0100`" in await say(world, OTTO, "list welcome 0100")
    assert "Zoë" in await say(world, OTTO, "list welcome zoe")
    assert "no test users matching `1555`" in await say(world, VERA, "list welcome 1555")


async def test_policies_hold_over_http(sqlite_url):
    policies = {"welcome": {"approvers": [VERA], "longest": "1d"}}
    async with empty_world(sqlite_url, flow_policies=json.dumps(policies)) as world:
        assert "Add an end" in await say(world, OTTO, "add welcome +1")
        await world.ask(OTTO, "/testusers", "add welcome +1 for 2h")
        message = await world.card()
        assert f"Approvers: <@{VERA}>" in message.all_text
        await world.slack.click(VERA, message, "Approve")
        await world.shows(message, "*Applied*")


async def test_an_approver_who_is_a_viewer_gets_masked_answers(sqlite_url):
    policies = {"welcome": {"approvers": [VERA]}}
    async with empty_world(sqlite_url, flow_policies=json.dumps(policies)) as world:
        first = await world.asked("add welcome +15550142")
        second = await world.asked("add welcome +15550143")
        pending = await world.ask(VERA, "/testusers", "requests")
        await world.slack.open_home(VERA)
        home = await world.slack.until(lambda: world.slack.workspace.homes[VERA])
        await world.slack.click(VERA, first, "Deny")
        form = await world.form(VERA)
        approved = await world.click(VERA, first, "Approve")
        repeated = await world.click(VERA, pending, "Deny")
        denied = await world.click(VERA, second, "Approve")
        for said in (pending, home, form, approved, repeated, denied):
            shown = json.dumps(said.blocks)
            assert "0142" in shown or "0143" in shown
            assert "1555" not in shown
        assert "1555" not in pending.text + approved.text + repeated.text


def shown_times(message, zone: str) -> list[str]:
    """Return the times in a message, converted to this time zone."""
    found = re.findall(r"<!date\^(\d+)\^", message.all_text)
    local = (datetime.fromtimestamp(int(item), ZoneInfo(zone)) for item in found)
    return [f"{item:%Y-%m-%d %H:%M}" for item in local]


@pytest.mark.parametrize("line", ["+1 555 0142", "John Smith", "because demo", "0170 555 0142"])
async def test_the_form_refuses_what_the_command_refuses(world, line):
    form = await world.opened_form()
    await world.slack.submit(OTTO, form, {"Flow": "welcome", "Identities": f"+15557001\n{line}"})
    errors = world.slack.workspace.open_view(OTTO).errors
    assert f"“{line}” doesn't look like" in errors["testusers.identities"]
    await world.slack.submit(OTTO, form, {"Flow": "welcome", "Identities": f'+15557001\n"{line}"'})
    assert f"`{line}`" in (await world.card()).all_text


async def test_three_people_on_one_line_are_refused_at_the_input(world):
    form = await world.opened_form()
    line = "+15550111 +15550112, vera@example.com"
    await world.slack.submit(OTTO, form, {"Flow": "welcome", "Identities": line})
    error = world.slack.workspace.open_view(OTTO).errors["testusers.identities"]
    assert "Each identity needs a line of its own" in error
    lines = line.replace(",", "").replace(" ", "\n")
    await world.slack.submit(OTTO, form, {"Flow": "welcome", "Identities": lines})
    assert "add `+15550111`, `+15550112`, `vera@example.com`" in (await world.card()).all_text


async def test_the_form_stays_open_where_the_policy_refuses(sqlite_url):
    policies = json.dumps({"survey": {"longest": "7d"}})
    async with running_world(sqlite_url, flow_policies=policies) as world:
        form = await world.opened_form()
        filled = {"Flow": "survey", "Identities": "+15557001"}
        for duration in ("", "8d"):
            await world.slack.submit(OTTO, form, {**filled, "For": duration})
            assert "at most 7d" in world.slack.workspace.open_view(OTTO).errors["testusers.for"]
        week = int(time.time()) + 8 * 86_400
        await world.slack.submit(OTTO, form, {**filled, "For": "", "Until": week})
        assert "at most 7d" in world.slack.workspace.open_view(OTTO).errors["testusers.until"]
        await world.slack.submit(OTTO, form, {**filled, "For": "2h", "Until": None})
        assert "for 2 h" in (await world.answer(OTTO)).all_text


@pytest.mark.parametrize(
    ("typed", "at"),
    [("until tomorrow 18:00", "18:00"), ("until friday", "23:59")],
)
async def test_a_time_comes_back_in_the_zone_of_the_requester(world, typed, at):
    answer = await world.ask(OTTO, "/testusers", f"add welcome +15550142 {typed}")
    assert "your Slack time zone, Europe/Berlin" in answer.all_text
    message = await world.card()
    await world.slack.click(ADA, message, "Approve")
    await world.shows(message, ", approved by")
    for shown in (answer, message):
        assert at in [item[-5:] for item in shown_times(shown, "Europe/Berlin")]


async def test_the_form_and_the_help_explain_test_users(world):
    assert ABOUT_TEST_USERS in json.dumps((await world.opened_form()).blocks)
    assert ABOUT_TEST_USERS in (await world.ask(OTTO, "/testusers", "help")).all_text


async def test_the_card_shows_the_end_date_from_the_form(world):
    form = await world.opened_form()
    until = int(time.time()) // 60 * 60 + 86_400
    await world.slack.submit(
        OTTO, form, {"Flow": "welcome", "Identities": "+15550142", "Until": until}
    )
    assert f"<!date^{until}^" in (await world.card()).all_text


async def test_extend_fills_in_an_end_that_is_later_by_the_last_duration(world):
    await world.applied("add welcome +15550142 for 90m")
    (before,) = {*shown_ends(await world.ask(OTTO, "/testusers", "list welcome"))}
    mine = await world.ask(OTTO, "/testusers", "mine")
    await world.slack.click(OTTO, mine, "Extend")
    form = await world.form()
    await world.slack.submit(OTTO, form, {})
    asked = (await world.card(1)).all_text
    until = int(re.search(r"until <!date\^(\d+)\^", asked).group(1))
    assert 5400 <= until - before <= 5460


def shown_ends(message) -> list[int]:
    return [int(found) for found in re.findall(r"until <!date\^(\d+)\^", message.all_text)]


async def test_mine_counts_everybody_and_groups_them_by_request(world):
    many = " ".join(f"+1555{number:04}" for number in range(60))
    await world.applied(f"add welcome {many} for 2h")
    await world.applied("add welcome +15550142")
    mine = await world.ask(OTTO, "/testusers", "mine")
    assert "People you requested access for* (61)" in mine.all_text
    assert "*60 test users* on *welcome* · until" in mine.all_text
    assert mine.buttons == ["Extend", "Set an end date"]


async def test_extend_suggests_no_end_that_the_policy_refuses(sqlite_url):
    policies = json.dumps({"welcome": {"longest": "7d"}})
    async with empty_world(sqlite_url, flow_policies=policies) as world:
        await world.applied("add welcome +15550142 for 7d")
        await world.later(timedelta(days=6))
        mine = await world.ask(OTTO, "/testusers", "mine")
        await world.slack.click(OTTO, mine, "Extend")
        await world.slack.submit(OTTO, await world.form())
        assert "keep *1 test user* on *welcome* until" in (await world.card(1)).all_text


async def test_so_many_people_that_no_button_holds_them_can_be_copied(world):
    people = [f"+1555{number:07}" for number in range(200)]
    await world.applied(f"add welcome {' '.join(people)} for 4h")
    mine = await world.ask(OTTO, "/testusers", "mine")
    assert "These are too many people for a button" in mine.all_text
    await world.later(timedelta(hours=3, minutes=5))
    await world.told(OTTO, "These are too many people for a button")
    notice = world.slack.workspace.dm(OTTO)[-1]
    assert notice.buttons == []
    assert all(one in notice.all_text for one in people)


async def test_mine_has_pages(world):
    for number in range(11):
        await world.applied(f"add welcome +1555{number:04} for {number + 1}h")
    mine = await world.ask(OTTO, "/testusers", "mine")
    assert "access for* (11)" in mine.all_text
    assert "And 1 more." in mine.all_text
    await world.slack.click(OTTO, mine, "Next")
    await world.shows(mine, "Page 2 of 2")
    assert "`+15550010`" in mine.all_text


async def test_a_page_of_requests_that_is_gone_shows_the_last_page(world):
    cards = [await world.asked(f"add welcome +1555{number:04} for 2h") for number in range(6)]
    first = await world.ask(ADA, "/testusers", "requests")
    assert "*6 requests* need a decision" in first.all_text
    assert "+15550005" not in first.all_text
    await world.slack.click(ADA, first, "Next")
    await world.shows(first, "Page 2 of 2", "+15550005")
    again = await world.ask(ADA, "/testusers", "requests")
    await world.slack.click(OTTO, cards[5], "Cancel")
    await world.shows(cards[5], "Cancelled")
    await world.slack.click(ADA, again, "Next")
    await world.shows(again, "*5 requests* need a decision", "+15550004")
