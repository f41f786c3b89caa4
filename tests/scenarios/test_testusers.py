"""`/testusers` and its approvals, from the signed request to what people and the service see."""

import json

import pytest

from bot.testusers.messages.forms import change_form
from bot.testusers.messages.pages import FlowPage
from sandbox.services.faults import Fault, FaultKind
from tests.support.world import running_world

WELCOME = "FW00000000000000000000000000000001"
OTTO, ADA, ABEL, ADAM = "U0OPERATOR", "U0APPROVER", "U0APPROVER2", "U0ADMIN"
VERA, NORA = "U0VIEWER", "U0NOROLE"
MENTIONS = ("<!channel", "<!here", "<!everyone")


@pytest.fixture
async def world(sqlite_url):
    async with running_world(sqlite_url) as world:
        flow(world).identities.clear()
        yield world


def flow(world):
    return world.services.state.flows[WELCOME]


async def card(world, nth: int = -1):
    """Wait for a card in the channel of approvals."""
    cards = world.slack.workspace.messages
    count = nth + 1 if nth >= 0 else 1
    await world.slack.until(lambda: len(cards("C0APPROVALS")) >= count)
    return cards("C0APPROVALS")[nth]


async def asked(world, text: str, by: str = OTTO):
    before = len(world.slack.workspace.messages("C0APPROVALS"))
    await world.ask(by, "/testusers", text)
    return await card(world, before)


async def click(world, user: str, message, button: str):
    """Click and return the answer."""
    before = len(world.slack.workspace.ephemerals(user))
    delivery = await world.slack.click(user, message, button)
    assert delivery.status == 200
    return await world.answer(user, after=before)


async def shows(world, message, words: str):
    await world.slack.until(lambda: words in message.all_text)


async def told(world, user: str, words: str):
    def found():
        return any(words in message.all_text for message in world.slack.workspace.dm(user))

    await world.slack.until(found)


async def test_a_request_is_approved_and_applied(world):
    flow(world).identities[:] = ["old"]
    message = await asked(world, "add welcome +15550100 for 2h because Friday’s demo")
    for words in ("Otto Operator", "+15550100", "Friday’s demo", "2 h", "1 → 2", "expires"):
        assert words in message.all_text
    assert "pplied" not in message.all_text
    assert message.buttons == ["Approve", "Deny", "Cancel"]
    answer = await click(world, ADA, message, "Approve")
    assert "You approved" in answer.all_text
    assert "The card shows the result" in answer.all_text
    await shows(world, message, "Applied")
    assert message.buttons == ["Undo"]
    assert "Updating" not in answer.all_text
    assert flow(world).identities == ["old", "+15550100"]
    assert len(world.slack.workspace.messages("C0APPROVALS")) == 1
    await told(world, OTTO, "approved by Ada Approver")


async def test_the_card_mentions_who_can_approve_and_nobody_else(world):
    message = await asked(world, "add welcome +1", by=ADA)
    text = json.dumps(message.blocks)
    assert "<!subteam^S0APPROVERS>" in text
    assert f"<@{ADAM}>" not in text
    assert f"<@{ADA}>" not in text
    assert f"<@{OTTO}>" not in text


async def test_an_outside_edit_survives_and_the_card_mentions_it(world):
    flow(world).identities[:] = ["old"]
    message = await asked(world, "add welcome +1")
    world.services.state.edit_flow(WELCOME, ["new"])
    await click(world, ADA, message, "Approve")
    await shows(world, message, "Applied")
    assert flow(world).identities == ["new", "+1"]
    assert "Changes by someone else in the meantime, which were kept" in message.all_text
    assert "added `new`; removed `old`" in message.all_text


async def test_deny_asks_a_reason_that_the_requester_gets(world):
    message = await asked(world, "add welcome +1")
    await world.slack.click(ADA, message, "Deny")
    view = await world.slack.until(lambda: world.slack.workspace.open_view(ADA))
    await world.slack.submit(ADA, view, {"Reason": "not <!channel> now"})
    await shows(world, message, "Denied")
    assert message.buttons == []
    await told(world, OTTO, "not &lt;!channel&gt; now")
    assert flow(world).history == []


async def test_a_denial_without_a_reason_is_not_taken(world):
    message = await asked(world, "add welcome +1")
    await world.slack.click(ADA, message, "Deny")
    view = await world.slack.until(lambda: world.slack.workspace.open_view(ADA))
    await world.slack.submit(ADA, view, {"Reason": " \n "})
    assert view.errors == {"testusers.reason": "Please give a reason."}
    await world.slack.submit(ADA, view, {"Reason": "no \ud83d"})
    assert "a character I can't store" in view.errors["testusers.reason"]
    assert "Approve or deny?" in message.all_text
    await world.slack.submit(ADA, view, {"Reason": "not now"})
    await shows(world, message, "not now")


async def test_only_the_requester_cancels(world):
    message = await asked(world, "add welcome +1")
    assert "Only Otto Operator" in (await click(world, ADA, message, "Cancel")).all_text
    await click(world, OTTO, message, "Cancel")
    await shows(world, message, "Cancelled")


async def test_nobody_approves_their_own_request(world):
    message = await asked(world, "add welcome +1", by=ADA)
    assert "own request" in (await click(world, ADA, message, "Approve")).all_text


async def test_a_stale_button_says_who_decided(world):
    message = await asked(world, "add welcome +1")
    stale = json.loads(json.dumps(message.blocks))
    await click(world, ADA, message, "Approve")
    await shows(world, message, "Applied")
    message.blocks[:] = stale
    answer = await click(world, ABEL, message, "Approve")
    assert "Ada Approver already approved this" in answer.all_text
    assert flow(world).history == [["+1"]]


async def test_a_failure_shows_the_reason_and_retry_applies(world):
    message = await asked(world, "add welcome +1")
    fault = world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="POST"))
    await click(world, ADA, message, "Approve")
    await shows(world, message, "Failed")
    assert "pplied" not in message.all_text
    assert message.buttons == ["Retry"]
    await told(world, OTTO, "*Failed: nothing was changed*")
    thread = world.slack.workspace.thread
    await world.slack.until(
        lambda: "nothing was changed*, approved by" in thread("C0APPROVALS", message.ts)[-1].text
    )
    fault.lift()
    await click(world, ABEL, message, "Retry")
    await shows(world, message, "Applied")
    assert flow(world).identities == ["+1"]


async def test_undo_is_a_request_of_its_own(world):
    message = await asked(world, "add welcome +1")
    await click(world, ADA, message, "Approve")
    await shows(world, message, "Applied")
    await click(world, OTTO, message, "Undo")
    inverse = await card(world, 1)
    assert "remove *1 test user* from *welcome*" in inverse.all_text
    assert flow(world).identities == ["+1"]
    await shows(world, message, "*Undo requested*")
    await click(world, ADA, inverse, "Approve")
    await shows(world, inverse, "Applied")
    await shows(world, message, "*Undone*")
    assert flow(world).identities == []


async def test_change_is_undone_from_the_history_where_its_channel_is_gone(sqlite_url):
    async with running_world(sqlite_url) as world:
        await click(world, ADA, await asked(world, "add welcome +1"), "Approve")
        await shows(world, await card(world), "Applied")
    async with running_world(sqlite_url, approvals_channel="C0ALERTS") as world:
        flow(world).identities[:] = ["+1"]
        assert (await world.ask(VERA, "/testusers", "history welcome")).buttons == []
        history = await world.ask(OTTO, "/testusers", "history welcome")
        assert history.buttons == ["Undo"]
        assert "Sent to <#C0ALERTS> " in (await click(world, OTTO, history, "Undo")).all_text
        cards = world.slack.workspace.messages
        (inverse,) = await world.slack.until(
            lambda: [item for item in cards("C0ALERTS") if "Approve" in item.buttons]
        )
        await click(world, ADA, inverse, "Approve")
        await shows(world, inverse, "Applied")
        assert flow(world).identities == []
        assert (await world.ask(OTTO, "/testusers", "history welcome")).buttons == ["Undo"]


async def test_now_posts_the_card_already_applied_and_marked(world):
    message = await asked(world, "add welcome +1 now because the demo is on", by=ADAM)
    assert "Applied without approval" in message.text
    assert message.versions == []
    refused = await world.ask(ADA, "/testusers", "add welcome +2 now because I want")
    assert "You need the admin role to apply without approval" in refused.all_text
    assert flow(world).identities == ["+1"]


async def test_a_grant_ends_on_time_and_it_is_told(world):
    message = await asked(world, "add welcome +1 for 1s")
    await click(world, ADA, message, "Approve")
    await shows(world, message, "Access ended")
    assert flow(world).identities == []
    await told(world, OTTO, "has ended for `+1`")


async def test_what_people_type_mentions_and_formats_nothing(world):
    evil = "<!channel> <@U0ADMIN> *x* \u202eabc 👩‍🚀 שלום"
    sent = evil.replace("<", "&lt;").replace(">", "&gt;")
    await world.slack.command(
        OTTO, "C0GENERAL", "/testusers", f"add welcome “{sent}” because {sent}", as_typed=False
    )
    message = await card(world)
    for text in (message.text, json.dumps(message.blocks, ensure_ascii=False)):
        assert not any(mention in text for mention in MENTIONS)
    await click(world, ADA, message, "Approve")
    await shows(world, message, "Applied")
    assert flow(world).identities == [evil]
    await told(world, OTTO, "&lt;!channel&gt;")


async def test_the_form_keeps_what_was_typed_until_it_is_right(world):
    await world.slack.command(OTTO, "C0GENERAL", "/testusers", "")
    view = await world.slack.until(lambda: world.slack.workspace.open_view(OTTO))
    await world.slack.suggest(OTTO, view, "Flow", "wel")
    wrong = {"Flow": "welcome", "Identities": "+1\n+1", "For": "never"}
    await world.slack.submit(OTTO, view, wrong)
    assert {"testusers.identities", "testusers.for"} == set(view.errors)
    right = {"Flow": "welcome", "Identities": '"+1 555"\n "a,b" ', "For": "2h", "Reason": "demo"}
    await world.slack.submit(OTTO, view, right)
    message = await card(world)
    for words in ("`+1 555`", "`a,b`", "2 h", "demo", "add *2 test users*"):
        assert words in message.all_text
    answer = (await world.answer(OTTO)).all_text
    assert "Sent to" in answer
    assert "You'll get a direct message when someone decides." in answer


async def fill_in(world, **inputs):
    """Fill in the form and return the answer."""
    before = len(world.slack.workspace.ephemerals(OTTO))
    await world.slack.command(OTTO, "C0GENERAL", "/testusers", "")
    view = await world.slack.until(lambda: world.slack.workspace.open_view(OTTO))
    await world.slack.suggest(OTTO, view, "Flow", "wel")
    await world.slack.submit(OTTO, view, inputs)
    return await world.answer(OTTO, after=before)


async def test_what_a_form_lost_is_given_back_to_be_typed_just_as_it_was(world):
    world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="GET"))
    whole = "x" * 290
    identities = f'"-now"\n"*bold* :x: <b>"\nx:{whole}1\nx:{whole}2\nx:{whole}3\nx:{whole}4'
    answer = await fill_in(world, Flow="welcome", Identities=identities)
    shown = answer.blocks[-1]["text"]["text"]
    many = " ".join(f"x:{whole}{n}" for n in (1, 2, 3, 4))
    assert shown == f'`/testusers add welcome "-now" "*bold* :x: &lt;b&gt;" {many}`'
    assert "To try again, send:" in answer.all_text


async def test_what_a_form_lost_and_cannot_be_typed_is_said_to_be(world):
    world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="GET"))
    answer = await fill_in(world, Flow="welcome", Identities='"a`b"')
    assert "Please fill it in again" in answer.all_text
    assert "To try again" not in answer.all_text


async def test_a_form_is_given_back_to_whom_slack_does_not_know(world):
    world.slack.workspace.faults.error("users.info", "internal_error", times=None)
    workspace = world.slack.workspace
    view = workspace.open(OTTO, change_form(f"{world.slack.address}/response/gone"))
    chosen = {"text": {"type": "plain_text", "text": "welcome"}, "value": WELCOME}
    await world.slack.submit(OTTO, view, {"Flow": chosen, "Identities": "+1"})
    (answer,) = await world.slack.until(lambda: workspace.dm(OTTO))
    assert "couldn't verify who you are" in answer.all_text
    assert f"`/testusers add {WELCOME} +1`" in answer.all_text


async def test_a_pasted_sid_is_offered_and_a_viewer_gets_no_form(world):
    await world.slack.command(OTTO, "C0GENERAL", "/testusers", "")
    view = await world.slack.until(lambda: world.slack.workspace.open_view(OTTO))
    pasted = "FW" + "ab" * 16
    offered = await world.slack.suggest(OTTO, view, "Flow", pasted)
    assert [item["value"] for item in offered] == [pasted]
    answer = await world.ask(VERA, "/testusers")
    assert "You need the operator role" in answer.all_text


async def test_a_viewer_sees_the_last_four_characters(world):
    message = await asked(world, "add welcome +15550100 because of the demo")
    await click(world, ADA, message, "Approve")
    await shows(world, message, "Applied")
    await asked(world, "remove welcome +15550100")
    for words in ("list welcome", "history welcome", "requests"):
        masked = (await world.ask(VERA, "/testusers", words)).all_text
        assert "…0100" in masked
        assert "+1555" not in masked
        assert "+15550100" in (await world.ask(OTTO, "/testusers", words)).all_text


async def test_requests_have_buttons_for_those_who_may(world):
    await asked(world, "add welcome +1")
    assert (await world.ask(VERA, "/testusers", "requests")).buttons == []
    assert (await world.ask(OTTO, "/testusers", "requests")).buttons == ["Cancel"]
    listed = await world.ask(ADA, "/testusers", "requests")
    assert listed.buttons == ["Approve", "Deny"]
    await world.slack.click(ADA, listed, "Approve")
    await shows(world, await card(world), "Applied")
    await shows(world, listed, "Nothing is waiting for approval")
    assert len(world.slack.workspace.messages("C0APPROVALS")) == 1


async def test_a_deleted_card_is_posted_again(world):
    message = await asked(world, "add welcome +1")
    world.slack.workspace.faults.error("chat.update", "message_not_found", times=1)
    await click(world, ADA, message, "Approve")
    again = await card(world, 1)
    assert "Applied" in again.all_text or "Updating" in again.all_text


async def test_slack_429_delays_the_card_and_loses_nothing(world):
    world.slack.workspace.faults.ratelimit("chat.postMessage", retry_after=1)
    message = await asked(world, "add welcome +1")
    assert "Approve or deny?" in message.all_text
    posts = world.slack.workspace.calls_of("chat.postMessage")
    assert [post.status for post in posts] == [429, 200]


async def test_the_longest_list_and_request_stay_within_slacks_limits(world):
    flow(world).identities[:] = [f"{n:05}{'&' * 295}" for n in range(400)]
    listed = await world.ask(OTTO, "/testusers", "list welcome")
    assert "*400 test users*" in listed.all_text
    many = " ".join(f"x:{n:05}{'x' * 250}" for n in range(20))
    message = await asked(world, f"add welcome {many} because {'&' * 500}")
    await click(world, ADA, message, "Approve")
    await shows(world, message, "Applied")
    assert len(flow(world).identities) == 420


async def test_a_request_is_remembered_once_and_expires(sqlite_url):
    times = {"request_hours": "0.0015", "remind_hours": "0.0003"}
    async with running_world(sqlite_url, **times) as world:
        message = await asked(world, "add welcome +1")
        await shows(world, message, "Expired")
        assert message.buttons == []
        (reminder,) = world.slack.workspace.thread("C0APPROVALS", message.ts)[-1:]
        await shows(world, reminder, "because it expired: Otto Operator asked to add")
        assert "Still waiting for approval" in reminder.versions[0][0]
        await told(world, OTTO, "*Expired* because nobody approved it in time")


async def test_a_quorum_counts_in_the_card(sqlite_url):
    async with running_world(sqlite_url, approvals_needed="2") as world:
        message = await asked(world, "add welcome +1")
        await click(world, ADA, message, "Approve")
        await shows(world, message, "1 of 2 approvals* (Ada Approver)")
        assert "already approved this" in (await click(world, ADA, message, "Approve")).all_text
        await click(world, ABEL, message, "Approve")
        await shows(world, message, "approved by Ada Approver, Abel Approver")


async def test_long_pages_are_turned_in_place(world):
    flow(world).identities[:] = [f"+{n:03}" for n in range(45)]
    listed = await world.ask(OTTO, "/testusers", "list welcome")
    assert "Page 1 of 3" in listed.all_text
    await world.slack.click(OTTO, listed, "Next")
    await shows(world, listed, "Page 2 of 3")
    assert "+020" in listed.all_text
    assert listed.buttons == ["Change…", "Previous", "Next"]
    for n in range(6):
        await asked(world, f"add welcome +9{n}")
    for command, words in (("requests", "+95"), ("history welcome", "+90")):
        page = await world.ask(OTTO, "/testusers", command)
        assert words not in page.all_text
        await world.slack.click(OTTO, page, "Next")
        await shows(world, page, words)


async def test_a_page_that_is_no_more_is_the_last_one_there_is(world):
    flow(world).identities[:] = [f"+{n:03}" for n in range(25)]
    for n in range(6):
        await asked(world, f"add welcome +9{n}")
    for command in ("list welcome", "history welcome", "requests"):
        page = await world.ask(OTTO, "/testusers", command)
        page.blocks[-1]["elements"][-1]["value"] = FlowPage("welcome", 8).value()
        await world.slack.click(OTTO, page, "Next")
        await shows(world, page, "Page 2 of 2")
        assert page.buttons[-1] == "Previous"


async def test_what_is_not_understood_is_said_with_what_would_be(world):
    for text in ("add other +1", "list other", "history FW123", "add welcome"):
        assert "welcome" in (await world.ask(OTTO, "/testusers", text)).all_text
    assert world.slack.workspace.messages("C0APPROVALS") == []


async def test_without_its_settings_the_command_says_which_it_needs(sqlite_url):
    unset = {"flow_base_url": "", "flow_account_sid": "", "flow_auth_token": ""}
    async with running_world(sqlite_url, **unset, flow_aliases="{}") as world:
        for text in ("", "list welcome", "history welcome", "add welcome +1", f"list {WELCOME}"):
            answer = (await world.ask(OTTO, "/testusers", text)).all_text
            assert "I don't know a flow called" not in answer
            for name in unset:
                assert name.upper() in answer
        assert world.slack.workspace.open_view(OTTO) is None
        waiting = await world.ask(OTTO, "/testusers", "requests")
        assert "Nothing is waiting" in waiting.all_text


async def test_the_help_names_the_flows_and_an_example(world):
    said = (await world.ask(VERA, "/testusers", "help")).all_text
    assert "Flows: survey, welcome (or paste a SID)." in said
    assert "Example: `/testusers add" in said
    assert "survey, welcome" not in (await world.ask(NORA, "/testusers", "help")).all_text


async def test_the_audit_says_who_by_name(world):
    await world.ask(OTTO, "/testusers", "add welcome +1 because x")
    said = (await world.ask(ADAM, "/gatehouse", "audit 5")).all_text
    assert "*Otto Operator* asked" in said


@pytest.mark.parametrize("clicked", [0, 1])
async def test_second_card_of_a_lost_answer_becomes_true_when_it_is_clicked(
    world, monkeypatch, clicked
):
    """Slack promises no more than to take `client_msg_id`: here it does not mind it."""
    monkeypatch.setattr("sandbox.slack.chat.same_client_message", lambda *_: None)
    world.slack.workspace.faults.cut("chat.postMessage")
    await world.ask(OTTO, "/testusers", "add welcome +15550001111")
    cards = world.slack.workspace.messages
    await world.slack.until(lambda: len(cards("C0APPROVALS")) == 2)
    await world.slack.until(lambda: world.slack.workspace.calls_of("chat.update"))
    await click(world, ADA, cards("C0APPROVALS")[clicked], "Approve")
    await shows(world, cards("C0APPROVALS")[1], "Applied")
    if clicked == 0:
        await shows(world, cards("C0APPROVALS")[0], "Applied")
    assert flow(world).identities == ["+15550001111"]
    assert len(cards("C0APPROVALS")) == 2
