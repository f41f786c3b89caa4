"""Whose turn it is among clients."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bot.model.quotas.plans import Limits
from bot.model.quotas.quota import HeldCall
from bot.model.turns import ClientCall, LineStanding, Waiting, in_turn

LIMITS = Limits(100, 1000, 5)


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


def held(count, client="a", now=100.0) -> list[ClientCall]:
    return [ClientCall(HeldCall(now + 60 + n, now - 1), client) for n in range(count)]


def test_room_is_what_is_left_to_clients():
    assert LineStanding(100.0, LIMITS, 0, held(10), []).room == 4
    assert LineStanding(100.0, LIMITS, 0, held(78), []).room == 2
    assert LineStanding(100.0, LIMITS, 0, held(90), []).room == 0
    assert LineStanding(100.0, LIMITS, 799, [], []).room == 1


def test_next_slot_is_later_for_who_has_others_ahead():
    standing = LineStanding(100.0, LIMITS, 0, held(80), [])
    assert [standing.free_at(ahead) for ahead in (0, 1, 2)] == [160.0, 161.0, 162.0]


def test_share_of_the_line_is_counted_over_what_is_held():
    standing = LineStanding(100.0, LIMITS, 0, held(19), line("aab"))
    order = standing.next_ones({"a": 0.25})
    assert [one.client for one in order] == ["b", "a"]
