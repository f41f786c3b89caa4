"""Tests that cards, pages and messages show the stored requests and stay within Slack's limits."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.approvals.rules import Act, State
from bot.flows.rules import Change, identities_problem
from bot.slack.messages.block_kit import FIRST, Page
from bot.testusers.messages import notes, pages
from bot.testusers.messages.card import Surroundings, card
from bot.testusers.messages.pages import Entry, OpenRow, Reader
from bot.testusers.messages.phrases import in_full, mentions
from bot.testusers.rules.people import Access, Did, Effect, Over, RequestPerson
from bot.testusers.rules.requests import (
    Approval,
    Attempts,
    Request,
    Requested,
    Result,
    Round,
    Who,
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
    settled,
    shown_in_full,
    texts_of,
)


@settings(max_examples=60, deadline=None)
@given(requests())
def test_every_card_fits_and_mentions_nobody_but_the_approvers(request_) -> None:
    is_waiting = request_.state is State.PENDING
    approvers = mentions(("U0ADA", "S0GROUP", "*")) if is_waiting else ""
    message = card(request_, Surroundings(2, approvers))
    hold(message, may_mention=request_.state is State.PENDING)
    everything = "\n".join(texts_of(message))
    assert ("Applied" in everything) is (request_.state is State.APPLIED)
    assert "<@U0OTTO>" not in everything


MANY_PEOPLE = {
    "short names": tuple(f"{number:03}" for number in range(545)),
    "numbers": tuple(f"+1555{number:07}" for number in range(300)),
    "long names": tuple(f"{number:0292}" for number in range(20)),
}

LONG = Who("W" + "0" * 20, "&" * 90)

ENDS, WORDS = (1, 3, 1000), ("", "a demo", "&" * 500)

# Each state occurs with every list of people, every number of ends and every text.
LARGEST = [
    (state, people, ENDS[(row + turn) % 3], WORDS[(row + 2 * turn) % 3])
    for turn, state in enumerate(State)
    for row, people in enumerate(MANY_PEOPLE.values())
]


@pytest.mark.parametrize(("state", "people", "ends", "words"), LARGEST)
def test_the_largest_request_names_everybody_in_every_state(state, people, ends, words) -> None:
    assert identities_problem(people) is None
    assert identities_problem((*people, people[0] + "x")) is not None
    asked = [
        RequestPerson.added(one, NOW + timedelta(hours=number % ends))
        for number, one in enumerate(people)
    ]
    asked = asked[:9] + [replace(one, shown=Effect.LIMIT, current_end=NOW) for one in asked[9:]]
    if state in {State.APPLIED, State.FAILED}:
        over = (Over.GONE, Over.REPLACED, Over.ENDED)
        asked = [settled(one, Did.MADE, over[number % 3]) for number, one in enumerate(asked)]
    by = LONG if len(words) > 9 else ADA
    approvals = (Approval(by, NOW),) * (20 if by is LONG else 2)
    request = Request(
        "1",
        FLOW,
        by,
        tuple(asked),
        NOW,
        NOW + timedelta(hours=24),
        Requested(words),
        undo=State.PENDING,
        state=state,
        round=Round(approvals, denial_reason=words, decided_by=by, decided_at=NOW),
        attempts=Attempts(2, failure=words),
        result=Result(NOW, 1, 2, Change(people), overdue=words),
    )
    approvers = tuple(f"U{number:020}" for number in range(30))
    line = mentions(approvers) if state is State.PENDING else ""
    message = card(request, Surroundings(20, line, 9, (request,) * 5))
    hold(message, may_mention=state is State.PENDING)
    sections = [block for block in message.slack_blocks if block["type"] == "section"]
    # Otherwise, Slack may hide part of the card, and a person may approve changes unseen.
    assert all(section["expand"] is True for section in sections)
    everything = "\n".join(texts_of(message))
    assert all(in_full(person) in everything for person in people)
    if ends == 1 and state not in {State.APPLIED, State.FAILED}:
        assert "*Keep only until <!date^" in everything
    if state is State.PENDING:
        assert all(f"<@{approver}>" in everything for approver in approvers)


def test_a_card_shows_each_of_many_different_ends() -> None:
    until = {f"+1555{n:04}": NOW + timedelta(hours=n + 1) for n in range(20)}
    request = waiting(until)
    everything = "\n".join(texts_of(card(request, Surroundings(1, mentions(["U0ADA"])))))
    for person, end in until.items():
        assert f"*Add until <!date^{int(end.timestamp())}^" in everything
        assert f" (1):*\n{in_full(person)}" in everything


def waiting(until: dict[str, datetime | None], seconds: int | None = None) -> Request:
    """Return a pending request that adds these people."""
    people = tuple(RequestPerson.added(one, end, seconds) for one, end in until.items())
    return Request("1", FLOW, OTTO, people, NOW, NOW + timedelta(hours=24))


@pytest.mark.parametrize(
    ("ends", "duration", "words"),
    [
        ({"+1": 1, "+2": 1}, None, "*Keep only until <!date^1772445600^"),
        ({"+1": 1, "+2": 0}, None, "*Add until <!date^1772445600^"),
        (
            {"+1": 1, "+2": 0},
            None,
            "*Keep with no end date (currently with no end date) (1):*\n`+2`",
        ),
        (
            {"+1": 0, "+2": 0},
            60,
            "*Keep only until 1 min after approval (currently with no end date) (1):*\n`+2`",
        ),
    ],
)
def test_who_decides_reads_the_end_beside_the_names(ends, duration, words) -> None:
    until = {one: NOW + timedelta(hours=hours) if hours else None for one, hours in ends.items()}
    request = waiting(until, duration)
    added, kept = request.people
    effect = Effect.LIMIT if kept.end_at(NOW) else Effect.KEEP
    request = replace(request, people=(added, replace(kept, shown=effect)))
    assert words in "\n".join(texts_of(card(request, Surroundings())))


def test_who_decides_sees_the_id_of_a_requester_with_the_name_of_somebody_else() -> None:
    request = replace(waiting({"+1": None}), requester=Who("U0IMPOSTOR", ADA.name))
    assert "requester U0IMPOSTOR" in "\n".join(texts_of(card(request, Surroundings())))


def test_a_card_read_aloud_says_what_its_blocks_say() -> None:
    """Screen readers read a message's text, and none of its blocks."""
    many = {f"+1555{n:04}": None for n in range(9)}
    request = replace(waiting(many), requested=Requested("the demo on Friday"))
    around = Surroundings(2, mentions(["U0ADA"]), 7, (waiting({"+15550000": None}),))
    message = card(request, around)
    for person in many:
        assert in_full(person) in message.text
    for words in ("Otto", "the demo on Friday", "0 of 2 approvals", "7 → 16 test users"):
        assert words in message.text
    assert "Other open requests for the same people" in message.text
    assert "<@U0ADA>" in message.text


def test_the_requester_reads_whose_access_has_ended() -> None:
    request = waiting({"+1": None, "+2": None})
    message = notes.outcome(request, {"event": "ended", "identities": ["+2"]})
    assert message.text == "Access to *welcome* has ended for `+2`."


@settings(max_examples=30, deadline=None)
@given(st.lists(requests(), max_size=5))
def test_every_page_and_note_fits(some) -> None:
    identities = [item for request in some for item in everybody(request)]
    for sees in (True, False):
        reader = Reader(sees, sees)
        history = pages.history(FLOW, Page(some, 9, 2), reader, Act.UNDO, Act.RETRY)
        rows = [OpenRow(item, True, True, "C0A") for item in some]
        pending = pages.open_requests(Page(rows, len(rows), 2), reader)
        for message in (history, pending):
            hold(message)
            assert FLOW.name in message.text or not some
            assert sees or not shown_in_full(identities, message)
    for one in some:
        hold(notes.still_waiting(one, ""))
        for event in ("applied", "denied", "expired", "failed", "ended"):
            payload = {"event": event, "reason": "<!here>", "identities": ["<!here>"] * 9}
            outcome = notes.outcome(one, payload, "https://slack.example/archives/C0A/p1")
            hold(outcome)
            assert outcome.text.endswith("/p1|View the card>")
            assert FLOW.name in outcome.text


def test_a_page_that_would_be_too_large_keeps_its_buttons() -> None:
    many = waiting({f"+1555{number:04}": None for number in range(99)})
    some = [replace(many, requested=Requested("&" * 300)) for _ in range(pages.REQUESTS_SHOWN)]
    message = pages.own(some, [], FIRST, Reader(True, True))
    hold(message)
    buttons = [block["accessory"]["text"]["text"] for block in message.slack_blocks[1:-1]]
    assert buttons == ["Cancel"] * pages.REQUESTS_SHOWN


@settings(max_examples=30, deadline=None)
@given(st.lists(anything | hardest, max_size=20, unique=True))
def test_every_list_fits(identities) -> None:
    granting = {"1": replace(waiting({"+1": None}), round=Round((Approval(ADA, NOW),) * 3))}
    access = {one: Access("1", one, NOW, NOW + timedelta(hours=1)) for one in identities}
    for known in (access, {}):
        entries = [Entry(FLOW, one, known.get(one)) for one in identities]
        page = Page(entries, len(entries), 3)
        for sees, asks in ((True, True), (True, False), (False, False)):
            message = pages.listing(FLOW, page, granting, Reader(sees, asks))
            hold(message)
            assert FLOW.name in message.text
            assert sees or not shown_in_full(identities, message)


def test_a_viewer_reads_no_reason() -> None:
    """People write identities into reasons, in any form."""
    asked = replace(waiting({"+15550100": None}), requested=Requested("new phone 555-0100"))
    denied = Round(denial_reason="not 555-0100", decided_by=ADA, decided_at=NOW)
    refused = replace(asked, state=State.DENIED, round=denied)
    shown = [
        pages.history(FLOW, Page([refused], 1), Reader(sees)).text
        + pages.open_requests(Page([OpenRow(asked, False, False, "C0A")], 1), Reader(sees)).text
        for sees in (True, False)
    ]
    assert shown[0].count("new phone 555-0100") == 2
    assert "not 555-0100" in shown[0]
    assert "555" not in shown[1]
    assert "*Denied* by Ada" in shown[1]


def test_a_list_has_no_decision_buttons_for_a_shortened_change() -> None:
    for people, buttons in ((("+1", "+2"), 3), (tuple(f"{n:0300}" for n in range(9)), 1)):
        request = waiting(dict.fromkeys(people))
        page = Page([OpenRow(request, True, True, "C0A")], 1)
        message = pages.open_requests(page, Reader(True))
        assert len(message.slack_blocks[-1]["elements"]) == buttons
        outcome = "This change is too long to show here. See its card in <#C0A>."
        assert (outcome in message.text) is (buttons == 1)


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
    ends = {
        one: NOW + timedelta(hours=hours[one]) if one in hours else None for one in ("+1", "+2")
    }
    request = waiting(ends, duration)
    page = Page([OpenRow(request, True, False, "C0A")], 1)
    message = pages.open_requests(page, Reader(True))
    assert words in message.text
    assert message.slack_blocks[-1]["type"] == "actions"
