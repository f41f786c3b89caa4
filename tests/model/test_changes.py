"""Changes to a list have the right effect, can be combined into one update, and can be undone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.approvals.rules import State
from bot.flows.rules.flows import Flow, find_flow, is_flow_sid
from bot.flows.rules.identities import identities_problem, identity_problem, mask, mask_in
from bot.flows.rules.lists import NO_CHANGE, Change, apply_change, apply_changes, outside_edits
from bot.services.errors import PermissionMissing, ServiceError, ServiceRefused
from bot.testusers.rules.applying import (
    Ending,
    ListChangePlan,
    Post,
    inverse_of,
    make_plan,
    tried,
    whose_turn,
)
from bot.testusers.rules.requests import (
    Attempts,
    Comparison,
    Done,
    Grant,
    ReadList,
    Request,
    RequestedChange,
    Result,
    Who,
    planned_change,
)

SID = "FW00000000000000000000000000000001"
END = datetime(2026, 1, 1, tzinfo=UTC)
names = st.sampled_from("abcdefgh")
lists = st.lists(names, unique=True).map(tuple)


@st.composite
def changes(draw: st.DrawFn) -> Change:
    chosen = draw(st.lists(names, unique=True))
    cut = draw(st.integers(0, len(chosen)))
    return Change(tuple(chosen[:cut]), tuple(chosen[cut:]))


@pytest.mark.parametrize(
    ("identity", "said"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("é" * 150, None),
        ("é" * 151, "302 bytes"),
        ("x" * 300, None),
        ("x" * 301, "301 bytes"),
        ("\ud83d", "can't send"),
        ("whatsapp:+15550100", None),
    ],
)
def test_an_identity_has_1_to_300_bytes(identity: str, said: str | None) -> None:
    problem = identity_problem(identity)
    assert problem is None if said is None else said in (problem or "")


def test_identities_are_named_once_and_fit_one_card() -> None:
    assert identities_problem(["a", "b"]) is None
    assert "Add at least one" in (identities_problem([]) or "")
    assert "“a” is listed twice" in (identities_problem(["a", "b", "a"]) or "")
    assert "301 bytes" in (identities_problem(["a", "x" * 301]) or "")
    assert "Please split them up" in (identities_problem([f"{n:0300}" for n in range(20)]) or "")
    assert "Please split them up" in (
        identities_problem([f"{n}{'&' * 295}" for n in range(5)]) or ""
    )


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (SID, True),
        (f"{SID}\n", False),
        (SID[:-1], False),
        (SID.lower(), False),
        ("FW" + "g" * 32, False),
    ],
)
def test_a_sid_has_its_form_to_the_last_character(text: str, holds: bool) -> None:
    assert is_flow_sid(text) is holds


def test_a_flow_is_found_by_alias_or_sid_in_any_case() -> None:
    letters = "FW" + "ab" * 16
    aliases = {"welcome": letters}
    assert find_flow("Welcome", aliases) == Flow(letters, "welcome")
    assert find_flow(letters.upper(), aliases) == Flow(letters, "welcome")
    assert find_flow(SID, aliases) == Flow(SID)
    assert find_flow("other", aliases) is None
    assert Flow(letters).key == Flow("FW" + "AB" * 16).key == "FW" + "AB" * 16


@pytest.mark.parametrize(
    ("identity", "seen"),
    [("+15550100", "…0100"), ("abcde", "…bcde"), ("abcd", "…"), ("", "…")],
)
def test_a_mask_shows_the_last_four_of_longer_ones(identity: str, seen: str) -> None:
    assert mask(identity) == seen


def test_identities_in_words_are_masked_the_longest_first() -> None:
    people = ["ada", "ada@example.com", ""]
    assert mask_in("Call Ada@example.com or ada, not Adam.", people) == "Call ….com or …, not Adam."


def planned(
    wanted: RequestedChange, *listed: str, granted: str = ""
) -> tuple[RequestedChange, Change]:
    grants = {who: Grant(who, "1", OTTO, (), NOW, END) for who in granted}
    return planned_change(ReadList(listed, NOW, 0, grants), wanted)


def test_changes_already_made_are_named_and_dropped() -> None:
    wanted = RequestedChange(Change(("a", "b"), ("c", "d")))
    found, dropped = planned(wanted, "a", "c")
    assert found.change == Change(("b",), ("c",))
    assert dropped == Change(("a",), ("d",))
    assert found.end_changes == ()


def test_adding_somebody_again_replaces_the_end_of_a_grant() -> None:
    wanted = RequestedChange(Change(("a", "b")))
    made_permanent, dropped = planned(wanted, "a", "b", granted="a")
    assert made_permanent.change == Change(("a",))
    assert made_permanent.end_changes == ("a",)
    assert made_permanent.current_ends == {"a": END}
    assert dropped == Change(("b",))
    given_an_end, _ = planned(RequestedChange(Change(("b",)), ends={"b": END}), "b")
    assert given_an_end.end_changes == ("b",)


@given(lists, changes())
def test_a_change_is_applied_and_leaves_all_others_in_place(
    listed: tuple[str, ...], change: Change
) -> None:
    after = apply_change(listed, change)
    assert set(change.additions) <= set(after)
    assert not set(change.removals) & set(after)
    others = [item for item in listed if item not in change.identities]
    assert [item for item in after if item not in change.identities] == others
    assert apply_change(after, change) == after


@given(lists, st.lists(changes(), max_size=4), lists)
def test_outside_edits_explain_the_list_together_with_our_own(
    seen: tuple[str, ...], own: list[Change], found: tuple[str, ...]
) -> None:
    edits = outside_edits(seen, own, found)
    assert set(apply_change(apply_changes(seen, own), edits)) == set(found)
    assert edits.is_empty is (set(apply_changes(seen, own)) == set(found))


NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
OTTO = Who("U0OTTO", "Otto")
ends = st.none() | st.integers(-3, 3).map(lambda hours: NOW + timedelta(hours=hours))


@st.composite
def dones(draw: st.DrawFn) -> Done:
    """Generate a possible result: some people were added or removed, and some needed no change."""
    some = draw(st.lists(names, unique=True))
    kinds = [draw(st.integers(0, 3)) for _ in some]
    came, went, there, gone = (
        tuple(one for one, mine in zip(some, kinds, strict=True) if mine == kind)
        for kind in range(4)
    )
    before = {item: draw(ends) for item in (*went, *there) if draw(st.booleans())}
    after = {item: end for item in (*came, *there) if (end := draw(ends)) is not None}
    already = Change(there, gone)
    return Done(NOW, Change(came, went), already, Change(), 1, 1, after, before)


@given(dones(), st.lists(names, unique=True))
def test_who_came_goes_who_went_comes_and_ends_are_as_before(done: Done, listed: list[str]) -> None:
    change, restored = inverse_of(done, (), listed, NOW)
    after = apply_change(listed, change)
    for identity in done.change.additions:
        assert identity not in after
    for identity in done.change.removals:
        end = done.previous_ends.get(identity)
        assert (identity in after) is (end is None or end > NOW or identity in listed)
        assert identity not in change.additions or restored.get(identity) == end
    for identity in done.already.additions:
        was, became = done.previous_ends.get(identity), done.ends_at.get(identity)
        if identity not in listed or was == became:
            assert identity not in change.identities
        elif was is not None and was <= NOW:
            assert identity in change.removals
        else:
            assert identity in change.additions
            assert restored.get(identity) == was
    assert set(change.identities) <= {*done.change.identities, *done.already.additions}


def asked(change: Change, name: str = "r", *, retry_at: datetime | None = None, **more) -> Request:
    """Return an approved request."""
    requested = RequestedChange(change, Comparison(more.pop("seen", ())), **more)
    attempts = Attempts(retry_at=retry_at)
    return Request(
        name, Flow("FW1"), OTTO, requested, NOW, LATER, State.APPLYING, attempts=attempts
    )


def plan_of(listed: str, *some: Request, **more) -> ListChangePlan:
    return make_plan("p", tuple(listed), NOW, some, **more)


def grant(identity: str, ends_at: datetime | None = NOW) -> Grant:
    return Grant(identity, "earlier", OTTO, (), NOW, ends_at)


def test_whose_time_is_over_already_goes_instead_of_coming() -> None:
    ends = {"a": NOW, "b": LATER}
    plan = plan_of("a", asked(Change(("a", "b")), ends=ends, undo_of="0"))
    assert plan.after == ("b",)
    assert plan.steps[0].wanted == Change(("b",), ("a",))
    assert plan.steps[0].over == ("a",)


def in_part(change: Change, part: Change, **more) -> Request:
    """Return an approved request whose first attempt failed after making some of the changes."""
    request = asked(change, **more)
    done = Done(NOW, part, NO_CHANGE, NO_CHANGE, 0, 1)
    return replace(request, result=Result(done=done))


def test_part_of_a_request_keeps_no_later_one_waiting() -> None:
    first = in_part(Change(("a", "b")), Change(("a",)), retry_at=LATER)
    second, third = asked(Change((), ("a",)), "2"), asked(Change((), ("b",)), "3")
    assert whose_turn([first, second, third], NOW) == [second]


def test_grants_end_and_missing_people_are_reported() -> None:
    due = [grant("a"), grant("b"), grant("c"), grant("d")]
    plan = plan_of("ax", asked(Change(("d",))), over=due)
    assert plan.after == ("x",)
    gone = {"a": False, "b": True, "c": True, "d": False}
    assert plan.endings == tuple(Ending(item, "earlier", gone[item]) for item in "abcd")


@given(st.lists(names, unique=True), st.lists(st.tuples(names, st.booleans()), max_size=6))
def test_a_plan_leaves_what_its_requests_ask_for_in_their_order(
    listed: list[str], some: list[tuple[str, bool]]
) -> None:
    changes = [Change((one,)) if comes else Change((), (one,)) for one, comes in some]
    requests = [asked(change, str(number)) for number, change in enumerate(changes)]
    plan = plan_of("".join(listed), *requests)
    assert set(plan.after) == set(apply_changes(listed, changes))
    stayed = [item for item in listed if item in plan.after]
    assert list(plan.after[: len(stayed)]) == stayed
    for step in plan.steps[-1:]:
        change = step.change
        assert step.size_before + len(change.additions) - len(change.removals) == len(plan.after)
    assert set(apply_changes(listed, [step.change for step in plan.steps])) == set(plan.after)


def test_a_later_request_for_somebody_waits_for_the_earlier_one() -> None:
    first = asked(Change(("a",)), "1", retry_at=LATER)
    second = asked(Change((), ("a",)), "2")
    third = asked(Change(("b",)), "3", retry_at=NOW)
    assert whose_turn([first, second, third], NOW) == [third]
    assert whose_turn([first, second, third], LATER) == [first, second, third]
    last = asked(Change(("b",)), "4", retry_at=LATER)
    assert whose_turn([second, last, third], NOW) == [second]


@pytest.mark.parametrize(("is_shared", "state"), [(True, State.APPLYING), (False, State.FAILED)])
@pytest.mark.parametrize(
    ("error", "status"),
    [(PermissionMissing, 403), *((ServiceRefused, status) for status in (400, 410, 422))],
)
def test_request_of_a_refused_shared_post_is_tried_alone(
    is_shared: bool, state: State, error: type[ServiceError], status: int
) -> None:
    refused = error("flow", "not a phone number", status=status)
    request = tried(asked(Change(("a",), ())), refused, NOW, None, is_shared=is_shared)
    assert request.state is state
    assert (request.attempts.retry_at == NOW) == is_shared


@pytest.mark.parametrize(("seconds", "is_settled"), [(59, False), (60, True)])
def test_post_without_an_answer_is_in_doubt_for_60_seconds(
    seconds: float, is_settled: bool
) -> None:
    post = Post(plan_of("a", asked(Change(("b",)))), NOW)
    at = NOW + timedelta(seconds=seconds)
    assert post.is_settled_by(("a",), at) == is_settled
    assert post.is_settled_by(("a", "b"), at)
