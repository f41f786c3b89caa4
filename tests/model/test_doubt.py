"""What a look at a list tells of the POSTs in doubt, person by person."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.model.doubt import DoubtfulPost, latest, look_at, sent_at, sent_for
from bot.model.testusers.applying import Ending, ListChangePlan, Step
from bot.model.testusers.changes import NO_CHANGE, Change

START = datetime(2026, 3, 1, tzinfo=UTC)
SOON, LATE = START + timedelta(seconds=59), START + timedelta(seconds=60)


def step(request_id: str, additions: str = "", removals: str = "") -> Step:
    change = Change(tuple(additions), tuple(removals))
    return Step(request_id, change, NO_CHANGE, NO_CHANGE, 0, 0)


def post(before: str, after: str, *steps: Step, second: float = 0, **more) -> DoubtfulPost:
    """A POST of one list in place of another; each letter is somebody."""
    plan = ListChangePlan(f"{before}-{after}-{second}", tuple(before), tuple(after), steps)
    return DoubtfulPost(plan, START + timedelta(seconds=second), tuple(before), **more)


def added(who: str) -> Change:
    return Change(additions=tuple(who))


def removed(who: str) -> Change:
    return Change(removals=tuple(who))


def test_new_post_is_the_first_of_its_kind_and_in_doubt_for_a_minute() -> None:
    new = post("ab", "bc")
    assert (new.times, new.ends_at) == (1, START + timedelta(seconds=60))
    assert (new.since, new.arrived) == (NO_CHANGE, NO_CHANGE)
    assert new.own == Change(("c",), ("a",))


def test_post_is_of_each_request_it_was_sent_for() -> None:
    mine = post("", "a", step("one"), step("two"))
    assert [mine.is_of(name) for name in ("one", "two", "three")] == [True, True, False]


def with_ending(of: DoubtfulPost, who: str) -> DoubtfulPost:
    ending = Ending(who, "timed", was_gone=False)
    return replace(of, plan=replace(of.plan, endings=(ending,)))


def test_same_list_for_the_same_reasons_is_the_same_content() -> None:
    mine = with_ending(post("x", "a", step("one"), step("two")), "x")
    again = with_ending(post("x", "a", step("two"), step("one"), second=90), "x")
    assert mine.has_same_content(again.plan)


@pytest.mark.parametrize(
    "other",
    [
        with_ending(post("y", "a", step("one")), "x"),
        with_ending(post("x", "b", step("one")), "x"),
        with_ending(post("x", "a", step("two")), "x"),
        with_ending(post("x", "a", step("one")), "y"),
    ],
    ids=["before", "after", "request", "ending"],
)
def test_another_list_or_reason_is_other_content(other) -> None:
    mine = with_ending(post("x", "a", step("one")), "x")
    assert not mine.has_same_content(other.plan)


@pytest.mark.parametrize(
    ("since", "listed", "expected"),
    [
        (added("b"), "a", added("b")),
        (added("b"), "ab", NO_CHANGE),
        (added("a"), "", NO_CHANGE),
        (removed("x"), "ax", removed("x")),
        (removed("x"), "a", NO_CHANGE),
        (removed("b"), "b", NO_CHANGE),
    ],
)
def test_what_was_decided_since_is_undone_where_it_is_as_the_post_has_it(
    since, listed, expected
) -> None:
    mine = post("x", "ax", since=since)
    assert mine.undone_in(tuple(listed)) == expected
    assert look_at([mine], tuple(listed), SOON).repair == expected


def test_decision_after_a_post_is_remembered_with_the_list_it_left() -> None:
    mine = post("x", "ax", since=Change(("b", "c")))
    later = mine.decided(Change(("d",), ("b",)), ["x", "c", "d"])
    assert later.since == Change(("c", "d"), ("b",))
    assert later.seen == ("x", "c", "d")


def test_later_of_two_changes_is_in_force() -> None:
    both = latest(Change(("a", "b"), ("c",)), Change(("c",), ("b",)))
    assert both == Change(("a", "c"), ("b",))


def test_what_was_sent_for_a_request_is_the_last_of_it() -> None:
    posts = [
        post("x", "ab", step("one", "ab"), step("two", "c")),
        post("x", "ab", step("one", removals="b"), second=5),
    ]
    assert sent_for(posts, "one") == Change(("a",), ("b",))
    assert sent_for(posts, "two") == added("c")
    assert sent_for(posts, "three") == NO_CHANGE
    assert sent_at(posts) == {"one": START + timedelta(seconds=5), "two": START}


def test_list_as_before_tells_nothing() -> None:
    look = look_at([post("xy", "ay")], ("x", "y"), SOON)
    assert (look.arrived, look.closed, look.repair) == ((), (), NO_CHANGE)
    assert look.open == (post("xy", "ay"),)


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("axy", added("a")),
        ("y", removed("x")),
        ("aby", Change(("a", "b"), ("x",))),
    ],
)
def test_who_came_or_went_as_sent_has_arrived_once(listed, expected) -> None:
    look = look_at([post("xy", "aby")], tuple(listed), SOON)
    ((found, part),) = look.arrived
    assert (part, found.arrived) == (expected, expected)
    assert look.open == (found,)
    assert look_at(look.open, tuple(listed), SOON).arrived == ()


def test_rest_of_a_post_is_found_later() -> None:
    first = look_at([post("x", "ab")], ("a", "x"), SOON)
    second = look_at(first.open, ("a", "b"), SOON)
    ((found, part),) = second.arrived
    assert part == Change(("b",), ("x",))
    assert found.arrived == Change(("a", "b"), ("x",))


def test_what_was_decided_since_is_not_the_posts_doing() -> None:
    mine = post("x", "ab", since=Change(("a",), ("x",)))
    ((_, part),) = look_at([mine], ("a", "b"), SOON).arrived
    assert part == added("b")


def test_post_is_in_doubt_for_its_time_though_all_of_it_is_there() -> None:
    """Somebody else may have done the same, and then it is still to come."""
    look = look_at([post("", "a")], ("a",), SOON)
    assert (len(look.open), look.closed) == (1, ())
    look = look_at(look.open, ("a",), LATE)
    assert (look.open, len(look.closed)) == ((), 1)


def test_post_stays_in_doubt_until_what_it_undid_is_put_right() -> None:
    mine = post("", "a", since=added("b"))
    look = look_at([mine], ("a",), LATE)
    assert (len(look.open), look.closed, look.repair) == (1, (), added("b"))
    look = look_at(look.open, ("a", "b"), LATE)
    assert (look.open, len(look.closed), look.repair) == ((), 1, NO_CHANGE)


def test_posts_are_told_of_in_the_order_in_which_they_were_sent() -> None:
    posts = [post("", "a"), post("", "b", second=30), post("", "c", second=45)]
    look = look_at(posts, ("b", "a"), START + timedelta(seconds=100))
    assert [one.plan.id for one in look.closed] == [one.plan.id for one in posts[:2]]
    assert [one.plan.id for one in look.open] == [posts[2].plan.id]
    assert [one.plan.id for one in look.posts] == [one.plan.id for one in posts]
    assert [(one.plan.id, part) for one, part in look.arrived] == [
        (posts[0].plan.id, added("a")),
        (posts[1].plan.id, added("b")),
    ]
    assert look_at([], (), SOON).posts == ()


def test_posts_arrive_in_the_order_in_which_they_were_sent() -> None:
    posts = [post("", "b"), post("b", "bc", second=5), post("bc", "bcd", second=10)]
    arrived = look_at(posts, tuple("bcd"), SOON).arrived
    assert [part for _, part in arrived] == [added("b"), added("c"), added("d")]
    assert [found.plan.id for found, _ in arrived] == [one.plan.id for one in posts]


def test_last_of_the_posts_that_do_the_same_has_done_it() -> None:
    posts = [post("x", "a"), post("x", "a", second=5)]
    ((found, part),) = look_at(posts, ("a",), SOON).arrived
    assert found.plan.id == posts[1].plan.id
    assert part == Change(("a",), ("x",))


def test_what_a_later_post_did_is_undone_by_an_earlier_one() -> None:
    look = look_at([post("x", "ax"), post("x", "b", second=5)], ("b",), SOON)
    assert look.open[0].since == Change(("b",), ("x",))
    assert look_at(look.open, ("a", "x"), SOON).repair == Change(("b",), ("x",))


def test_what_a_later_post_has_so_is_not_put_right() -> None:
    earlier = post("bx", "x", since=Change(("b",), ("x",)))
    later = post("b", "x", second=5)
    assert look_at([earlier, later], ("x",), SOON).repair == NO_CHANGE
    assert look_at([earlier], ("x",), SOON).repair == Change(("b",), ("x",))


def test_what_an_earlier_post_has_so_is_put_right() -> None:
    earlier = post("b", "x")
    later = post("bx", "x", since=Change(("b",), ("x",)), second=5)
    assert look_at([earlier, later], ("x",), SOON).repair == Change(("b",), ("x",))


def test_post_explains_only_what_is_as_it_was_sent() -> None:
    earlier = post("c", "dc", since=Change(("b",), ("c",)))
    later = post("", "b", second=5)
    assert look_at([earlier, later], ("c", "d"), SOON).repair == Change(("b",), ("c",))
    later = post("c", "", second=5)
    assert look_at([earlier, later], ("c", "d"), SOON).repair == Change(("b",), ("c",))


@pytest.mark.parametrize(
    ("listed", "expected"),
    [("xo", added("o")), ("", removed("x")), ("xa", NO_CHANGE), ("x", NO_CHANGE)],
)
def test_edit_that_a_late_post_would_undo_is_remembered(listed, expected) -> None:
    look = look_at([post("x", "xa")], tuple(listed), SOON)
    assert look.open[0].since == expected
    assert look.open[0].seen == tuple(listed)


def test_person_whom_an_edit_removes_with_the_post_is_no_edit() -> None:
    look = look_at([post("xy", "ya")], ("y",), SOON)
    assert look.open[0].since == NO_CHANGE


def test_what_a_late_post_undid_is_nobodys_edit() -> None:
    earlier = post("", "a", since=added("b"))
    later = post("b", "bc", second=5)
    look = look_at([earlier, later], ("a",), SOON)
    assert look.repair == added("b")
    assert look.open[1].since == added("a")
