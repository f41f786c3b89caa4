"""When the day ends at the pace of the last hour."""

import pytest

from bot.model.days import DaySource, DayUse
from bot.model.forecast import forecast

NOW = 1_000_000.0
HOUR = 3600.0


def a_day(used, resets_at=None):
    return DayUse(used, 1000, DaySource.PLAN, resets_at)


@pytest.mark.parametrize(
    ("used", "last_hour", "ends_in_hours"),
    [(500, 100, 5), (900, 10, 10), (999, 60, 1 / 60), (1000, 3, 0), (1200, 0, 0)],
)
def test_the_end_is_what_is_left_at_the_pace_of_the_last_hour(used, last_hour, ends_in_hours):
    assert forecast(a_day(used), last_hour, NOW).ends_at == pytest.approx(
        NOW + ends_in_hours * HOUR
    )


@pytest.mark.parametrize("last_hour", [0, 1, 39])
def test_an_allowance_that_lasts_25_hours_has_no_end(last_hour):
    assert forecast(a_day(20), last_hour, NOW).ends_at is None


def test_a_told_reset_before_the_end_means_that_it_lasts():
    assert forecast(a_day(500, NOW + 4 * HOUR), 100, NOW).ends_at is None
    assert forecast(a_day(500, NOW + 6 * HOUR), 100, NOW).ends_at == NOW + 5 * HOUR
