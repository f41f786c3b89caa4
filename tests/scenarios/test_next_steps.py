"""Buttons below replies offer the next step: a correction, a retry or a related command."""

import json
import re

import pytest

from handlers import listening
from sandbox.services.faults import Fault, FaultKind
from tests.support.world import ADA, ADAM, NORA, OTTO, SURVEY, VERA, WELCOME, empty_world


async def pressed(world, user: str, message, button: str, words: str):
    """Press a button on a reply, and wait until the updated reply contains these words."""
    await world.slack.click(user, message, button)
    await world.shows(message, words)


MEANT = (
    ("/testusers", "lst welcome", "/testusers list welcome", "test users"),
    ("/testusers", "list welcom", "/testusers list welcome", "test users"),
    ("/testusers", "list W\u0117lc\u043eme", "/testusers list welcome", "test users"),
    ("/gatehouse", "statuss", "/gatehouse status", "Gatehouse"),
    ("/emailkey", "chek", "/emailkey check", "key"),
    ("/orgs", "shwo 10234695", "/orgs show 10234695", "10234695"),
    ("/orgs", "show Nortwind Traders", "Northwind Traders (com)", "10234695"),
    ("/orgs", "Nortwind", "Northwind Traders (com)", "10234695"),
    ("/orgs", "show Kactus & Co", "\U0001f335 Cactus & Co (com)", "10988211"),
    ("/ratelimits", "chek 10234695", "/ratelimits check 10234695", "at once"),
    ("/ratelimits", "Nortwind Traders", "Northwind Traders (com)", "Northwind"),
)


async def test_the_closest_word_is_a_button(world):
    for command, typed, button, words in MEANT:
        answer = await world.ask(OTTO, command, typed)
        assert button in answer.buttons, typed
        await pressed(world, OTTO, answer, button, words)


async def test_the_closest_flow_is_a_button_in_quotes_and_for_a_name_that_slack_escapes(sqlite_url):
    aliases = json.dumps({"welcome": WELCOME, "R&D": SURVEY})
    async with empty_world(sqlite_url, flow_aliases=aliases) as world:
        answer = await world.ask(OTTO, "/testusers", 'add "wellcome" +15550100')
        assert '/testusers add "welcome" +15550100' in answer.buttons
        answer = await world.ask(OTTO, "/testusers", "list R&E")
        assert answer.buttons == ["/testusers list R&D"]
        await pressed(world, OTTO, answer, "/testusers list R&D", "test user")


async def test_button_asks_for_the_permission_of_its_command(world):
    answer = await world.ask(VERA, "/ratelimits", "chek 10234695")
    refusal = await world.click(VERA, answer, "/ratelimits check 10234695")
    assert "You need the operator role" in refusal.all_text


async def test_a_flow_is_no_test_user_unless_it_is_quoted(world):
    answer = await world.ask(OTTO, "/testusers", "add survey welcome")
    assert "“welcome” doesn't look like a phone number" in answer.all_text
    answer = await world.ask(OTTO, "/testusers", 'add survey "welcome"')
    assert "Sent to" in answer.all_text


async def test_viewer_who_names_a_flow_as_a_test_user_learns_of_no_flow(world):
    answer = await world.ask(VERA, "/testusers", "add survey welcmoe")
    assert "You need the operator role" in answer.all_text
    assert "welcome" not in answer.all_text


async def test_a_word_without_similar_names_gets_no_suggestions(world):
    assert (await world.ask(OTTO, "/orgs", "show zzzzqqqq")).buttons == []


async def test_error_that_passes_can_be_tried_again(world):
    fault = Fault(FaultKind.STATUS, "flow", status=503, times=3)
    world.services.state.faults.add(fault)
    answer = await world.ask(OTTO, "/testusers", "list welcome")
    assert answer.buttons == ["Try again"]
    await pressed(world, OTTO, answer, "Try again", "welcome")


@pytest.mark.parametrize(
    ("flow", "typed", "shown"),
    [("welcome", "+15550100", "`+15550100`"), ("survey", '"welcome"', "`welcome`")],
)
async def test_form_that_failed_can_be_sent_again(world, flow, typed, shown):
    form = await world.opened_form()
    world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", status=503, times=3))
    await world.slack.submit(OTTO, form, {"Flow": flow, "Identities": typed})
    await world.slack.click(OTTO, await world.answer(OTTO), "Try again")
    await world.slack.submit(OTTO, await world.form())
    assert shown in (await world.card()).all_text


async def test_organization_leads_to_its_rate_limits(world):
    answer = await world.ask(OTTO, "/orgs", "show 10234695")
    assert answer.buttons == ["Rate limits", "Share in channel"]
    before = len(world.slack.workspace.ephemerals(OTTO))
    await world.slack.click(OTTO, answer, "Rate limits")
    assert "Check now" in (await world.answer(OTTO, after=before)).buttons


async def test_the_confirmation_of_a_request_has_cancel(world):
    answer = await world.ask(OTTO, "/testusers", "add welcome +15550100")
    assert answer.buttons == ["Cancel"]
    assert "/archives/C0APPROVALS/p" in answer.all_text
    await world.slack.click(OTTO, answer, "Cancel")
    posted = await world.card()
    await world.shows(posted, "Cancelled")


async def test_message_about_a_denial_links_to_the_card(world):
    await world.ask(OTTO, "/testusers", "add welcome +15550100 for 2h")
    posted = await world.card()
    await world.slack.click(ADA, posted, "Deny")
    form = await world.form(ADA)
    await world.slack.submit(ADA, form, {"Reason": "Too long"})
    said = await world.slack.until(
        lambda: [item for item in world.slack.workspace.dm(OTTO) if "Denied" in item.text]
    )
    assert f"/archives/C0APPROVALS/p{posted.ts.replace('.', '')}" in said[0].all_text


async def test_buttons_of_an_older_list_answer_truthfully(world):
    for number in range(2):
        await world.ask(OTTO, "/testusers", f"add welcome +1555010{number}")
    answer = await world.ask(ADA, "/testusers", "requests")
    assert answer.buttons == ["Approve", "Deny"] * 2
    assert "You approved" in (await world.click(ADA, answer, "Approve")).all_text
    assert "You approved" in (await world.click(ADA, answer, "Approve")).all_text
    assert "already approved" in (await world.click(ADAM, answer, "Approve")).all_text
    again = await world.ask(ADA, "/testusers", "requests")
    assert again.buttons == ["Approve", "Deny"]


async def with_test_users(world):
    await world.applied("add welcome +15550100 for 5h")
    return await world.ask(OTTO, "/testusers", "list welcome")


async def test_review_removes_every_spelling_of_a_person(world):
    identities = world.flow.identities
    identities += ["\u202a+15550100\u202c", "+15550100"]
    answer = await world.ask(OTTO, "/testusers", "review welcome")
    await world.slack.click(OTTO, answer, "Remove")
    await world.slack.submit(OTTO, await world.form(), {})
    posted = await world.card()
    assert "`⟨U+202A⟩+15550100⟨U+202C⟩`" in posted.all_text
    assert "`+15550100`" in posted.all_text
    await world.slack.click(ADA, posted, "Approve")
    await world.shows(posted, "Applied")
    assert world.flow.identities == []


async def test_empty_list_leads_to_the_form_with_its_flow(world):
    answer = await world.ask(OTTO, "/testusers", "list welcome")
    await world.slack.click(OTTO, answer, "Change…")
    await world.slack.submit(OTTO, await world.form(), {"Identities": "+15550101"})
    assert "+15550101" in (await world.card()).all_text


async def test_a_late_answer_to_a_form_appears_below_its_list(world, monkeypatch):
    listed = await with_test_users(world)
    await world.slack.click(OTTO, listed, "Change…")
    form = await world.form()
    before = len(world.slack.workspace.ephemerals(OTTO))
    monkeypatch.setattr(listening, "PATIENCE_SECONDS", 0.0)
    await world.slack.submit(OTTO, form, {"Identities": "+15550101"})
    answer = await world.answer(OTTO, after=before)
    assert "Sent to" in answer.all_text
    assert "+15550100" in listed.all_text
    assert world.slack.workspace.ephemerals(OTTO)[before:] == [answer]


async def test_viewer_is_offered_no_change(world):
    empty = await world.ask(VERA, "/testusers", "history welcome")
    assert empty.buttons == []
    await with_test_users(world)
    answer = await world.ask(VERA, "/testusers", "list welcome")
    assert answer.buttons == ["Share in channel"]


async def test_mistyping_a_forbidden_command_names_the_permission(world):
    for who, typed, missing in (
        (VERA, "add", "You need the operator role"),
        (OTTO, "add welcome +1555 now", "You need the admin role"),
        (NORA, "list", "You don't have access"),
    ):
        answer = await world.ask(who, "/testusers", typed)
        assert missing in answer.all_text
        assert "Usage:" not in answer.all_text


@pytest.mark.parametrize("typed", ["nonsense", "whoami x", "whoam", "status now", "'", "audit 0"])
async def test_nothing_that_a_person_without_a_role_types_is_a_fault(world, typed):
    for command in ("/gatehouse", "/orgs", "/ratelimits", "/testusers", "/emailkey"):
        answer = await world.ask(NORA, command, typed)
        assert "Something went wrong" not in answer.all_text
    await world.slack.direct_message(NORA, f"gatehouse {typed}")
    await world.bot.tasks.drain(10)
    assert not re.search(r'outcome="broken"} [^0]', world.bot.metrics.page().decode())


async def test_unknown_word_is_named_the_same_way_everywhere(world):
    for command, typed, said in (
        ("/testusers", "lst", "Unknown subcommand “lst”. Did you mean “list”?"),
        ("/emailkey", "chek", "Unknown subcommand “chek”. Did you mean “check”?"),
        ("/gatehouse", "statuss", "Unknown subcommand “statuss”. Did you mean “status”?"),
        ("/gatehouse", "status now", "Use /gatehouse status with nothing after it."),
    ):
        assert said in (await world.ask(OTTO, command, typed)).all_text


@pytest.mark.parametrize(
    "flow", ["wel\u200bcome", "WELCOME\u2060", "\uff37elcome", f"{WELCOME}\u200b"]
)
async def test_a_flow_is_recognized_however_it_is_typed(world, flow):
    answer = await world.ask(OTTO, "/testusers", f"list {flow}")
    assert "*welcome* has no test users yet" in answer.all_text
    card = await world.asked(f"add {flow} +15550100")
    assert "add `+15550100` to *welcome*" in card.all_text


async def test_word_before_a_subcommand_is_no_typo(world):
    answer = await world.ask(OTTO, "/testusers", "please add welcome +15550100")
    assert "Unknown subcommand “please”." in answer.all_text
    assert "Did you mean" not in answer.all_text
    assert answer.buttons == []


async def test_alias_of_a_flow_that_is_gone_is_named(world):
    world.services.state.flows.pop(WELCOME)
    for text in ("list welcome", "add welcome +15550100"):
        answer = await world.ask(OTTO, "/testusers", text)
        assert f"The flow service can't find the flow {WELCOME}" in answer.all_text
        assert "check FLOW_ALIASES" in answer.all_text


def dialogs_of(message) -> dict[str, str]:
    """Return the text of each button's confirmation dialog."""
    rows = [block["elements"] for block in message.blocks if block["type"] == "actions"]
    return {
        button["text"]["text"]: button["confirm"]["text"]["text"]
        for row in rows
        for button in row
        if "confirm" in button
    }


async def test_a_confirmation_dialog_names_its_change(world):
    change = "add +15550100 to welcome."
    await world.ask(OTTO, "/testusers", "add welcome +15550100")
    (card,) = world.cards()
    assert dialogs_of(card) == {"Cancel": f"This request will be withdrawn: {change}"}
    await world.slack.click(ADA, card, "Deny")
    form = await world.form(ADA)
    assert "wants to add `+15550100` to *welcome*" in str(form)
    await world.slack.click(ADA, card, "Approve")
    await world.shows(card, "Applied")
    assert dialogs_of(card) == {"Undo": "This asks to remove +15550100 from welcome."}


@pytest.mark.parametrize(
    ("text", "undo"),
    [
        ("remove welcome +15550100", "add +15550100 to welcome"),
        ("add welcome +15550100 for 5h", "restore the earlier end date of +15550100 on welcome"),
    ],
)
async def test_the_dialog_of_undo_gives_no_access_whose_end_has_passed(world, text, undo):
    await world.applied("add welcome +15550100 for 2h")
    card = await world.applied(text)
    passed = "(no access if the earlier end date has passed)"
    assert dialogs_of(card) == {"Undo": f"This asks to {undo} {passed}."}


async def test_a_list_that_is_late_can_be_read_again(world):
    await world.applied("add welcome +15550100")
    world.flow.identities.clear()
    answer = await world.ask(OTTO, "/testusers", "list welcome")
    assert "Try again in a minute" in answer.text
    assert answer.buttons == ["Try again"]


async def test_a_click_that_met_a_service_in_trouble_can_be_tried_again(world):
    card = await world.applied("add welcome +15550100")
    fault = world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="GET"))
    answer = await world.click(OTTO, card, "Undo")
    assert answer.buttons == ["Try again"]
    fault.lift()
    assert "Sent to" in (await world.click(OTTO, answer, "Try again")).all_text


async def test_undo_answers_with_a_link_to_its_card(world):
    await world.ask(OTTO, "/testusers", "add welcome +15550100")
    (card,) = world.cards()
    await world.slack.click(ADA, card, "Approve")
    await world.slack.until(lambda: "Undo" in card.buttons)
    assert "View the card" in (await world.click(OTTO, card, "Undo")).all_text
    (_, undo) = world.cards()
    assert "Undoes Otto Operator's request" in undo.all_text


async def test_answer_says_that_slack_has_not_taken_the_card_yet(world):
    world.slack.workspace.faults.ratelimit("chat.postMessage", retry_after=60)
    answer = await world.ask(OTTO, "/testusers", "add welcome +15550100")
    assert "I couldn't post the card yet, but I'll keep trying." in answer.all_text
    assert answer.buttons == ["Cancel"]
    assert "/archives/" not in answer.all_text
