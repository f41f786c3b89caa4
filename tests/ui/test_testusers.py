"""Cards, pages and modals of test users say what is stored, within Slack's limits."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.testusers.approval import Act, Reason, State
from bot.model.testusers.changes import Change, Effect, Flow, identities_problem
from bot.model.testusers.pages import HistoryPage, ListPage, PendingPage, PendingRow
from bot.model.testusers.requests import (
    Approval,
    Done,
    Ended,
    Grant,
    Progress,
    Request,
    RequestedChange,
    Who,
)
from bot.ui import text
from bot.ui.ids import TESTUSERS_EXTEND
from bot.ui.message import Message
from bot.ui.testusers import forms, notes, pages
from bot.ui.testusers.buttons import Prefilled
from bot.ui.testusers.card import GIVEN_UP, card
from bot.ui.testusers.phrases import in_full, names
from sandbox.slack.validation import UPDATE_TEXT, check_message, check_view

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
OTTO, ADA = Who("U0OTTO", "Otto <!here>"), Who("U0ADA", "Ada *Approver*")
EVERYBODY = "<@U0AMY> <@U0ABEL> <@U0ANN>"
FLOW = Flow("FW" + "ab" * 16, "welcome")
anything = st.text(min_size=1, max_size=300).filter(lambda text: identities_problem([text]) is None)
few = st.lists(anything, max_size=12, unique=True).map(tuple)
hardest = st.sampled_from(["&" * 300, "<" * 300, "`" * 300, "ש" * 150, "\u202e" * 100, "a\x00b"])


@st.composite
def requests(draw: st.DrawFn) -> Request:
    chosen = draw(st.lists(anything | hardest, min_size=1, max_size=25, unique=True))
    while identities_problem(chosen):
        chosen.pop()
    cut = draw(st.integers(0, len(chosen)))
    change = Change(tuple(chosen[:cut]), tuple(chosen[cut:]))
    state = draw(st.sampled_from(State))
    outside = Change(draw(few)).then(Change((), draw(few)))
    done = Done(NOW, change, Change(), outside, 1, 2) if state is State.APPLIED else None
    reason = draw(st.sampled_from(["", "&" * 500, "<!channel> *x*", "שלום"]))
    progress = Progress(
        approvals=(Approval(ADA, NOW),),
        denial_reason=reason,
        failure=reason,
        done=done,
        ended=tuple(Ended(one, NOW, was_gone=False) for one in draw(few)),
        superseded=draw(few),
    )
    ends = {one: NOW + timedelta(hours=draw(st.integers(0, 99))) for one in change.additions}
    requested = RequestedChange(
        change,
        ("old",),
        0,
        end_changes=change.additions[:1],
        ends=draw(st.sampled_from([{}, ends])),
        reason=reason,
    )
    expires_at = NOW + timedelta(hours=24)
    return Request("1", FLOW, OTTO, requested, NOW, expires_at, state, progress, ADA, NOW)


def texts_of(message) -> list[str]:
    def within(value):
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            # What a button holds is never shown.
            for name, one in value.items():
                yield from within(one) if name != "value" else ()
        elif isinstance(value, list | tuple):
            for one in value:
                yield from within(one)

    return [message.text, *within([dict(block) for block in message.slack_blocks])]


def hold(message, *, may_mention: bool = False) -> None:
    payload = message.payload()
    check_message(payload["text"], payload.get("blocks"), most_text=UPDATE_TEXT)
    for shown in texts_of(message):
        assert "<!" not in shown.replace("<!date^", "").replace("<!subteam^S", "")
        assert may_mention or ("<@" not in shown and "<!subteam" not in shown)


def everybody(request: Request) -> list[str]:
    ended = [one.identity for one in request.progress.ended]
    return [*request.requested.change.additions, *request.requested.change.removals, *ended]


def shown_in_full(identities, message) -> list[str]:
    """Who can be read there although four characters are all that a viewer sees."""
    everything = "\n".join(texts_of(message))
    return [one for one in identities if len(one) > 4 and in_full(one) in everything]


@settings(max_examples=60, deadline=None)
@given(requests())
def test_every_card_fits_and_mentions_only_who_can_approve(request_) -> None:
    message = card(request_, ("U0ADA", "S0GROUP", "*", "U0OTTO"), 2)
    hold(message, may_mention=request_.state is State.PENDING)
    everything = "\n".join(texts_of(message))
    assert ("Applied" in everything) is (request_.state is State.APPLIED)
    assert "<@U0OTTO>" not in everything


@settings(max_examples=30, deadline=None)
@given(st.lists(requests(), max_size=5))
def test_every_page_and_note_fits(some) -> None:
    identities = [one for request in some for one in everybody(request)]
    for sees in (True, False):
        page = HistoryPage(FLOW, tuple(some), (), 0, 2, 9)
        history = pages.history(page, sees_identities=sees, asks=sees)
        rows = tuple(PendingRow(one, decides=True, cancels=True) for one in some)
        pending = pages.pending(PendingPage(rows, 0, 2, len(rows)), "C0A", sees_identities=sees)
        for message in (history, pending):
            hold(message)
            assert FLOW.name in message.text or not some
            assert sees or not shown_in_full(identities, message)
    for one in some:
        hold(notes.reminder(one))
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
        one: Grant(one, "1", OTTO, (ADA,) * 3, NOW, NOW + timedelta(hours=1)) for one in identities
    }
    for known in (grants, {}):
        page = ListPage(FLOW, tuple(identities), known, 0, 3, len(identities))
        for sees, asks in ((True, True), (True, False), (False, False)):
            message = pages.listing(page, sees_identities=sees, asks=asks)
            hold(message)
            assert FLOW.name in message.text
            assert sees or not shown_in_full(identities, message)


def menus_of(message) -> dict[str, list[str]]:
    """The options that stand beside the rows, by the first identity of each row."""
    rows = [block for block in message.slack_blocks if block["type"] == "section"]
    return {
        row["text"]["text"].split("`")[1]: [one["text"]["text"] for one in options]
        for row in rows
        if (options := row.get("accessory", {}).get("options"))
    }


def test_every_row_of_a_list_has_a_menu_where_it_fits() -> None:
    long = "x" * 200
    identities = ("+1", long, "+2", "+3")
    grants = {
        "+1": Grant("+1", "1", OTTO, (ADA,), NOW, NOW + timedelta(hours=1)),
        long: Grant(long, "1", OTTO, (ADA,), NOW, None),
        "+2": Grant("+2", "1", OTTO, (ADA,), NOW, None),
    }
    page = ListPage(FLOW, identities, grants, 0, 1, 4, outside=1)
    assert menus_of(pages.listing(page, sees_identities=True, asks=True)) == {
        "+1": ["Extend", "Remove"],
        "+2": ["Set an end date", "Remove"],
        "+3": ["Set an end date", "Remove"],
    }
    assert menus_of(pages.listing(page, sees_identities=True)) == {}


def test_full_page_of_phone_numbers_has_all_its_menus() -> None:
    identities = tuple(f"whatsapp:+1555010{number:04}" for number in range(20))
    grants = {
        one: Grant(one, "1", Who("U1", "Otto Operator"), (Who("U2", "Ada Approver"),), NOW, NOW)
        for one in identities
    }
    for known in (grants, {}):
        page = ListPage(FLOW, identities, known, 1, 3, 60, outside=20)
        message = pages.listing(page, sees_identities=True, asks=True)
        assert len(menus_of(message)) == 20


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
        ended=tuple(Ended(one, NOW, was_gone=True) for one in people),
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
    assert all(in_full(one) in everything for one in people)
    if ends == 1 and state not in {State.APPLIED, State.FAILED}:
        assert "*Already on the list; will be removed <!date^" in everything
    if state is State.PENDING:
        assert all(f"<@{one}>" in everything for one in approvers)


@pytest.mark.parametrize(
    ("change", "ends", "duration", "words"),
    [
        ((("+1", "+2"), ()), {"+1": 1, "+2": 1}, None, "will be removed <!date^1772445600^"),
        ((("+1", "+2"), ()), {"+1": 1}, None, "*Add until <!date^1772445600^"),
        ((("+1", "+2"), ()), {"+1": 1}, None, "list; will stay with no end date (1):*\n`+2`"),
        ((("+1", "+2"), ()), {}, 60, "list; will be removed 1 min after approval (1):*\n`+2`"),
    ],
)
def test_who_decides_reads_the_end_beside_the_names(change, ends, duration, words) -> None:
    until = {one: NOW + timedelta(hours=hours) for one, hours in ends.items()}
    requested = RequestedChange(Change(*change), (), 0, ("+2",), duration, until)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW)
    assert words in "\n".join(texts_of(card(request, (), 1)))


def test_a_card_says_how_many_grants_ended_and_who_can_approve() -> None:
    ended = tuple(Ended(f"+{number}", NOW, was_gone=False) for number in range(12))
    requested = RequestedChange(Change(("+1",)), (), 0, duration_seconds=7200)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, progress=Progress(ended=ended))
    everything = "\n".join(texts_of(card(request, ("*",), 1)))
    assert "*Access ended (12), most recent 5:*\n*Access ended:* `+7`" in everything
    assert "Approvers: any full member except the requester" in everything
    assert "2 h from approval" in everything
    named = "\n".join(texts_of(card(request, ("U0ADA", "*"), 1)))
    assert "Approvers: <@U0ADA> and any full member except the requester" in named
    all_of_them = "\n".join(texts_of(card(request, ("U0OTTO", "*"), 1, allows_self=True)))
    assert "Approvers: <@U0OTTO> and any full member\n" in f"{all_of_them}\n"


def test_card_does_not_ask_those_who_have_approved() -> None:
    requested = RequestedChange(Change(("+1",)), (), 0)
    progress = Progress(approvals=(Approval(ADA, NOW),))
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, progress=progress)
    shown = "\n".join(texts_of(card(request, ("U0ADA", "U0ABEL"), 2)))
    assert "Approvers: <@U0ABEL>\n" in f"{shown}\n"
    told = "\n".join(texts_of(card(request, ("U0ADA", "U0ABEL"), 2, notifies=True)))
    assert "Notified: <@U0ADA> <@U0ABEL>\n" in f"{told}\n"


@pytest.mark.parametrize(
    ("given", "needed", "count", "asked"),
    [
        (1, 3, "*1 of 3 approvals* (Amy). 2 more needed.", "<@U0ABEL> <@U0ANN>"),
        (2, 3, "*2 of 3 approvals* (Amy, Abel). One more needed.", "<@U0ANN>"),
        (1, 1, "*Enough approvals by now* (Amy). Any approver can press Approve", EVERYBODY),
        (2, 1, "*Enough approvals by now* (Amy, Abel). Any approver can press Approve", EVERYBODY),
        (2, 2, "*Enough approvals by now* (Amy, Abel). Any approver can press Approve", EVERYBODY),
    ],
    ids=["needs two", "needs one", "two to one", "three to one", "three to two"],
)
def test_card_with_enough_approvals_says_what_completes_it(given, needed, count, asked) -> None:
    request = approved_by(given)
    shown = "\n".join(texts_of(card(request, ("U0AMY", "U0ABEL", "U0ANN"), needed)))
    assert count in shown
    assert f"Approvers: {asked}\n" in f"{shown}\n"
    (row,) = pages.pending(
        PendingPage((PendingRow(request, True, False, needed),), 0, 1, 1), "C", sees_identities=True
    ).text.split("\n")[1:]
    assert ("enough approvals by now, Approve completes it" in row) is (given >= needed)
    told = notes.decided(Act.APPROVE, Reason.QUORUM_OPEN, request, needed).text
    assert ("Any approver can press Approve" in told) is (given >= needed)
    for text_ in (shown, row, told):
        assert (f"{given} of {needed}" in text_) is (given < needed)


@pytest.mark.parametrize(
    ("given", "needed", "why", "told"),
    [
        (0, 1, "nobody approved it in time", "nobody approved it in time"),
        (1, 2, "not enough approvals in time (1 of 2)", "its approval wasn't completed in time"),
        (1, 1, "approved by Amy, but not completed in time", "wasn't completed in time"),
        (2, 1, "approved by Amy, Abel, but not completed in time", "wasn't completed in time"),
    ],
)
def test_expiry_says_how_far_the_approval_came(given, needed, why, told) -> None:
    request = replace(approved_by(given), state=State.EXPIRED)
    assert f"*Expired*: {why}." in card(request, (), needed).text
    assert told in notes.outcome(request, {"event": "expired"}).text


def approved_by(number: int) -> Request:
    """A request with so many approvals."""
    people = (Who("U0AMY", "Amy"), Who("U0ABEL", "Abel"))[:number]
    progress = Progress(approvals=tuple(Approval(one, NOW) for one in people))
    requested = RequestedChange(Change(("+1",)), (), 0)
    return Request("1", FLOW, OTTO, requested, NOW, NOW, progress=progress)


@pytest.mark.parametrize("is_undone", [False, True])
def test_card_of_an_undone_change_names_nobody_as_replaced(is_undone) -> None:
    requested = RequestedChange(Change(("+1",)), (), 0)
    done = Done(NOW, Change(("+1",)), Change(), Change(), 0, 1)
    undone_by = "2" if is_undone else None
    progress = Progress(done=done, superseded=("+1",), is_undone=is_undone, undone_by=undone_by)
    expires_at = NOW + timedelta(hours=24)
    request = Request("1", FLOW, OTTO, requested, NOW, expires_at, State.APPLIED, progress, ADA)
    shown = "\n".join(texts_of(card(request, (), 1)))
    assert "could test" in shown
    assert ("Replaced by a later request" in shown) is not is_undone


def test_a_viewer_sees_no_more_than_four_characters() -> None:
    page = ListPage(FLOW, ("+15550100",), {}, 0, 1, 1)
    text = pages.listing(page, sees_identities=False).text
    assert "`…0100`" in text
    assert "5550" not in text


def test_a_viewer_sees_the_last_four_characters_of_a_long_identity_too() -> None:
    requested = RequestedChange(Change(("x" * 56 + "MIDDLE" + "y" * 90 + "last",)), (), 0)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW)
    page = HistoryPage(FLOW, (request,), (), 0, 1, 1)
    said = pages.history(page, sees_identities=False).text
    assert "add `…last` ·" in said


def test_a_viewer_finds_no_identity_in_a_reason_either() -> None:
    requested = RequestedChange(
        Change(("+15550100", "b"), ("ada",)), (), 0, reason="+15550100 is a bad Ada"
    )
    progress = Progress(denial_reason="not for +15550100")
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.DENIED, progress, ADA, NOW)
    waiting = Request("2", FLOW, OTTO, requested, NOW, NOW)
    shown = [
        pages.history(HistoryPage(FLOW, (request,), (), 0, 1, 1), sees_identities=sees).text
        + pages.pending(
            PendingPage((PendingRow(waiting, False, False),), 0, 1, 1),
            "C0A",
            sees_identities=sees,
        ).text
        for sees in (True, False)
    ]
    assert shown[0].count("+15550100 is a bad Ada") == 2
    assert "not for +15550100" in shown[0]
    assert shown[1].count("…0100 is a bad …") == 2
    assert "not for …0100" in shown[1]
    assert "5550" not in shown[1]


@pytest.mark.parametrize(
    ("state", "buttons"),
    [
        (State.PENDING, ["Approve", "Deny", "Cancel"]),
        (State.APPLYING, []),
        (State.APPLIED, ["Undo"]),
        (State.FAILED, ["Retry"]),
        (State.DENIED, []),
        (State.CANCELLED, []),
        (State.EXPIRED, []),
    ],
)
def test_buttons_go_with_the_first_transition(state, buttons) -> None:
    done = Done(NOW, Change(("+1",)), Change(), Change(), 0, 1) if state is State.APPLIED else None
    requested = RequestedChange(Change(("+1",)), (), 0)
    request = Request(
        "1",
        FLOW,
        OTTO,
        requested,
        NOW,
        NOW,
        state,
        Progress(done=done),
        decided_by=ADA,
        decided_at=NOW,
    )
    blocks = card(request, ("U0ADA",), 1).slack_blocks
    shown = [one for block in blocks if block["type"] == "actions" for one in block["elements"]]
    assert [one["text"]["text"] for one in shown] == buttons
    assert all(one["value"] == "1" for one in shown)
    asks = [one["text"]["text"] for one in shown if "confirm" in one]
    assert asks == [one for one in buttons if one in {"Cancel", "Undo", "Retry"}]


@pytest.mark.parametrize(
    "words",
    [
        ":hourglass: *Otto &lt;!here&gt;* wants to add *2 test users* to *welcome* for 2 h; ",
        "*Add (2):*\n`+1`  `+2`",
        "*Remove (1):*\n`+3`",
        "*Already on the list; will be removed 2 h after approval (1):*\n`+4`",
        "3 → 4 test users · 2 h from approval · expires <!date^",
        f"`{FLOW.sid}` · requester U0OTTO",
        "> a demo",
    ],
)
def test_who_decides_reads_all_that_is_asked(words) -> None:
    change = Change(("+1", "+2", "+4"), ("+3",))
    requested = RequestedChange(
        change, ("old", "+3", "+4"), 0, ("+4",), duration_seconds=7200, reason="a demo"
    )
    request = Request("1", FLOW, OTTO, requested, NOW, NOW + timedelta(hours=24))
    blocks = card(request, ("U0ADA",), 1).slack_blocks
    assert words in "\n".join(texts_of(Message("x", blocks)))


def test_a_failure_is_shown_and_told_with_the_services_reason() -> None:
    reason = "The flow service refused: <no> such number."
    requested, progress = RequestedChange(Change(("+1",)), (), 0), Progress(failure=reason)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.FAILED, progress, ADA, NOW)
    outcome = notes.outcome(request, {"event": "failed", "reason": reason})
    assert "approved by Ada *Approver*".replace("*A", "\u2060*A") in outcome.text
    for message in (card(request, ("U0ADA",), 1), outcome):
        assert "refused: &lt;no&gt; such number." in "\n".join(texts_of(message))


def test_who_approved_a_failure_is_told_whoever_they_are() -> None:
    abel = Who("U0ABEL", "Abel")
    both = Progress(approvals=(Approval(abel, NOW), Approval(Who("U0AMY", "Amy"), NOW)))
    for requested, progress, words in (
        (RequestedChange(Change(("+1",)), (), 0), both, "approved by Abel, Amy.\nNo. An"),
        (
            RequestedChange(Change(("+1",)), (), 0, without_approval=True),
            Progress(),
            "without approval by Abel",
        ),
    ):
        request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.FAILED, progress, abel, NOW)
        assert words in notes.outcome(request, {"event": "failed", "reason": "No."}).text


@pytest.mark.parametrize("asks", [True, False])
def test_empty_history_offers_who_may_ask_to_add_somebody(asks) -> None:
    message = pages.history(HistoryPage(FLOW, (), (), 0, 1, 0), sees_identities=True, asks=asks)
    assert message.text == "No requests for *welcome* yet."
    rows = [block["elements"] for block in message.slack_blocks if block["type"] == "actions"]
    found = [(one["text"]["text"], Prefilled.of(one["value"])) for row in rows for one in row]
    assert found == ([("Add a test user", Prefilled(FLOW.sid))] if asks else [])


def test_history_names_everybody_who_approved() -> None:
    amy = Who("U0AMY", "Amy")
    progress = Progress(approvals=(Approval(amy, NOW), Approval(Who("U0ABEL", "Abel"), NOW)))
    requested = RequestedChange(Change(("+1",)), (), 0)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.FAILED, progress, amy, NOW)
    page = HistoryPage(FLOW, (request,), (), 0, 1, 1)
    assert "approved by Amy, Abel" in pages.history(page, sees_identities=True).text


@pytest.mark.parametrize("asks", [True, False])
def test_history_offers_to_undo_what_can_be_undone(asks) -> None:
    requested = RequestedChange(Change(("+1",)), (), 0)
    done = Done(NOW, Change(("+1",)), Change(), Change(), 0, 1)
    progress = {
        "applied": (State.APPLIED, Progress(done=done)),
        "failed in part": (State.FAILED, Progress(part=done)),
        "failed": (State.FAILED, Progress()),
        "pending": (State.PENDING, Progress()),
        "undone": (State.APPLIED, Progress(done=done, undone_by="9")),
        "over": (State.APPLIED, Progress(done=done, ended=(Ended("+1", NOW, was_gone=False),))),
    }
    some = tuple(
        Request(name, FLOW, OTTO, requested, NOW, NOW, state, progress, ADA, NOW)
        for name, (state, progress) in progress.items()
    )
    page = HistoryPage(FLOW, some, (), 0, 1, len(some))
    message = pages.history(page, sees_identities=True, asks=asks)
    hold(message)
    shown = [one["accessory"] for one in message.slack_blocks if "accessory" in one]
    assert [one["value"] for one in shown] == (["applied", "failed in part"] if asks else [])
    assert {(one["text"]["text"], "confirm" in one) for one in shown} <= {("Undo", True)}


@pytest.mark.parametrize("name", ["Amy, Abel", "Amy and Abel"])
def test_name_that_reads_like_two_is_one(name) -> None:
    given = Progress(approvals=(Approval(Who("U0AMY", name), NOW),))
    requested = RequestedChange(Change(("+1",)), (), 0)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.PENDING, given)
    said = "\n".join(texts_of(card(request, ("U0ADA",), 2)))
    assert f"*1 of 2 approvals* (“{name}”). One more needed." in said


def test_two_of_one_name_are_told_apart() -> None:
    amy, also_amy, abel = Who("U1", "Amy"), Who("U2", "Amy"), Who("U3", "Abel")
    assert names([amy, also_amy, abel]) == "Amy (U1), Amy (U2), Abel"
    assert names([amy, amy, abel]) == "Amy, Amy, Abel"


@pytest.mark.parametrize(
    ("identities", "duration", "shown"),
    [
        (["+15550100"], 7200, "2h"),
        (["+1", "two words"], 90, "90s"),
        (["because"], None, ""),
        ([f"+{number}" for number in range(9)], 3 * 86_400, "3d"),
    ],
)
def test_who_asked_is_told_of_the_end_and_can_ask_again(identities, duration, shown) -> None:
    requested = RequestedChange(Change(tuple(identities)), (), 0, duration_seconds=duration)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.APPLIED)
    message = notes.outcome(request, {"event": "ended", "identities": identities})
    lasted = f" after {text.duration(duration)}" if duration else ""
    assert message.text.startswith(
        f"Access to *welcome* has ended{lasted}: {in_full(identities[0])}"
    )
    (again,) = [block for block in message.slack_blocks if block["type"] == "actions"]
    (button,) = again["elements"]
    assert (button["text"]["text"], button["action_id"]) == ("Give access again", TESTUSERS_EXTEND)
    assert Prefilled.of(button["value"]) == Prefilled(FLOW.sid, "add", tuple(identities), shown)


def test_a_denial_is_told_with_who_and_why() -> None:
    requested, progress = (
        RequestedChange(Change(("+1",)), (), 0),
        Progress(denial_reason="not <!here> now"),
    )
    abel = Who("U0ABEL", "Abel Approver")
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.DENIED, progress, abel, NOW)
    outcome = notes.outcome(request, {"event": "denied"}).text
    assert outcome.startswith(":no_entry: *Denied* by Abel Approver: your request to add `+1`")
    assert outcome.endswith("\n> not &lt;!here&gt; now")


@pytest.mark.parametrize("event", ["denied", "expired"])
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
def test_who_was_not_approved_can_ask_again(event, change, duration, filled_in) -> None:
    requested = RequestedChange(change, (), 0, duration_seconds=duration)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.DENIED, Progress(), ADA, NOW)
    message = notes.outcome(request, {"event": event})
    rows = [block["elements"] for block in message.slack_blocks if block["type"] == "actions"]
    found = [(one["text"]["text"], Prefilled.of(one["value"])) for row in rows for one in row]
    assert found == ([("Ask again", filled_in)] if filled_in else [])
    undo = replace(request, requested=replace(requested, undo_of="0"))
    assert "Ask again" not in texts_of(notes.outcome(undo, {"event": event}))


@pytest.mark.parametrize("is_all", [True, False])
def test_what_is_true_already_is_named_to_who_asks(is_all) -> None:
    requested = RequestedChange(Change(("+3",)), (), 0)
    request = None if is_all else Request("1", FLOW, OTTO, requested, NOW, NOW)
    dropped = Change(("+1",), ("+2",))
    said = notes.asked(FLOW, Effect(Change(), dropped), request, "C0APPROVALS").text
    assert "Already on the list: `+1`" in said
    assert "Not on the list: `+2`" in said
    assert ("I didn't ask anyone" in said) is is_all


def test_nobody_decides_from_the_list_on_what_it_does_not_show_in_full() -> None:
    for people, buttons in ((("+1", "+2"), 3), (tuple(f"{n:0300}" for n in range(9)), 1)):
        request = Request("1", FLOW, OTTO, RequestedChange(Change(people), (), 0), NOW, NOW)
        rows = (PendingRow(request, decides=True, cancels=True),)
        message = pages.pending(PendingPage(rows, 0, 1, 1), "C0A", sees_identities=True)
        assert len(message.slack_blocks[-1]["elements"]) == buttons
        outcome = "Too long to show here. Decide on its card in <#C0A>."
        assert (outcome in message.text) is (buttons == 1)
        viewed = (PendingRow(request, decides=False, cancels=False),)
        message = pages.pending(PendingPage(viewed, 0, 1, 1), "C0A", sees_identities=False)
        assert "Decide on" not in message.text


@pytest.mark.parametrize(
    ("duration", "hours", "words"),
    [
        (7200, {}, "add `+1`, `+2` to *welcome* for 2 h"),
        (None, {"+1": 1, "+2": 1}, "add `+1`, `+2` to *welcome* until <!date^"),
        (None, {}, "add `+1`, `+2` to *welcome* ·"),
        (None, {"+1": 1}, "Too long to show here"),
        (None, {"+1": 1, "+2": 2}, "Too long to show here"),
    ],
)
def test_nobody_decides_from_the_list_without_the_ends(duration, hours, words) -> None:
    ends = {one: NOW + timedelta(hours=number) for one, number in hours.items()}
    requested = RequestedChange(Change(("+1", "+2")), (), 0, (), duration, ends)
    rows = (PendingRow(Request("1", FLOW, OTTO, requested, NOW, NOW), decides=True, cancels=False),)
    message = pages.pending(PendingPage(rows, 0, 1, 1), "C0A", sees_identities=True)
    assert words in message.text
    has_buttons = any(block["type"] == "actions" for block in message.slack_blocks)
    assert has_buttons is not words.startswith("Too long")


def test_the_modals_fit() -> None:
    requested = RequestedChange(Change(("+1",)), (), 0)
    change = forms.change_form("https://hooks.example/" + "x" * 200)
    check_view(change)
    labels = [block["label"]["text"] for block in change["blocks"]]
    assert labels == ["Flow", "Change", "Identities", "For", "From", "Reason"]
    assert change["blocks"][1]["element"]["initial_option"]["value"] == "add"
    check_view(
        forms.denial_form(Request("1", FLOW, OTTO, requested, NOW, NOW), "https://x.example")
    )
