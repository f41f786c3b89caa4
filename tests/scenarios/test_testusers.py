"""Tests `/testusers` end to end, from the signed request to the messages and service calls."""

import json
from datetime import timedelta

import pytest

from bot.slack.messages.block_kit import Wanted
from bot.testusers.messages.forms import change_form
from bot.testusers.parse.command import Prefilled
from sandbox.services.faults import Fault, FaultKind
from tests.support.world import ABEL, ADA, ADAM, OTTO, VERA, WELCOME, running_world

MENTIONS = ("<!channel", "<!here", "<!everyone")


async def test_a_request_is_approved_and_applied(world):
    world.flow.identities[:] = ["old"]
    message = await world.asked("add welcome +15550100 for 2h because Friday’s demo")
    for words in ("Otto Operator", "+15550100", "Friday’s demo", "2 h", "1 → 2", "expires"):
        assert words in message.all_text
    assert "pplied" not in message.all_text
    assert message.buttons == ["Approve", "Deny", "Cancel"]
    answer = await world.click(ADA, message, "Approve")
    assert "You approved" in answer.all_text
    await world.shows(message, "Applied")
    assert message.buttons == ["Undo"]
    assert "Updating" not in answer.all_text
    assert world.flow.identities == ["old", "+15550100"]
    assert len(world.cards()) == 1
    await world.told(OTTO, "approved by Ada Approver")


async def test_the_card_mentions_who_can_approve_and_nobody_else(world):
    message = await world.asked("add welcome +1", by=ADA)
    text = json.dumps(message.blocks)
    assert "<!subteam^S0APPROVERS>" in text
    assert f"<@{ADAM}>" not in text
    assert f"<@{ADA}>" not in text
    assert f"<@{OTTO}>" not in text


async def test_an_outside_edit_survives_and_the_card_mentions_it(world):
    world.flow.identities[:] = ["old"]
    message = await world.asked("add welcome +1")
    world.services.state.edit_flow(WELCOME, ["new"])
    await world.approve(message, "Applied")
    assert world.flow.identities == ["new", "+1"]
    assert "Someone else made these changes in the meantime, and I kept them" in message.all_text
    assert "added `new`; removed `old`" in message.all_text


async def test_deny_asks_a_reason_that_the_requester_gets(world):
    message = await world.asked("add welcome +1")
    await world.slack.click(ADA, message, "Deny")
    view = await world.form(ADA)
    await world.slack.submit(ADA, view, {"Reason": "not <!channel> now"})
    await world.shows(message, "Denied")
    assert message.buttons == []
    await world.told(OTTO, "not &lt;!channel&gt; now")
    assert world.flow.history == []


async def test_a_denial_without_a_reason_is_not_taken(world):
    message = await world.asked("add welcome +1")
    await world.slack.click(ADA, message, "Deny")
    view = await world.form(ADA)
    await world.slack.submit(ADA, view, {"Reason": " \n "})
    assert view.errors == {"testusers.reason": "Please give a reason."}
    await world.slack.submit(ADA, view, {"Reason": "no \ud83d"})
    assert "a character that was lost" in view.errors["testusers.reason"]
    assert "Approve or deny?" in message.all_text
    await world.slack.submit(ADA, view, {"Reason": "not now"})
    await world.shows(message, "not now")


async def test_only_the_requester_cancels(world):
    message = await world.asked("add welcome +1")
    assert "Only Otto Operator" in (await world.click(ADA, message, "Cancel")).all_text
    await world.click(OTTO, message, "Cancel")
    await world.shows(message, "Cancelled")


async def test_nobody_approves_their_own_request(world):
    message = await world.asked("add welcome +1", by=ADA)
    refusal = await world.click(ADA, message, "Approve")
    assert "You can't approve your own request. People" in refusal.all_text


async def test_a_stale_button_says_who_decided(world):
    message = await world.asked("add welcome +1")
    stale = json.loads(json.dumps(message.blocks))
    await world.approve(message, "Applied")
    message.blocks[:] = stale
    answer = await world.click(ABEL, message, "Approve")
    assert "Ada Approver already approved this" in answer.all_text
    assert world.flow.history == [["+1"]]


async def test_a_failure_shows_the_reason_and_retry_applies(world):
    message = await world.asked("add welcome +1")
    fault = world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="POST"))
    await world.approve(message, "Failed")
    assert "pplied" not in message.all_text
    assert message.buttons == ["Retry"]
    await world.told(OTTO, "*Failed: nothing was changed*")
    fault.lift()
    await world.click(ABEL, message, "Retry")
    await world.shows(message, "Applied")
    assert world.flow.identities == ["+1"]


async def test_undo_is_a_request_of_its_own(world):
    message = await world.applied("add welcome +1")
    await world.click(OTTO, message, "Undo")
    inverse = await world.card(1)
    assert "remove *1 test user* from *welcome*" in inverse.all_text
    assert world.flow.identities == ["+1"]
    await world.shows(message, "*Undo requested*")
    await world.approve(inverse, "Applied")
    await world.shows(message, "*Undone*")
    assert world.flow.identities == []
    for page in ("history welcome", "mine"):
        answer = await world.ask(OTTO, "/testusers", page)
        assert "approved by Ada Approver, later undone" in answer.all_text
    assert "Nobody has access through your requests." in answer.all_text


async def test_change_is_undone_from_the_history_where_its_channel_is_gone(sqlite_url):
    async with running_world(sqlite_url) as world:
        await world.click(ADA, await world.asked("add welcome +1"), "Approve")
        await world.shows(await world.card(), "Applied")
    async with running_world(sqlite_url, approvals_channel="C0ALERTS") as world:
        world.flow.identities[:] = ["+1"]
        assert (await world.ask(VERA, "/testusers", "history welcome")).buttons == []
        history = await world.ask(OTTO, "/testusers", "history welcome")
        assert history.buttons == ["Undo"]
        assert "Sent to <#C0ALERTS> " in (await world.click(OTTO, history, "Undo")).all_text
        cards = world.slack.workspace.messages
        (inverse,) = await world.slack.until(
            lambda: [item for item in cards("C0ALERTS") if "Approve" in item.buttons]
        )
        await world.approve(inverse, "Applied")
        assert world.flow.identities == []
        assert (await world.ask(OTTO, "/testusers", "history welcome")).buttons == ["Undo"]


async def test_now_posts_the_card_already_applied_and_marked(world):
    message = await world.asked("add welcome +1 now because the demo is on", by=ADAM)
    assert "Applied without approval" in message.text
    assert message.versions == []
    refused = await world.ask(ADA, "/testusers", "add welcome +2 now because I want")
    assert "You need the admin role to apply changes without approval" in refused.all_text
    assert world.flow.identities == ["+1"]


async def test_a_grant_ends_on_time_and_the_requester_is_told(world):
    message = await world.asked("add welcome +1 for 1s")
    await world.approve(message, "Access ended")
    assert world.flow.identities == []
    await world.told(OTTO, "has ended for `+1`")


async def test_typed_text_mentions_nobody_and_formats_nothing(world):
    evil = "<!channel> <@U0ADMIN> *x* \u202eabc 👩‍🚀 שלום"
    sent = evil.replace("<", "&lt;").replace(">", "&gt;")
    await world.slack.command(
        OTTO, "C0GENERAL", "/testusers", f"add welcome “{sent}” because {sent}", as_typed=False
    )
    message = await world.card()
    for text in (message.text, json.dumps(message.blocks, ensure_ascii=False)):
        assert not any(mention in text for mention in MENTIONS)
    await world.approve(message, "Applied")
    assert world.flow.identities == [evil]
    await world.told(OTTO, "&lt;!channel&gt;")


async def test_the_form_keeps_its_input_until_it_is_valid(world):
    view = await world.opened_form()
    await world.slack.suggest(OTTO, view, "Flow", "wel")
    wrong = {"Flow": "welcome", "Identities": "+1\n+1", "For": "never"}
    await world.slack.submit(OTTO, view, wrong)
    assert {"testusers.identities", "testusers.for"} == set(view.errors)
    right = {"Flow": "welcome", "Identities": '"+1 555"\n "a,b" ', "For": "2h", "Reason": "demo"}
    await world.slack.submit(OTTO, view, right)
    message = await world.card()
    for words in ("`+1 555`", "`a,b`", "2 h", "demo", "add *2 test users*"):
        assert words in message.all_text
    answer = (await world.answer(OTTO)).all_text
    assert "Sent to" in answer
    assert "You'll get a direct message when someone decides." in answer


async def fill_in(world, **inputs):
    """Fill in and submit the form. Return the bot's reply."""
    before = len(world.slack.workspace.ephemerals(OTTO))
    view = await world.opened_form()
    await world.slack.suggest(OTTO, view, "Flow", "wel")
    await world.slack.submit(OTTO, view, inputs)
    return await world.answer(OTTO, after=before)


async def test_form_that_failed_opens_again_with_what_was_typed(world):
    world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="GET", times=3))
    answer = await fill_in(world, Flow="welcome", Identities='"-now"\n"*bold* :x: <b>"', For="2h")
    await world.slack.click(OTTO, answer, "Try again")
    await world.slack.submit(OTTO, await world.form())
    card = (await world.card()).all_text
    for shown in ("`-now`", "`*bold* :x: &lt;b&gt;`", "for 2 h"):
        assert shown in card


async def test_a_form_is_returned_if_the_person_cannot_be_looked_up(world):
    world.slack.workspace.faults.error("users.info", "internal_error", times=None)
    workspace = world.slack.workspace
    view = workspace.open(OTTO, change_form(f"{world.slack.address}/response/gone", Prefilled()))
    chosen = {"text": {"type": "plain_text", "text": "welcome"}, "value": WELCOME}
    await world.slack.submit(OTTO, view, {"Flow": chosen, "Identities": "+1"})
    (answer,) = await world.slack.until(lambda: workspace.dm(OTTO))
    assert "couldn't verify who you are" in answer.all_text
    assert answer.buttons == ["Try again"]


async def test_a_pasted_sid_is_offered_and_a_viewer_gets_no_form(world):
    view = await world.opened_form()
    pasted = "FW" + "ab" * 16
    offered = await world.slack.suggest(OTTO, view, "Flow", pasted)
    assert [item["value"] for item in offered] == [pasted]
    assert "You need the operator role" in (await world.ask(VERA, "/testusers")).all_text


@pytest.mark.parametrize("typed", ["wel\u200bcome", "W\u00e9lcome", f"{WELCOME.lower()}\u2060"])
async def test_the_type_ahead_ignores_case_accents_and_what_cannot_be_seen(world, typed):
    view = await world.opened_form()
    offered = await world.slack.suggest(OTTO, view, "Flow", typed)
    assert [item["value"] for item in offered] == ["welcome"]


async def test_a_picked_date_counts_whatever_the_time_zone(world):
    world.slack.workspace.people[OTTO].tz = "America/Atlantis"
    picked = int(world.clock.now().timestamp()) + 86_400
    await fill_in(world, Flow="welcome", Identities="+1", Until=picked)
    assert f"until <!date^{picked}" in (await world.card()).all_text


async def test_a_viewer_sees_the_last_four_characters(world):
    await world.applied("add welcome +15550100 because of the demo")
    await world.asked("remove welcome +15550100")
    for words in ("list welcome", "history welcome", "requests"):
        masked = (await world.ask(VERA, "/testusers", words)).all_text
        assert "…0100" in masked
        assert "+1555" not in masked
        assert "+15550100" in (await world.ask(OTTO, "/testusers", words)).all_text


async def test_requests_have_buttons_for_those_who_may(world):
    await world.asked("add welcome +1")
    assert (await world.ask(VERA, "/testusers", "requests")).buttons == []
    assert (await world.ask(OTTO, "/testusers", "requests")).buttons == ["Cancel"]
    listed = await world.ask(ADA, "/testusers", "requests")
    assert listed.buttons == ["Approve", "Deny"]
    await world.slack.click(ADA, listed, "Approve")
    await world.shows(await world.card(), "Applied")
    again = await world.ask(ADA, "/testusers", "requests")
    assert "Nothing is waiting for approval" in again.all_text
    assert len(world.cards()) == 1


async def test_a_deleted_card_is_posted_again(world):
    message = await world.asked("add welcome +1")
    world.slack.workspace.faults.error("chat.update", "message_not_found", times=1)
    await world.click(ADA, message, "Approve")
    again = await world.card(1)
    assert "Applied" in again.all_text or "Updating" in again.all_text


async def test_slack_429_delays_the_card_and_loses_nothing(world):
    world.slack.workspace.faults.ratelimit("chat.postMessage", retry_after=1)
    assert "Approve or deny?" in (await world.asked("add welcome +1")).all_text
    posts = world.slack.workspace.calls_of("chat.postMessage")
    assert [post.status for post in posts] == [429, 200]


async def test_the_longest_list_and_request_stay_within_slacks_limits(world):
    world.flow.identities[:] = [f"{n:05}{'&' * 295}" for n in range(400)]
    assert "*400 test users*" in (await world.ask(OTTO, "/testusers", "list welcome")).all_text
    many = " ".join(f"x:{n:05}{'x' * 250}" for n in range(20))
    await world.applied(f"add welcome {many} because {'&' * 500}")
    assert len(world.flow.identities) == 420


async def test_a_request_is_remembered_once_and_expires(world):
    message = await world.asked("add welcome +1")
    await world.later(timedelta(hours=5))
    thread = world.slack.workspace.thread
    (reminder,) = await world.slack.until(lambda: thread("C0APPROVALS", message.ts))
    assert "Still waiting for approval" in reminder.all_text
    await world.later(timedelta(hours=25))
    await world.shows(message, "Expired")
    assert message.buttons == []
    assert thread("C0APPROVALS", message.ts) == [reminder]
    await world.told(OTTO, "*Expired* because it wasn't approved in time")


async def test_a_quorum_counts_in_the_card(sqlite_url):
    async with running_world(sqlite_url, approvals_needed="2") as world:
        message = await world.asked("add welcome +1")
        await world.approve(message, "1 of 2 approvals* (Ada Approver)")
        assert "already approved this" in (await world.click(ADA, message, "Approve")).all_text
        await world.approve(message, "approved by Ada Approver, Abel Approver", by=ABEL)


async def test_long_pages_are_turned_in_place(world):
    world.flow.identities[:] = [f"+{n:03}" for n in range(45)]
    listed = await world.ask(OTTO, "/testusers", "list welcome")
    assert "Page 1 of 3" in listed.all_text
    await world.slack.click(OTTO, listed, "Next")
    await world.shows(listed, "Page 2 of 3")
    assert "+020" in listed.all_text
    turning = [button for button in listed.buttons if button != "Share in channel"]
    assert turning == ["Change…", "Previous", "Next"]
    for n in range(6):
        await world.asked(f"add welcome +9{n}")
        # Requests are listed by their times.
        await world.later(timedelta(seconds=n + 1))
    for command, words in (("requests", "+95"), ("history welcome", "+90")):
        page = await world.ask(OTTO, "/testusers", command)
        assert words not in page.all_text
        await world.slack.click(OTTO, page, "Next")
        await world.shows(page, words)


async def test_a_page_that_is_no_more_is_the_last_one_there_is(world):
    world.flow.identities[:] = [f"+{n:03}" for n in range(25)]
    for n in range(6):
        await world.asked(f"add welcome +9{n}")
    for command in ("list welcome", "history welcome", "requests"):
        page = await world.ask(OTTO, "/testusers", command)
        elements = [element for block in page.blocks for element in block.get("elements", ())]
        following = next(e for e in elements if e.get("text", {}) and "Next" in str(e["text"]))
        following["value"] = Wanted(flow="welcome", page=8).value()
        await world.slack.click(OTTO, page, "Next")
        await world.shows(page, "Page 2 of 2")
        assert "Previous" in page.buttons
        assert "Next" not in page.buttons


@pytest.mark.parametrize("text", ["add other +1", "list other", "history FW123"])
async def test_an_unknown_flow_is_named(world, text):
    answer = (await world.ask(OTTO, "/testusers", text)).all_text
    assert f"I don't know a flow called “{text.split()[1]}”" in answer
    assert "Use survey, welcome, or a SID" in answer
    assert world.cards() == []


async def test_a_missing_identity_is_answered_with_an_example(world):
    assert "add welcome +15550100" in (await world.ask(OTTO, "/testusers", "add welcome")).all_text


async def test_a_command_without_its_service_names_the_settings(sqlite_url):
    unset = {"flow_base_url": "", "flow_account_sid": "", "flow_auth_token": ""}
    async with running_world(sqlite_url, **unset, flow_aliases="{}") as world:
        for text in ("", "list welcome", "history welcome", "add welcome +1", f"list {WELCOME}"):
            answer = (await world.ask(OTTO, "/testusers", text)).all_text
            assert "I don't know a flow called" not in answer
            for name in unset:
                assert name.upper() in answer
        assert world.slack.workspace.open_view(OTTO) is None
        assert "Nothing is waiting" in (await world.ask(OTTO, "/testusers", "requests")).all_text


async def test_help_has_an_example(world):
    assert "Example: `/testusers add" in (await world.ask(VERA, "/testusers", "help")).all_text


async def test_the_audit_says_who_by_name(world):
    await world.ask(OTTO, "/testusers", "add welcome +1 because x")
    said = (await world.ask(ADAM, "/gatehouse", "audit 5")).all_text
    assert "*Otto Operator* asked for a change to" in said


@pytest.mark.parametrize("clicked", [0, 1])
async def test_second_card_of_a_lost_answer_becomes_true_when_it_is_clicked(
    world, monkeypatch, clicked
):
    """Slack may ignore `client_msg_id`, as it does in this test."""
    monkeypatch.setattr("sandbox.slack.chat.same_client_message", lambda *_: None)
    world.slack.workspace.faults.cut("chat.postMessage")
    await world.ask(OTTO, "/testusers", "add welcome +15550001111")
    await world.card(1)
    await world.slack.until(lambda: world.slack.workspace.calls_of("chat.update"))
    cards = world.cards()
    await world.click(ADA, cards[clicked], "Approve")
    await world.slack.until(lambda: any("Applied" in card.all_text for card in world.cards()))
    assert world.flow.identities == ["+15550001111"]
    assert len(world.cards()) == 2
