"""What a request asks for, and what has come of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.approvals.rules import State
from bot.testusers.rules.changes import NO_CHANGE, Change, Flow
from bot.testusers.rules.requests import (
    Approval,
    Done,
    Ended,
    Progress,
    Request,
    RequestedChange,
    Who,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SOON, LATER = NOW + timedelta(minutes=1), NOW + timedelta(hours=1)
OTTO, ADA = Who("U0OTTO", "Otto"), Who("U0ADA", "Ada")
ASKED = RequestedChange(Change(("a", "b"), ("x",)), (), 0)
REQUEST = Request("1", Flow("FW1"), OTTO, ASKED, NOW, LATER)
PART = Done(NOW, Change(("b",), ("x",)), NO_CHANGE, NO_CHANGE, 3, 3, {"b": LATER}, {"x": SOON})
IN_PART = replace(REQUEST, state=State.FAILED, progress=Progress(part=PART))


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (replace(ASKED, change=Change(("b", "a"), ("x",))), True),
        (replace(ASKED, reason="x", seen=("a",), seen_change_id=7), True),
        (replace(ASKED, change=Change(("a", "b"), ("y",))), False),
        (replace(ASKED, change=Change(("a",), ("x",))), False),
        (replace(ASKED, duration_seconds=60), False),
        (replace(ASKED, starts_at=LATER), False),
        (replace(ASKED, ends={"a": LATER}), False),
    ],
)
def test_two_requests_for_the_same_have_one_effect(other: RequestedChange, is_same: bool) -> None:
    assert (other.effect == ASKED.effect) is is_same


@pytest.mark.parametrize(
    ("state", "needed", "has_enough"),
    [
        (State.PENDING, 1, True),
        (State.PENDING, 0, True),
        (State.PENDING, 2, False),
        (State.APPLIED, 1, False),
    ],
)
def test_who_waits_with_one_approval_has_enough_where_one_is_needed(
    state: State, needed: int, has_enough: bool
) -> None:
    approved = replace(REQUEST, state=state, progress=Progress(approvals=(Approval(ADA, NOW),)))
    assert approved.has_enough_approvals(needed) is has_enough


@pytest.mark.parametrize(
    ("progress", "is_over"),
    [
        (Progress(), False),
        (Progress(ended=(Ended("a", NOW, False),)), False),
        (Progress(ended=(Ended("a", NOW, False),), superseded=("b",)), True),
        (Progress(superseded=("a", "b")), True),
        (Progress(is_undone=True), True),
        (Progress(part=PART), False),
        (Progress(part=PART, ended=(Ended("a", NOW, False),)), False),
        (Progress(part=PART, ended=(Ended("b", NOW, False),)), True),
    ],
)
def test_a_request_is_over_when_nobody_has_access_by_it(progress: Progress, is_over: bool) -> None:
    assert replace(REQUEST, progress=progress).is_over is is_over


def test_a_fixed_end_that_is_over_lets_nobody_stay_or_come() -> None:
    request = replace(REQUEST, requested=replace(ASKED, ends={"a": SOON, "x": SOON}))
    assert request.change_at(NOW) == Change(("a", "b"), ("x",))
    assert request.change_at(SOON) == Change(("b",), ("x",))
    request = replace(request, requested=replace(request.requested, undo_of="0"))
    assert request.change_at(SOON) == Change(("b",), ("x", "a"))


def test_part_that_took_effect_is_not_left_to_be_done() -> None:
    assert (REQUEST.took_effect, REQUEST.left) == (None, ASKED.change)
    assert (IN_PART.took_effect, IN_PART.left) == (PART, Change(("a",)))
    retried = replace(IN_PART, state=State.APPLYING)
    nothing = replace(IN_PART, progress=Progress())
    assert [item.has_failed_in_part for item in (IN_PART, retried, nothing)] == [True, False, False]
    ends = replace(ASKED, ends={"a": SOON, "b": SOON}, undo_of="0")
    assert replace(IN_PART, requested=ends).change_at(SOON) == Change((), ("a",))
    done = replace(PART, at=LATER)
    assert replace(IN_PART, progress=Progress(part=PART, done=done)).took_effect is done


def test_what_is_done_has_the_part_that_took_effect_before() -> None:
    rest = Done(LATER, Change(("a",)), NO_CHANGE, Change(("o",)), 4, 5, {"a": SOON}, {"a": None})
    assert rest.after(None) is rest
    whole = rest.after(PART)
    assert (whole.at, whole.change) == (LATER, Change(("b", "a"), ("x",)))
    assert (whole.outside, whole.size_before, whole.size_after) == (rest.outside, 3, 5)
    assert whole.ends_at == {"a": SOON, "b": LATER}
    assert whole.previous_ends == {"a": None, "x": SOON}


def test_what_is_done_follows_people_to_their_spelling_of_now() -> None:
    change, already = Change(("a", "b"), ("c",)), Change(("d",), ("e",))
    ends = {"a": SOON, "d": LATER}
    done = Done(NOW, change, already, NO_CHANGE, 1, 2, ends, {"c": SOON, "d": None})
    now = done.respelled({item: item.upper() for item in "acde"})
    assert (now.change, now.already) == (Change(("A", "b"), ("C",)), Change(("D",), ("E",)))
    assert now.ends_at == {"A": SOON, "D": LATER}
    assert now.previous_ends == {"C": SOON, "D": None}
    assert done.respelled({"c": "a"}) == done
    assert done.respelled({"a": "z", "c": "z"}) == done
