"""Changes to a list have the right effect, can be combined into one update, and can be undone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.approvals.rules import State
from bot.flows.rules import (
    Change,
    Flow,
    FlowList,
    Spellings,
    apply_change,
    difference,
    find_flow,
    identities_problem,
    identity_problem,
    is_before,
    is_flow_sid,
    mask,
    outside_edits,
    own_changes,
    plain,
    stored_spellings,
)
from bot.services.errors import (
    PermissionMissing,
    RateLimited,
    Redirected,
    ServiceError,
    ServiceFailed,
    ServiceRefused,
)
from bot.testusers.rules.applying import (
    ListChangePlan,
    Waiting,
    make_plan,
    next_run,
    tried,
    wishes_at,
)
from bot.testusers.rules.people import (
    Access,
    CurrentList,
    Did,
    Effect,
    Over,
    RequestPerson,
    Wants,
    change_of,
    inverse,
)
from bot.testusers.rules.requests import Attempts, Request, Who

SID = "FW00000000000000000000000000000001"
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
    [
        ("+15550100", "…0100"),
        ("abcde", "…bcde"),
        ("abcd", "…"),
        ("", "…"),
        ("bob@example.com", "b…@example.com"),
        ("b@x", "b…@x"),
        ("@example.com", "….com"),
        ("bobby@", "…bby@"),
        ("sip:bob@example.com", "….com"),
    ],
)
def test_a_mask_leaves_the_last_four_or_what_tells_addresses_apart(
    identity: str, seen: str
) -> None:
    assert mask(identity) == seen


@pytest.mark.parametrize(
    "spellings",
    [
        ("Bob@Example.com", "bob@example.com"),
        ("caf\u00e9@b.c", "cafe\u0301@b.c"),
        ("caf\u00e9@b.c", "cafe\u034f\u0301@b.c", "caf\u200de\u200d\u0301@b.c"),
        ("whatsapp:+1555", "whatsapp:+\u200b1555", "\uff37hatsapp:+1555", "whatsapp:+1\u200d555"),
        ("Stra\u00dfe@x.y", "STRASSE@x.y"),
        ("a\ufe0fb", "ab", "a\u00adb", "a\U000e0041b"),
    ],
)
def test_spellings_that_differ_in_case_form_or_unseen_characters_are_one_person(spellings) -> None:
    assert len({*map(plain, spellings)}) == 1
    assert list(Spellings(spellings).of(spellings[-1])) == list(spellings)
    problem = identities_problem(spellings[:2])
    assert problem is not None
    assert "two spellings of one person" in problem


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("+1555", "1555"), ("a b", "ab")])
def test_other_identities_are_other_people(one: str, other: str) -> None:
    assert plain(one) != plain(other)
    assert identities_problem([one, other]) is None


def test_a_spelling_of_the_service_is_taken_only_if_it_is_clear() -> None:
    assert stored_spellings(["Bob"], ["bob", "x"]) == {"Bob": "bob"}
    assert stored_spellings(["Bob"], ["bob", "BOB"]) == {}
    assert stored_spellings(["Bob", "BOB"], ["bob"]) == {}


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


@st.composite
def histories(draw: st.DrawFn) -> list[FlowList]:
    """Generate consecutive lists: those that the bot read, and the results of its changes."""
    history = [FlowList(1, NOW, draw(lists), is_own=False)]
    for number in range(draw(st.integers(0, 5))):
        is_own = draw(st.booleans())
        after = apply_change(history[-1].identities, draw(changes())) if is_own else draw(lists)
        history.append(FlowList(number + 2, NOW, after, is_own))
    return history


@given(histories())
def test_outside_edits_are_all_changes_but_our_own(history: list[FlowList]) -> None:
    """Whatever happened to a person last explains whether they are on the list."""
    edits = outside_edits(history)
    first, last = set(history[0].identities), set(history[-1].identities)
    own = [*own_changes(history)]
    untouched = {name for name in "abcdefgh" if not any(name in one.identities for one in own)}
    assert {name for name in edits.additions if name in untouched} == (last - first) & untouched
    assert {name for name in edits.removals if name in untouched} == (first - last) & untouched
    if all(one.is_own for one in history[1:]):
        assert edits.is_empty


def test_a_list_that_shows_none_of_a_change_of_our_own_is_older() -> None:
    history = [
        FlowList(1, NOW, ("a",), is_own=False),
        FlowList(2, NOW, ("a", "b"), is_own=True),
        FlowList(3, NOW, ("b",), is_own=True),
    ]
    assert is_before(history, (), ("a",))
    assert not is_before(history, (), ("b",))
    assert is_before(history, ("a",), ("a",))
    assert not is_before(history, ("a", "b"), ("a",))


def test_a_spelling_that_was_removed_does_not_show_that_another_was_added() -> None:
    history = [
        FlowList(1, NOW, ("bob",), is_own=False),
        FlowList(2, NOW, (), is_own=True),
        FlowList(3, NOW, ("BOB", "kim"), is_own=True),
    ]
    assert is_before(history, (), ("bob",))
    assert not is_before(history, (), ("Bob", "kim"))
    # Here, the older list has the same people.
    assert not is_before([*history[:2], FlowList(3, NOW, ("BOB",), is_own=True)], (), ("bob",))


NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
OTTO = Who("U0OTTO", "Otto")
ends = st.none() | st.integers(-3, 3).map(lambda hours: NOW + timedelta(hours=hours))


def current(*listed: str, **ends_of) -> CurrentList:
    return CurrentList(listed, ends_of)


def test_changes_already_made_are_named_and_dropped() -> None:
    wishes = [RequestPerson.added(one) for one in "ab"]
    wishes += [RequestPerson.removed(one) for one in "cd"]
    people, dropped = current("a", "c").planned(wishes, NOW)
    assert [(one.spelling, one.shown) for one in people] == [
        ("b", Effect.ADD),
        ("c", Effect.REMOVE),
    ]
    assert dropped == Change(("a",), ("d",))


@pytest.mark.parametrize(
    ("end", "present", "effect"),
    [
        (None, None, None),
        (None, LATER, Effect.KEEP),
        (LATER, None, Effect.LIMIT),
        (LATER, LATER, None),
        (LATER, LATER + timedelta(1), Effect.LIMIT),
        (LATER + timedelta(1), LATER, Effect.KEEP),
        (LATER, NOW, Effect.ADD),
    ],
)
def test_adding_somebody_again_changes_only_the_end_of_their_access(end, present, effect) -> None:
    person = RequestPerson.added("a", end)
    assert current("a", a=present).effect(person, NOW) is effect
    assert current("b").effect(person, NOW) is Effect.ADD


def test_a_removal_takes_every_spelling_off_the_list() -> None:
    listed = current("Bob", "x", "bob")
    people, _ = listed.planned([RequestPerson.removed("BOB")], NOW)
    assert [one.spelling for one in people] == ["Bob", "bob"]
    respelled = [*current("bOB", "bob", "BoB").spelled(people)]
    assert [one.spelling for one in respelled] == ["bOB", "bob", "BoB"]
    assert [one.shown for one in respelled] == [Effect.REMOVE, Effect.REMOVE, None]


@given(ends, ends, st.booleans(), st.booleans())
def test_what_came_of_a_wish_is_found_or_made(end, present, was_listed, adds) -> None:
    """Compare with a model: the list and the end of access before and after."""
    before = Access("1", "a", NOW, present) if was_listed else None
    wish = RequestPerson.added("a", end) if adds else RequestPerson.removed("a")
    done = wish.made("a", NOW, before, was_listed=was_listed)
    was = ("on", present) if was_listed else ("off", None)
    after = ("on", end) if adds else ("off", None)
    assert (done.did is Did.MADE) is (was != after)
    assert done.has_access is (adds and was != after)
    assert (done.ends_at, done.earlier_end) == (after[1], was[1])
    assert done.gain == (after[0] == "on") - (was[0] == "on")


@given(st.data())
def test_an_undo_restores_the_list_and_the_ends_of_access(data: st.DataObject) -> None:
    """Compare with a model: who was on the list until when before the request, and after undoing.

    Whoever is no longer as the request left them stays as they are.
    """
    was = data.draw(st.dictionaries(names, ends, max_size=4))
    wishes = data.draw(st.dictionaries(names, st.tuples(st.booleans(), ends), max_size=4))
    people, now = list[RequestPerson](), dict(was)
    for name, (adds, end) in wishes.items():
        wish = RequestPerson.added(name, end) if adds else RequestPerson.removed(name)
        before = Access("0", name, NOW, was[name]) if name in was else None
        people.append(wish.made(name, NOW, before, was_listed=name in was))
        if adds:
            now[name] = end
        else:
            now.pop(name, None)
    undone = dict(now)
    for wish in inverse(people, CurrentList(now, now), NOW):
        if wish.wants is Wants.ADD:
            undone[wish.spelling] = wish.asked_end
        else:
            undone.pop(wish.spelling, None)
    expected = dict(was)
    for person in people:
        end = was.get(person.spelling)
        if person.did is not Did.MADE:
            continue
        if person.spelling in was and end is not None and end <= NOW:
            # What has ended by now isn't given again.
            expected.pop(person.spelling)
    assert undone == expected


def test_an_undo_leaves_what_is_over_and_who_came_back() -> None:
    added = RequestPerson.added("a").made("a", NOW, None, was_listed=False)
    removed = RequestPerson.removed("b").made("b", NOW, None, was_listed=True)
    assert (
        inverse([replace(added, over=Over.REPLACED, over_at=NOW), removed], current("a", "b"), NOW)
        == []
    )
    assert inverse([removed], current("B"), NOW) == []
    assert [one.wants for one in inverse([added, removed], current("a"), NOW)] == [
        Wants.REMOVE,
        Wants.ADD,
    ]


def asked(
    additions: str = "",
    removals: str = "",
    name: str = "r",
    *,
    retry_at=None,
    undo_of=None,
    **until,
) -> Request:
    """Return an approved request."""
    people = [RequestPerson.added(one, until.get(one)) for one in additions]
    people += [RequestPerson.removed(one) for one in removals]
    attempts, flow = Attempts(retry_at=retry_at), Flow("FW1")
    request = Request(name, flow, OTTO, tuple(people), NOW, LATER, undo_of=undo_of)
    return replace(request, state=State.APPLYING, attempts=attempts, list_id=1)


def plan_of(listed: str, *some: Request, over: list[Access] | None = None) -> ListChangePlan:
    return make_plan("p", NOW, [FlowList(1, NOW, tuple(listed), is_own=False)], some, over or [])


def held(identity: str, ends_at: datetime | None = NOW) -> Access:
    return Access("earlier", identity, NOW, ends_at)


def test_whose_time_is_over_already_goes_instead_of_coming() -> None:
    undo = asked("ab", a=NOW, b=LATER, undo_of="0")
    assert plan_of("a", undo).after == ("b",)
    assert change_of(wishes_at(undo, NOW)) == Change(("b",), ("a",))
    late = asked("ab", a=NOW, b=LATER)
    assert plan_of("", late).after == ("b",)
    assert [one.did for one in wishes_at(late, NOW)] == [Did.LATE, Did.OPEN]


def test_part_of_a_request_keeps_no_later_one_waiting() -> None:
    first = asked("ab", retry_at=LATER)
    made = first.people[0].made("a", NOW, None, was_listed=False)
    first = first.with_left([made, first.people[1]])
    second, third = asked("", "a", "2"), asked("", "b", "3")
    assert ready(NOW, first, second, third) == [second]


def test_access_ends_and_missing_people_are_reported() -> None:
    plan = plan_of("ax", asked("d"), over=[held(one) for one in "abc"])
    assert plan.after == ("x", "d")
    assert plan.over == ("a", "b", "c")


def ready(at: datetime, *requests: Request) -> list[Request]:
    return Waiting(at, requests, None, {}).ready


@given(st.lists(names, unique=True), st.lists(st.tuples(names, st.booleans()), max_size=6))
def test_a_plan_leaves_what_its_requests_ask_for_in_their_order(
    listed: list[str], some: list[tuple[str, bool]]
) -> None:
    requests = [
        asked(one, "", str(number)) if comes else asked("", one, str(number))
        for number, (one, comes) in enumerate(some)
    ]
    plan, after = plan_of("".join(listed), *requests), tuple(listed)
    for one, comes in some:
        after = apply_change(after, Change((one,)) if comes else Change((), (one,)))
    assert set(plan.after) == set(after)
    stayed = [item for item in listed if item in plan.after]
    assert list(plan.after[: len(stayed)]) == stayed
    assert plan.request_ids == [request.id for request in requests]
    assert plan.change == difference(listed, plan.after)
    there = tuple(listed)
    for request in requests:
        (person,) = request.left
        made = person.made(person.spelling, NOW, None, was_listed=person.spelling in there)
        size, there = len(there) + made.gain, apply_change(there, change_of([person]))
        assert size == len(there)
    assert difference(there, plan.after).is_empty


def test_a_later_request_for_somebody_waits_for_the_earlier_one() -> None:
    first = asked("a", name="1", retry_at=LATER)
    second = asked("", "A", "2")
    third = asked("b", name="3", retry_at=NOW)
    assert ready(NOW, first, second, third) == [third]
    assert ready(LATER, first, second, third) == [first, third]
    last = asked("b", name="4", retry_at=LATER)
    assert ready(NOW, second, last, third) == [second]


@pytest.mark.parametrize(("is_shared", "state"), [(True, State.APPLYING), (False, State.FAILED)])
@pytest.mark.parametrize(
    ("error", "status"),
    [(PermissionMissing, 403), *((ServiceRefused, status) for status in (400, 410, 422))],
)
def test_request_of_a_refused_shared_post_is_tried_alone(
    is_shared: bool, state: State, error: type[ServiceError], status: int
) -> None:
    refused = error("flow", "not a phone number", status=status)
    request = tried(asked("a"), refused, NOW, None, is_shared=is_shared)
    assert request.state is state
    assert (request.attempts.retry_at == NOW) == is_shared


@pytest.mark.parametrize("error", [RateLimited, ServiceFailed])
@pytest.mark.parametrize(("told", "pause"), [(0, 1), (0.5, 1), (7, 7), (60, 60), (61, None)])
def test_a_retry_waits_as_long_as_the_service_says(
    error: type[ServiceError], told: float, pause: float | None
) -> None:
    busy = error("flow", "is receiving too many requests.", status=503)
    busy.retry_after = told
    request = tried(asked("a"), busy, NOW, None, is_shared=True)
    if pause is None:
        assert request.state is State.FAILED
        assert "It asks not to be called again for 2 min." in request.attempts.failure
    else:
        assert request.attempts.retry_at == NOW + timedelta(seconds=pause)


@pytest.mark.parametrize("was_sent", [False, True])
def test_a_redirect_is_not_tried_again(*, was_sent: bool) -> None:
    post = plan_of("a", asked("b")) if was_sent else None
    redirect = Redirected("flow", "The flow service redirected the request.")
    request = tried(asked("b"), redirect, NOW, post, is_shared=False)
    assert (request.state, request.attempts.is_unsure) == (State.FAILED, was_sent)


@pytest.mark.parametrize(("told", "seconds"), [(0, 5), (90, 90), (9_999, 640)])
def test_an_overdue_end_waits_as_long_as_the_service_says(told: float, seconds: float) -> None:
    busy = RateLimited("flow", "is receiving too many requests.")
    busy.retry_after = told
    access = {"a": Access("r", "a", NOW - timedelta(hours=1), NOW)}
    waiting = Waiting(NOW, (), None, access)
    at = next_run(waiting, 1, busy, has_missing=False)
    assert at == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(("seconds", "is_settled"), [(59, False), (60, True)])
def test_post_without_an_answer_is_in_doubt_for_60_seconds(
    seconds: float, is_settled: bool
) -> None:
    post = plan_of("a", asked("b"))
    at = NOW + timedelta(seconds=seconds)
    assert post.is_settled_by(("a",), at) == is_settled
    assert post.is_settled_by(("a", "b"), at)
