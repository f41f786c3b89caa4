"""Tests how the flow service's responses affect an approved change."""

import unicodedata
from datetime import timedelta
from functools import partial

import pytest

from sandbox.services import flow as flow_service
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.serve import json_answer
from tests.support.world import ADA, ADAM, OTTO


def fault(world, kind: FaultKind, method: str, **more) -> Fault:
    return world.services.state.faults.add(Fault(kind, "flow", method=method, **more))


def old_list(world, *identities: str, times: int | None = None) -> Fault:
    return fault(world, FaultKind.OTHER_LIST, "GET", identities=identities, times=times)


def posts(world) -> list[list[str]]:
    return world.flow.history


@pytest.mark.parametrize("later", [[], ["add welcome +3", "remove welcome +3"]])
async def test_list_from_before_a_confirmed_change_is_never_written_back(world, later):
    world.flow.identities[:] = ["+1", "+9"]
    for text in ["remove welcome +1", *later]:
        await world.applied(text)
    written = [*posts(world)]
    message = await world.asked("add welcome +2")
    stale = old_list(world, "+1", "+9")
    await world.approve(message, "Failed: nothing was changed")
    assert posts(world) == written
    assert "doesn't show a change that I made less than a minute ago" in message.all_text
    assert message.buttons == ["Retry"]
    stale.lift()
    await world.click(ADA, message, "Retry")
    await world.shows(message, "Applied")
    assert posts(world) == [*written, ["+9", "+2"]]


async def test_list_from_before_a_change_is_not_taken_for_one_that_reverts_it(world):
    world.flow.identities[:] = ["+9"]
    await world.applied("add welcome +1")
    message = await world.asked("remove welcome +1")
    post = fault(world, FaultKind.STATUS, "POST", times=1)
    await world.slack.click(ADA, message, "Approve")
    await world.services.state.until(lambda: post.struck)
    stale = old_list(world, "+9")
    await world.until(lambda: stale.struck >= 2)
    assert "Applied" not in message.all_text
    stale.lift()
    await world.shows(message, "*Applied*")
    assert world.flow.identities == ["+9"]


async def test_list_from_before_a_confirmed_change_is_read_again(world):
    await world.applied("add welcome +1")
    message = await world.asked("add welcome +2")
    old_list(world, times=1)
    await world.approve(message, "Applied")
    assert posts(world)[1:] == [["+1", "+2"]]


async def test_edit_that_reverts_a_change_is_believed_after_a_minute(world):
    await world.applied("add welcome +1")
    world.flow.identities.clear()
    await world.later(timedelta(seconds=61))
    await world.applied("add welcome +2")
    assert world.flow.identities == ["+2"]


@pytest.mark.parametrize("body", [{}, {"test_users": None}])
async def test_answer_without_a_list_is_no_empty_list(world, monkeypatch, body):
    world.flow.identities[:] = ["+1", "+2"]
    message = await world.asked("add welcome +3")
    with monkeypatch.context() as patch:
        patch.setattr(
            flow_service, "_shown", lambda _, flow: json_answer({"sid": flow.sid, **body})
        )
        await world.approve(message, "Failed: nothing was changed")
    assert posts(world) == []
    assert message.buttons == ["Retry"]
    await world.click(ADA, message, "Retry")
    await world.shows(message, "Applied")
    assert posts(world) == [["+1", "+2", "+3"]]


async def test_answer_with_the_address_of_another_flow_is_an_error(world, monkeypatch):
    url = f"https://flows.example/v2/Flows/{'FW' + '9' * 32}/TestUsers"
    monkeypatch.setattr(
        flow_service, "_shown", lambda _, flow: json_answer({"test_users": ["+1"], "url": url})
    )
    answer = await world.ask(OTTO, "/testusers", "list welcome")
    assert "for another flow" in answer.all_text
    assert "+1" not in answer.all_text


async def test_new_spelling_of_the_service_is_the_identity(world, monkeypatch):
    real = flow_service._store
    monkeypatch.setattr(
        flow_service,
        "_store",
        lambda request, state, sid, sent: real(request, state, sid, [s.lower() for s in sent]),
    )
    message = await world.applied("add welcome chat:Jane@Example.com for 2h")
    assert "The service stores this as `chat:jane@example.com`" in message.all_text
    assert posts(world) == [["chat:Jane@Example.com".lower()]]
    listed = (await world.ask(OTTO, "/testusers", "list welcome")).all_text
    assert "approved by Ada Approver" in listed
    again = await world.ask(OTTO, "/testusers", "add welcome CHAT:jane@example.com")
    assert "keep `chat:jane@example.com` on *welcome*" in again.all_text
    await world.click(OTTO, message, "Undo")
    undo = await world.card(2)
    await world.approve(undo, "Applied")
    assert world.flow.identities == []


def respelling_on_the_list(monkeypatch) -> None:
    """Make the flow service answer with what was sent, and store it in lower case."""

    def store(_request, state, sid, sent):
        state.flows[sid].identities = [one.lower() for one in sent]
        return json_answer({"sid": sid, "test_users": sent})

    monkeypatch.setattr(flow_service, "_store", store)


async def test_new_spelling_that_only_the_list_shows_is_the_identity(world, monkeypatch):
    respelling_on_the_list(monkeypatch)
    world.flow.identities[:] = ["Kim@example.com"]
    waiting = await world.asked("remove welcome Kim@example.com")
    await world.applied("add welcome Jane@Example.com for 2h")
    listed = (await world.ask(OTTO, "/testusers", "list welcome")).all_text
    assert "`jane@example.com` · until" in listed
    await world.approve(waiting, "Applied")
    assert "Someone else" not in waiting.all_text


async def test_list_without_somebody_whose_removal_is_in_doubt_is_shown(world, monkeypatch):
    respelling_on_the_list(monkeypatch)
    await world.applied("add welcome Jane@Example.com")
    message = await world.asked("remove welcome Jane@Example.com")
    post = fault(world, FaultKind.HOLD, "POST", after_work=True, times=1)
    await world.slack.click(ADA, message, "Approve")
    await world.services.state.until(lambda: post.struck)
    listed = (await world.ask(OTTO, "/testusers", "list welcome")).all_text
    assert "no test users" in listed
    post.lift()


def storing(monkeypatch, form) -> None:
    """Make the flow service apply `form` to each identity before storing it."""
    real = flow_service._store
    monkeypatch.setattr(
        flow_service,
        "_store",
        lambda request, state, sid, sent: real(request, state, sid, [form(one) for one in sent]),
    )


def with_mobile_prefix(identity: str) -> str:
    """Insert a 1 after Mexico's country code, as some vendors do."""
    is_without = identity.startswith("whatsapp:+52") and not identity.startswith("whatsapp:+521")
    return identity.replace("+52", "+521") if is_without else identity


async def test_another_form_of_the_service_is_the_identity_and_ends(world, monkeypatch):
    storing(monkeypatch, with_mobile_prefix)
    world.flow.identities[:] = ["+1"]
    message = await world.applied("add welcome whatsapp:+525512345678 for 20s")
    assert "The service stores this as `whatsapp:+5215512345678`" in message.all_text
    assert posts(world) == [["+1", "whatsapp:+5215512345678"]]
    await world.until(lambda: world.flow.identities == ["+1"])
    assert len(posts(world)) == 2


async def test_a_list_with_unknown_entries_is_never_sent_again(world, monkeypatch):
    storing(monkeypatch, with_mobile_prefix)
    message = await world.asked("add welcome whatsapp:+525512345678 whatsapp:+525512345679")
    await world.approve(message, "Failed: the list has unexpected entries")
    assert "Entries that I don't recognize: 2 of 2." in message.all_text
    assert "nothing was changed" not in message.all_text
    await world.later(timedelta(minutes=5))
    assert posts(world) == [["whatsapp:+5215512345678", "whatsapp:+5215512345679"]]
    assert message.buttons == ["Retry"]


async def test_an_unknown_entry_fails_only_the_requests_it_may_belong_to(world, monkeypatch):
    storing(monkeypatch, lambda one: "user-1" if one == "chat:ada" else one)
    await world.applied("add welcome +1 chat:ada")
    assert world.flow.identities == ["+1", "user-1"]
    storing(monkeypatch, lambda one: {"chat:b": "user-2", "chat:c": "user-3"}.get(one, one))
    message = await world.asked("add welcome +2 chat:b chat:c")
    await world.approve(message, "Failed: the list has unexpected entries")
    assert len(posts(world)) == 2
    assert "*On the list now:* `+2`" in message.all_text
    assert message.buttons == ["Retry", "Undo"]


@pytest.mark.parametrize("respell", [str.lower, partial(unicodedata.normalize, "NFD")])
async def test_grant_in_a_new_spelling_ends_on_time(world, monkeypatch, respell):
    real = flow_service._store
    monkeypatch.setattr(
        flow_service,
        "_store",
        lambda request, state, sid, sent: real(request, state, sid, [*map(respell, sent)]),
    )
    message = await world.applied("add welcome Chat:ÉVA for 2h")
    assert posts(world) == [[respell("Chat:ÉVA")]]
    await world.later(timedelta(hours=2))
    await world.shows(message, "Access ended")
    assert world.flow.identities == []


async def test_grant_of_somebody_who_is_gone_in_two_reads_ends(world):
    message = await world.applied("add welcome +7 for 30d")
    await world.applied("add welcome +1")
    world.flow.identities.remove("+7")
    await world.applied("add welcome +2")
    assert "Access ended" not in message.all_text
    await world.applied("add welcome +3")
    await world.shows(message, "Access ended")
    assert "already removed" in message.all_text
    world.flow.identities.append("+7")
    listed = (await world.ask(OTTO, "/testusers", "list welcome +7")).all_text
    assert "Otto" not in listed
    audit = (await world.ask(ADAM, "/gatehouse", "audit 20")).all_text
    assert "ended" in audit


async def test_a_refused_credential_fails_changes_until_it_is_replaced(world):
    refusal = fault(world, FaultKind.STATUS, "POST", status=401, message="Authenticate")
    message = await world.asked("add welcome +1")
    await world.approve(message, "Failed")
    assert "FLOW_AUTH_TOKEN" not in message.all_text
    assert refusal.struck == 1
    await world.told(OTTO, "Ask whoever runs Gatehouse to run gatehouse check.")
    refusal.lift()
    await world.click(ADA, message, "Retry")
    await world.shows(message, "Applied")


async def test_change_that_the_service_rejects_is_sent_once(world):
    refusal = fault(world, FaultKind.STATUS, "POST", status=400, message="not a phone number")
    message = await world.asked("add welcome +1")
    await world.approve(message, "The response says: “not a phone number”.")
    assert "Failed: nothing was changed" in message.all_text
    assert refusal.struck == 1


@pytest.mark.parametrize("status", [404, 409, 423, 425])
async def test_a_refusal_that_may_pass_is_tried_three_times(world, status):
    refusal = fault(world, FaultKind.STATUS, "POST", status=status)
    message = await world.asked("add welcome +1")
    await world.approve(message, "Failed: nothing was changed")
    assert refusal.struck == 3


async def test_failure_says_one_thing_and_is_corrected_by_a_retry(world):
    broken = fault(world, FaultKind.STATUS, "POST", status=503)
    message = await world.asked("add welcome +1")
    await world.approve(message, "I'm still trying.")
    assert "few minutes" not in message.all_text
    await world.slack.until(lambda: "Retry" in message.buttons)
    history = await world.ask(OTTO, "/testusers", "history welcome")
    for shown in (message, history):
        assert "Approved by Ada Approver. The flow service is having problems" in shown.all_text
    await world.told(OTTO, "*Failed: nothing was changed*. Approved by Ada Approver. It was your")
    for text in (message.all_text, world.slack.workspace.dm(OTTO)[-1].all_text):
        assert "few minutes" not in text
        assert "after all" not in text
    assert broken.struck == 3
    assert "An approver can press Retry on the card." in world.slack.workspace.dm(OTTO)[-1].all_text
    broken.lift()
    await world.click(ADA, message, "Retry")
    await world.shows(message, "*Applied*")


async def test_nothing_else_is_sent_while_a_post_is_in_doubt(world):
    lost = fault(world, FaultKind.CUT, "POST", after_work=False, times=1)
    first = await world.asked("add welcome +1")
    second = await world.asked("add welcome +2")
    await world.approve(first, "I'm still trying.")
    await world.approve(second, "Updating the list")
    await world.later(timedelta(seconds=40))
    reads = len(world.services.state.calls)
    await world.slack.until(lambda: len(world.services.state.calls) > reads + 1)
    assert (lost.struck, posts(world)) == (1, [])
    await world.later(timedelta(seconds=70))
    await world.shows(first, "Applied")
    await world.shows(second, "Applied")
    assert posts(world) == [["+1", "+2"]]


async def test_post_that_arrives_late_is_found_and_undoes_nothing(world, monkeypatch):
    lost = fault(world, FaultKind.CUT, "POST", after_work=False, times=1)
    first = await world.asked("add welcome +1 for 1h")
    second = await world.asked("add welcome +2")
    await world.approve(first, "I'm still trying.")
    await world.approve(second, "Updating the list")
    assert (lost.struck, posts(world)) == (1, [])
    world.flow.identities[:] = ["+1"]
    await world.shows(first, "Applied")
    await world.shows(second, "Applied")
    assert posts(world) == [["+1", "+2"]]


async def test_whom_a_post_in_doubt_adds_is_not_called_an_outsider(world):
    world.flow.identities[:] = ["+9"]
    fault(world, FaultKind.CUT, "POST", after_work=False, times=1)
    card = await world.asked("add welcome +1 +2")
    await world.approve(card, "I'm still trying.")
    world.flow.identities[:] = ["+1", "+9"]
    listed = await world.ask(OTTO, "/testusers", "list welcome")
    assert "• `+1` · being added by Gatehouse" in listed.text
    assert "• `+9` · added outside Gatehouse" in listed.text
    review = await world.ask(OTTO, "/testusers", "review welcome")
    assert "*1 test user*" in review.text
    assert "`+9`" in review.text
    await world.later(timedelta(seconds=70))
    await world.shows(card, "Applied")
    assert posts(world) == [["+1", "+9", "+2"]]


async def test_every_end_of_a_request_is_announced(world):
    await world.applied("add welcome +1 for 5h")
    await world.applied("add welcome +2 for 9h")
    both = await world.applied("remove welcome +1 +2")
    await world.click(OTTO, both, "Undo")
    undo = await world.card(3)
    await world.approve(undo, "Applied")
    for hours, identity in ((4, "+1"), (8, "+2")):
        await world.later(timedelta(hours=hours, minutes=1))
        await world.told(OTTO, f"for `{identity}`.")
    announced = [
        item
        for item in world.slack.workspace.dm(OTTO)
        if "Access to *welcome* ends" in item.all_text
    ]
    assert len(announced) == 2


@pytest.mark.parametrize("others", [[], ["+9"]])
async def test_a_lost_answer_and_unknown_entries_are_never_followed_by_another_post(
    world, monkeypatch, others
):
    storing(monkeypatch, with_mobile_prefix)
    world.flow.identities[:] = others
    lost = fault(world, FaultKind.CUT, "POST", after_work=True, times=1)
    message = await world.asked("add welcome whatsapp:+525512345678 for 20s")
    await world.click(ADA, message, "Approve")
    await world.until(lambda: lost.struck)
    await world.later(timedelta(seconds=70))
    await world.shows(message, "Failed: the list has unexpected entries", "recognize: 1 of ")
    await world.later(timedelta(minutes=5))
    assert posts(world) == [[*others, "whatsapp:+5215512345678"]]
    assert message.buttons == ["Retry"]


async def test_an_outside_edit_after_a_lost_post_is_not_taken_for_its_spelling(world):
    lost = fault(world, FaultKind.CUT, "POST", after_work=False, times=1)
    message = await world.asked("add welcome +1 for 1h")
    await world.click(ADA, message, "Approve")
    await world.until(lambda: lost.struck)
    world.flow.identities[:] = ["+9"]
    await world.later(timedelta(seconds=70))
    await world.shows(message, "Failed: the list has unexpected entries")
    await world.click(ADA, message, "Retry")
    await world.shows(message, "*Applied*")
    assert world.flow.identities == ["+9", "+1"]
