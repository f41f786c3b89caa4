"""Direct messages and forms about requests say what became of them, and fit."""

from dataclasses import replace

import pytest

from bot.approvals.rules import State
from bot.slack.messages.ids import TESTUSERS_EXTEND
from bot.testusers.messages import forms, notes
from bot.testusers.messages.card import card
from bot.testusers.messages.phrases import in_full
from bot.testusers.parse.form import Prefilled
from bot.testusers.rules.changes import Change
from bot.testusers.rules.requests import Progress, Request, RequestedChange
from sandbox.slack.validation import check_view
from tests.support.requests import ADA, FLOW, NOW, OTTO, texts_of


def test_a_failure_is_shown_and_told_with_the_services_reason() -> None:
    reason = "The flow service refused: <no> such number."
    requested, progress = RequestedChange(Change(("+1",)), (), 0), Progress(failure=reason)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.FAILED, progress, ADA, NOW)
    outcome = notes.outcome(request, {"event": "failed", "reason": reason})
    assert "approved by Ada *Approver*".replace("*A", "\u2060*A") in outcome.text
    for message in (card(request, ("U0ADA",), 1), outcome):
        assert "refused: &lt;no&gt; such number." in "\n".join(texts_of(message))


@pytest.mark.parametrize(
    ("identities", "duration", "shown"),
    [
        (["+15550100"], 7200, "2h"),
        (["because"], None, ""),
    ],
)
def test_who_asked_is_told_of_the_end_and_can_ask_again(identities, duration, shown) -> None:
    requested = RequestedChange(Change(tuple(identities)), (), 0, duration_seconds=duration)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.APPLIED)
    message = notes.outcome(request, {"event": "ended", "identities": identities})
    assert message.text.startswith(f"Access to *welcome* has ended: {in_full(identities[0])}")
    (again,) = [block for block in message.slack_blocks if block["type"] == "actions"]
    (button,) = again["elements"]
    assert (button["text"]["text"], button["action_id"]) == ("Give access again", TESTUSERS_EXTEND)
    assert Prefilled.of(button["value"]) == Prefilled(FLOW.sid, "add", tuple(identities), shown)


@pytest.mark.parametrize(
    ("change", "duration", "filled_in"),
    [
        (Change(("+1", "+2")), 7200, Prefilled(FLOW.sid, "add", ("+1", "+2"), "2h")),
        (Change((), ("+1",)), None, Prefilled(FLOW.sid, "remove", ("+1",))),
        (Change(("+1",), ("+2",)), None, None),
        (Change(tuple(f"+{number:09}" for number in range(300))), None, None),
    ],
    ids=["add", "remove", "both", "too long"],
)
def test_who_was_not_approved_can_ask_again(change, duration, filled_in) -> None:
    requested = RequestedChange(change, (), 0, duration_seconds=duration)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.DENIED, Progress(), ADA, NOW)
    message = notes.outcome(request, {"event": "denied"})
    rows = [block["elements"] for block in message.slack_blocks if block["type"] == "actions"]
    found = [(item["text"]["text"], Prefilled.of(item["value"])) for row in rows for item in row]
    assert found == ([("Ask again", filled_in)] if filled_in else [])
    undo = replace(request, requested=replace(requested, undo_of="0"))
    assert "Ask again" not in texts_of(notes.outcome(undo, {"event": "denied"}))


def test_the_modals_fit() -> None:
    requested = RequestedChange(Change(("+1",)), (), 0)
    change = forms.change_form("https://hooks.example/" + "x" * 200)
    check_view(change)
    labels = [block["label"]["text"] for block in change["blocks"] if "label" in block]
    assert labels == ["Flow", "Change", "Identities", "For", "From", "Until", "Reason"]
    assert change["blocks"][1]["element"]["initial_option"]["value"] == "add"
    check_view(
        forms.denial_form(Request("1", FLOW, OTTO, requested, NOW, NOW), "https://x.example")
    )
