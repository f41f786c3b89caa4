"""Lists, history and what is pending show what each person may see, within Slack's limits."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.approvals.rules import State
from bot.testusers.messages import notes, pages
from bot.testusers.messages.pages import OpenRow, Page, Reader
from bot.testusers.rules.changes import Change
from bot.testusers.rules.requests import (
    Grant,
    Progress,
    Request,
    RequestedChange,
)
from tests.support.requests import (
    ADA,
    FLOW,
    NOW,
    OTTO,
    anything,
    everybody,
    hardest,
    hold,
    requests,
    shown_in_full,
)


@settings(max_examples=30, deadline=None)
@given(st.lists(requests(), max_size=5))
def test_every_page_and_note_fits(some) -> None:
    identities = [item for request in some for item in everybody(request)]
    for sees in (True, False):
        reader = Reader(sees, sees)
        history = pages.history(FLOW, Page(some, 9, 2), (), reader)
        rows = [OpenRow(item, decides=True, cancels=True) for item in some]
        pending = pages.open_requests(Page(rows, len(rows), 2), (), "C0A", reader)
        for message in (history, pending):
            hold(message)
            assert FLOW.name in message.text or not some
            assert sees or not shown_in_full(identities, message)
    for one in some:
        hold(notes.still_waiting(one))
        for event in ("applied", "denied", "expired", "failed", "ended"):
            payload = {"event": event, "reason": "<!here>", "identities": ["<!here>"] * 9}
            outcome = notes.outcome(one, payload, "https://slack.example/archives/C0A/p1")
            hold(outcome)
            assert outcome.text.endswith("/p1|View the card>")
            assert FLOW.name in outcome.text


@settings(max_examples=30, deadline=None)
@given(st.lists(anything | hardest, max_size=20, unique=True))
def test_every_list_fits(identities) -> None:
    grants = {
        identity: Grant(identity, "1", OTTO, (ADA,) * 3, NOW, NOW + timedelta(hours=1))
        for identity in identities
    }
    for known in (grants, {}):
        page = Page(identities, len(identities), 3)
        for sees, asks in ((True, True), (True, False), (False, False)):
            message = pages.listing(FLOW, page, known, Reader(sees, asks))
            hold(message)
            assert FLOW.name in message.text
            assert sees or not shown_in_full(identities, message)


def test_a_viewer_finds_no_identity_in_a_reason_either() -> None:
    requested = RequestedChange(
        Change(("+15550100", "b"), ("ada",)), (), 0, reason="+15550100 is a bad Ada"
    )
    progress = Progress(denial_reason="not for +15550100")
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.DENIED, progress, ADA, NOW)
    waiting = Request("2", FLOW, OTTO, requested, NOW, NOW)
    shown = [
        pages.history(FLOW, Page([request], 1), (), Reader(sees)).text
        + pages.open_requests(
            Page([OpenRow(waiting, False, False)], 1), (), "C0A", Reader(sees)
        ).text
        for sees in (True, False)
    ]
    assert shown[0].count("+15550100 is a bad Ada") == 2
    assert "not for +15550100" in shown[0]
    assert shown[1].count("…0100 is a bad …") == 2
    assert "not for …0100" in shown[1]
    assert "5550" not in shown[1]


def test_list_offers_no_decision_on_what_it_shows_in_part() -> None:
    for people, buttons in ((("+1", "+2"), 3), (tuple(f"{n:0300}" for n in range(9)), 1)):
        request = Request("1", FLOW, OTTO, RequestedChange(Change(people), (), 0), NOW, NOW)
        page = Page([OpenRow(request, decides=True, cancels=True)], 1)
        message = pages.open_requests(page, (), "C0A", Reader(True))
        assert len(message.slack_blocks[-1]["elements"]) == buttons
        outcome = "This change is too long to show here. Decide on its card in <#C0A>."
        assert (outcome in message.text) is (buttons == 1)
        viewed = Page([OpenRow(request, decides=False, cancels=False)], 1)
        message = pages.open_requests(viewed, (), "C0A", Reader(False))
        assert "Decide on" not in message.text


@pytest.mark.parametrize(
    ("duration", "hours", "words"),
    [
        (7200, {}, "add `+1`, `+2` to *welcome* for 2 h"),
        (None, {"+1": 1, "+2": 1}, "add `+1`, `+2` to *welcome* until <!date^"),
        (None, {}, "add `+1`, `+2` to *welcome* with no end date ·"),
        (None, {"+1": 1}, "; add `+2` to *welcome* with no end date ·"),
        (None, {"+1": 1, "+2": 2}, "; add `+2` to *welcome* until <!date^"),
    ],
)
def test_everybody_decides_from_the_list_with_the_ends(duration, hours, words) -> None:
    ends = {one: NOW + timedelta(hours=number) for one, number in hours.items()}
    requested = RequestedChange(Change(("+1", "+2")), (), 0, (), duration, ends)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW)
    page = Page([OpenRow(request, decides=True, cancels=False)], 1)
    message = pages.open_requests(page, (), "C0A", Reader(True))
    assert words in message.text
    assert message.slack_blocks[-1]["type"] == "actions"
