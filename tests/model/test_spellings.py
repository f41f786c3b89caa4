"""Who on a list is meant by an identity that stands there in another spelling."""

from hypothesis import given
from hypothesis import strategies as st

from bot.spelling import tidy_identity
from bot.testusers.rules.changes import Change, Spellings, apply_change

MARKED, OTHER = "\u202a+1\u202c", "\u200e+1"
COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"
spelled = st.sampled_from(
    ("+1", MARKED, OTHER, COMPOSED, DECOMPOSED, "+1-5", "+1\u20115", "x", "y")
)
lists = st.lists(spelled, unique=True)


@given(lists, lists)
def test_nobody_is_meant_who_is_neither_listed_nor_named(listed, named) -> None:
    typed = list(dict.fromkeys(map(tidy_identity, named)))
    spellings = Spellings(listed)
    for item in typed:
        meant = spellings.meant([item])
        assert {tidy_identity(each) for each in meant} == {item}
        if item in listed:
            assert meant == (item,)
        else:
            as_read = [each for each in listed if tidy_identity(each) == item]
            assert list(meant) == (as_read or [item])
    everybody = spellings.meant(typed)
    assert len(set(everybody)) == len(everybody)


@given(lists, lists)
def test_all_others_stay_as_they_are_spelled(listed, named) -> None:
    meant = Spellings(listed).meant(list(map(tidy_identity, named)))
    left = apply_change(listed, Change(removals=meant))
    assert list(left) == [item for item in listed if item not in meant]
    added = apply_change(listed, Change(meant))
    assert list(added[: len(listed)]) == listed
    assert not {tidy_identity(item) for item in added[len(listed) :]} & set(
        map(tidy_identity, left)
    )


def test_very_identity_comes_before_its_other_spellings() -> None:
    spellings = Spellings([MARKED, "+1", OTHER])
    assert spellings.meant(["+1"]) == ("+1",)
    assert spellings.others(["+1", "+2"]) == (MARKED, OTHER)
    assert Spellings([MARKED, OTHER]).meant(["x", "+1"]) == ("x", MARKED, OTHER)


def test_exact_spelling_that_is_not_listed_is_no_other() -> None:
    assert Spellings(["+1", OTHER]).meant([MARKED]) == (MARKED,)
