"""How many calls at once a 1070 leaves."""

import pytest

from bot.quotas.rules.plans import Lowered, Plan, limits_of, lower_concurrency

DAY = 24 * 3600.0


@pytest.mark.parametrize(
    ("beside", "used", "limit"),
    [
        (7, 8, 7),
        (9, 10, 9),
        (5, 6, 5),
        # It overtook others on the way.
        (2, 10, 5),
        # So few every plan allows: another client has the rest.
        (4, 5, None),
        (0, 1, None),
    ],
)
def test_refused_call_leaves_as_many_as_were_beside_it(beside, used, limit):
    lowered = lower_concurrency(None, beside=beside, used=used, at=100.0)
    assert lowered == (None if limit is None else Lowered(limit, 100.0 + DAY))


def test_lowered_limit_lasts_from_the_last_refusal():
    known = Lowered(6, 50.0 + DAY)
    lowered = lower_concurrency(known, beside=9, used=10, at=100.0)
    assert lowered == Lowered(6, 100.0 + DAY)


@pytest.mark.parametrize(
    ("limit", "plan", "now", "binds"),
    [
        (7, Plan.PREMIUM, 99.0, True),
        (7, Plan.PREMIUM, 100.0, False),
        (9, Plan.PREMIUM, 99.0, True),
        (10, Plan.PREMIUM, 99.0, False),
        (7, Plan.FREE, 99.0, False),
    ],
)
def test_lowered_limit_binds_below_the_plans_and_for_a_day(limit, plan, now, binds):
    assert Lowered(limit, 100.0).binds(limits_of(plan).concurrent, now) is binds
