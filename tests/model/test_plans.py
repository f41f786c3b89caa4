"""What each plan allows, and what of it is left to whom."""

import pytest

from bot.quotas.rules.plans import MINUTE_OF_ONE_PERSON, CallClass, Limits, Plan, limits_of


@pytest.mark.parametrize(
    ("plan", "day", "concurrent"),
    [
        (Plan.FREE, 1000, 5),
        (Plan.STANDARD, 2000, 10),
        (Plan.PROFESSIONAL, 5000, 10),
        (Plan.PREMIUM, 10_000, 10),
        (Plan.ENTERPRISE, 10_000, 10),
    ],
)
def test_limits_are_those_of_the_specification(plan, day, concurrent):
    assert limits_of(plan) == Limits(minute=100, day=day, concurrent=concurrent)


@pytest.mark.parametrize(
    ("call_class", "left"),
    [
        (CallClass.PERSON, Limits(99, 1001, 10)),
        (CallClass.PROBE, Limits(99, 1001, 10)),
        (CallClass.BACKGROUND, Limits(79, 800, 8)),
    ],
)
def test_background_leaves_at_least_a_fifth_to_people(call_class, left):
    assert Limits(99, 1001, 10).left_to(call_class) == left


def test_one_person_has_half_of_the_minute():
    assert limits_of(Plan.FREE).minute == 2 * MINUTE_OF_ONE_PERSON
