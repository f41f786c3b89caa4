"""Taking back reasons from what was done, whatever was wished."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bot.model.testusers.applying import inverse_of
from bot.model.testusers.changes import Change, apply_change
from bot.model.testusers.requests import Done

NOW = datetime(2026, 1, 1, tzinfo=UTC)
names = st.sampled_from("abcdefgh")
ends = st.none() | st.integers(-3, 3).map(lambda hours: NOW + timedelta(hours=hours))


@st.composite
def dones(draw: st.DrawFn) -> Done:
    """What a request may have done: each person came, went, was there, or was gone already."""
    some = draw(st.lists(names, unique=True))
    kinds = [draw(st.integers(0, 3)) for _ in some]
    came, went, there, gone = (
        tuple(one for one, mine in zip(some, kinds, strict=True) if mine == kind)
        for kind in range(4)
    )
    before = {one: draw(ends) for one in (*went, *there) if draw(st.booleans())}
    after = {one: end for one in (*came, *there) if (end := draw(ends)) is not None}
    already = Change(there, gone)
    return Done(NOW, Change(came, went), already, Change(), 1, 1, after, before)


@given(dones(), st.lists(names, unique=True))
def test_who_came_goes_who_went_comes_and_ends_are_as_before(done: Done, listed: list[str]) -> None:
    change, restored = inverse_of(done, listed, NOW)
    after = apply_change(listed, change)
    for one in done.change.additions:
        assert one not in after
    for one in done.change.removals:
        end = done.previous_ends.get(one)
        assert (one in after) is (end is None or end > NOW or one in listed)
        assert one not in change.additions or restored.get(one) == end
    for one in done.already.additions:
        was, became = done.previous_ends.get(one), done.ends_at.get(one)
        if one not in listed or was == became:
            assert one not in change.identities
        elif was is not None and was <= NOW:
            assert one in change.removals
        else:
            assert one in change.additions
            assert restored.get(one) == was
    assert set(change.identities) <= {*done.change.identities, *done.already.additions}
