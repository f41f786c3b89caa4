"""Whose turn it is among clients."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.quotas.plans import Limits
from bot.model.quotas.quota import Full, Granted, HeldCall, LimitKind
from bot.model.turns import (
    ClientCall,
    ClientTurn,
    ClientUse,
    LineStanding,
    OthersWait,
    Waiting,
    in_turn,
    may_go,
    within_share,
)

LIMITS = Limits(100, 1000, 5)
# Of these, 80 of a minute, 800 of a day and 4 at once are left to clients.
MINUTE, DAY, CONCURRENT = LimitKind.MINUTE, LimitKind.DAY, LimitKind.CONCURRENT


def names(waiting, used=None, left=None) -> str:
    return "".join(one.client for one in in_turn(waiting, used or {}, left or {}))


def line(clients: str) -> list[Waiting]:
    return [Waiting(number, client) for number, client in enumerate(clients)]


def test_client_that_holds_fewest_slots_goes_first():
    assert names(line("aab"), {"a": 3}) == "baa"
    assert names(line("aaabbb"), {"b": 2}) == "aaabbb"
    assert names(line("aaab"), {"a": 1}) == "baaa"


def test_clients_that_hold_as_many_go_in_their_order():
    assert names(line("bac")) == "bac"


def test_client_is_judged_by_its_call_that_waits_longest():
    assert names(line("abba")) == "abba"


def test_client_without_share_left_stands_in_nobodys_way():
    assert names(line("aab"), {}, {"a": 1, "b": 0}) == "a"


@given(st.text("abc", max_size=20), st.dictionaries(st.sampled_from("abc"), st.integers(0, 50)))
def test_nobody_is_left_out_and_calls_keep_their_order(clients, used):
    order = in_turn(line(clients), used, {})
    assert Counter(one.client for one in order) == Counter(clients)
    for client in "abc":
        tickets = [one.ticket for one in order if one.client == client]
        assert tickets == sorted(tickets)


@given(st.text("abc", min_size=1, max_size=20))
def test_equal_clients_stay_within_one_call_of_each_other(clients):
    order = in_turn(line(clients), {}, {})
    for end in range(len(order)):
        gone = Counter(one.client for one in order[:end])
        left = {one.client for one in order[end:]}
        assert all(gone[one] <= min(gone[name] for name in left) + 1 for one in left)


@pytest.mark.parametrize(
    ("use", "day", "full"),
    [
        (ClientUse(19, 0), 199, None),
        (ClientUse(20, 1), 199, Full(MINUTE, 20, 20)),
        (ClientUse(19, 1), 199, Full(CONCURRENT, 1, 1)),
        (ClientUse(20, 1), 200, Full(DAY, 200, 200)),
    ],
)
def test_share_is_used_up_at_its_last_call(use, day, full):
    assert within_share(LIMITS, ClientTurn("a", 0.25), use, day) == full


def test_share_is_everything_that_clients_have_where_none_is_told():
    assert within_share(LIMITS, ClientTurn("a"), ClientUse(79, 3), 799) is None
    assert within_share(LIMITS, ClientTurn("a"), ClientUse(80, 3), 799) == Full(MINUTE, 80, 80)


def test_call_goes_before_those_who_wait_only_where_it_is_next():
    granted = Granted(1, 2, 3)
    assert may_go(granted, ClientTurn("a"), ClientUse(0, 0)) is granted
    assert may_go(granted, ClientTurn("a"), ClientUse(0, 0, others_wait=True)) == OthersWait()
    next_one = ClientTurn("a", is_next=True)
    assert may_go(granted, next_one, ClientUse(0, 0, others_wait=True)) is granted
    assert may_go(granted, next_one, ClientUse(0, 0)) is granted


def held(count, client="a", now=100.0) -> list[ClientCall]:
    return [ClientCall(HeldCall(now + 60 + n, now - 1), client) for n in range(count)]


def running(count, client="a", now=100.0) -> list[ClientCall]:
    return [ClientCall(HeldCall(now + 70, now + 5 + n), client) for n in range(count)]


def standing(calls=(), waiting=(), day=0) -> LineStanding:
    return LineStanding(100.0, LIMITS, day, calls, waiting)


def test_room_is_what_is_left_to_clients():
    assert LineStanding(100.0, LIMITS, 0, held(10), []).room == 4
    assert LineStanding(100.0, LIMITS, 0, held(78), []).room == 2
    assert LineStanding(100.0, LIMITS, 0, held(90), []).room == 0
    assert LineStanding(100.0, LIMITS, 799, [], []).room == 1


@pytest.mark.parametrize(
    ("line_standing", "full"),
    [
        (standing(held(79), day=799), None),
        (standing(running(3)), None),
        (standing(held(81)), Full(MINUTE, 81, 80, 161.0)),
        (standing(running(4)), Full(CONCURRENT, 4, 4, 105.0)),
        (standing([*held(76), *running(4)], day=800), Full(DAY, 800, 800, 999.0)),
        (standing([*held(76), *running(4)]), Full(MINUTE, 80, 80, 160.0)),
    ],
)
def test_limit_that_lasts_longest_is_told_first(line_standing, full):
    assert line_standing.full(resets_at=999.0) == full


@pytest.mark.parametrize(
    ("calls", "kind", "is_stalled"), [(running(4), CONCURRENT, True), (held(81), MINUTE, False)]
)
def test_standstill_is_told_where_it_is_why_no_call_is_made(calls, kind, is_stalled):
    full = replace(standing(calls), is_stalled=True).full()
    assert (full.kind, full.is_stalled) == (kind, is_stalled)


def test_room_is_what_is_left_at_once_too():
    assert standing(running(1)).room == 3


def test_standing_with_another_line_is_the_same_otherwise():
    assert standing(held(3)).with_line(line("ab")) == standing(held(3), line("ab"))


def test_next_slot_is_later_for_who_has_others_ahead():
    full = standing(held(80))
    assert [full.free_at(ahead) for ahead in (0, 1, 2)] == [160.0, 161.0, 162.0]
    assert full.free_at(79) == full.free_at(80) == 239.0


def next_ones(calls, waiting, shares) -> str:
    return "".join(one.client for one in standing(calls, waiting).next_ones(shares))


def test_share_of_the_line_is_counted_over_what_is_held():
    assert next_ones(held(19), line("aab"), {"a": 0.25}) == "ba"
    assert next_ones(held(39), line("aab"), {"a": 0.5}) == "ba"


def test_share_of_the_line_is_counted_over_calls_at_once():
    assert next_ones(running(1), line("aaaaa"), {"a": 0.75}) == "aa"
    assert next_ones(running(1, client=None), line("aaaaa"), {"a": 0.75}) == "aaa"


def test_line_without_shares_has_what_is_left_to_clients():
    assert next_ones([], line("aaaaa"), {}) == "aaaa"


def test_what_is_free_at_this_moment_is_held_no_more():
    over = [ClientCall(HeldCall(100.0, 100.0), "a")] * 3
    assert next_ones(over, line("aaaa"), {}) == "aaaa"
    assert next_ones(over, line("ab"), {}) == "ab"
