"""Cards of requests say what is stored, within Slack's limits."""

from datetime import timedelta

import pytest
from hypothesis import given, settings

from bot.approvals.rules import State
from bot.testusers.messages.card import GIVEN_UP, card
from bot.testusers.messages.phrases import in_full
from bot.testusers.rules.changes import Change, identities_problem
from bot.testusers.rules.requests import (
    Approval,
    Done,
    Ended,
    Progress,
    Request,
    RequestedChange,
    Who,
)
from tests.support.requests import ADA, FLOW, NOW, OTTO, hold, requests, texts_of


@settings(max_examples=60, deadline=None)
@given(requests())
def test_every_card_fits_and_mentions_only_who_can_approve(request_) -> None:
    message = card(request_, ("U0ADA", "S0GROUP", "*", "U0OTTO"), 2)
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

# Every state with each of the people, the ends and the words, and over the states with each pair.
LARGEST = [
    (state, people, ENDS[(row + turn) % 3], WORDS[(row + 2 * turn) % 3])
    for turn, state in enumerate(State)
    for row, people in enumerate(MANY_PEOPLE.values())
]


@pytest.mark.parametrize(("state", "people", "ends", "words"), LARGEST)
def test_the_largest_request_names_everybody_in_every_state(state, people, ends, words) -> None:
    assert identities_problem(people) is None
    assert identities_problem((*people, people[0] + "x")) is not None
    until = {one: NOW + timedelta(hours=number % ends) for number, one in enumerate(people)}
    requested = RequestedChange(Change(people), people, 0, people[9:], ends=until, reason=words)
    done = Done(NOW, Change(people[:9]), Change(people[9:]), Change(people), 1, 2, until, until)
    by = LONG if len(words) > 9 else ADA
    progress = Progress(
        approvals=(Approval(by, NOW),) * (20 if by is LONG else 2),
        denial_reason=words,
        failure=words,
        tries=2,
        part=done if state is State.FAILED else None,
        done=done if state is State.APPLIED else None,
        ended=tuple(Ended(person, NOW, was_gone=True) for person in people),
        superseded=people,
        overdue=words,
        undone_by="2",
    )
    expires_at = NOW + timedelta(hours=24)
    request = Request("1", FLOW, by, requested, NOW, expires_at, state, progress, by, NOW)
    approvers = tuple(f"U{number:020}" for number in range(30))
    message = card(request, approvers, 20)
    hold(message, may_mention=state is State.PENDING)
    sections = [block for block in message.slack_blocks if block["type"] == "section"]
    # Else Slack may show a part of it, and somebody approves what they did not see.
    assert all(section["expand"] is True for section in sections)
    everything = "\n".join(texts_of(message))
    if state in GIVEN_UP:
        return
    assert all(in_full(person) in everything for person in people)
    if ends == 1 and state not in {State.APPLIED, State.FAILED}:
        assert "*Keep only until <!date^" in everything
    if state is State.PENDING:
        assert all(f"<@{approver}>" in everything for approver in approvers)


@pytest.mark.parametrize(
    ("change", "ends", "duration", "words"),
    [
        ((("+1", "+2"), ()), {"+1": 1, "+2": 1}, None, "*Keep only until <!date^1772445600^"),
        ((("+1", "+2"), ()), {"+1": 1}, None, "*Add until <!date^1772445600^"),
        (
            (("+1", "+2"), ()),
            {"+1": 1},
            None,
            "*Keep with no end date (currently with no end date) (1):*\n`+2`",
        ),
        (
            (("+1", "+2"), ()),
            {},
            60,
            "*Keep only until 1 min after approval (currently with no end date) (1):*\n`+2`",
        ),
    ],
)
def test_who_decides_reads_the_end_beside_the_names(change, ends, duration, words) -> None:
    until = {one: NOW + timedelta(hours=hours) for one, hours in ends.items()}
    requested = RequestedChange(Change(*change), (), 0, ("+2",), duration, until)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW)
    assert words in "\n".join(texts_of(card(request, (), 1)))
