"""A change does what was approved to whatever list stands, and nothing else."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.testusers.rules.changes import (
    Change,
    Flow,
    apply_change,
    apply_changes,
    effect_of,
    find_flow,
    identities_problem,
    identity_problem,
    is_flow_sid,
    mask,
    mask_in,
    outside_edits,
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
    assert "Who?" in (identities_problem([]) or "")
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


def test_what_is_true_already_is_named_and_dropped() -> None:
    effect = effect_of(Change(("a", "b"), ("c", "d")), ["a", "c"], {}, timed=())
    assert effect.change == Change(("b",), ("c",))
    assert effect.dropped == Change(("a",), ("d",))
    assert effect.end_changes == ()


def test_adding_somebody_again_replaces_the_end_of_a_grant() -> None:
    made_permanent = effect_of(Change(("a", "b")), ["a", "b"], {"a": END}, timed=())
    assert made_permanent.change == Change(("a",))
    assert made_permanent.end_changes == ("a",)
    assert made_permanent.dropped == Change(("b",))
    given_an_end = effect_of(Change(("b",)), ["b"], {}, timed=["b"])
    assert given_an_end.end_changes == ("b",)


@given(lists, changes())
def test_after_a_change_it_is_true_and_the_others_stand_as_they_stood(
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
