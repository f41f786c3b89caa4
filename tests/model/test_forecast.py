"""When the day ends at the pace of the last hour."""

import pytest

from bot.quotas.rules.limits import DaySource, DayUse
from bot.quotas.rules.use import HourOfCalls, forecast

NOW = 1_000_000.0
HOUR = 3600.0
MINUTE = 60.0


def calls_of(hour_at, calls):
    return HourOfCalls(hour_at, "list", None, calls)


def a_day(used, resets_at=None):
    return DayUse(used, 1000, DaySource.PLAN, resets_at)


@pytest.mark.parametrize(
    ("used", "last_hour", "ends_in_hours"),
    [(500, 100, 5), (900, 10, 10), (999, 60, 1 / 60), (1000, 3, 0), (1000, 0, 0), (1200, 0, 0)],
)
def test_the_end_is_what_is_left_at_the_pace_of_the_last_hour(used, last_hour, ends_in_hours):
    assert forecast(a_day(used), last_hour, NOW) == pytest.approx(
        NOW + ends_in_hours * HOUR, abs=MINUTE
    )


@pytest.mark.parametrize(("used", "last_hour"), [(20, 0), (20, 1), (20, 39), (0, 40)])
def test_an_allowance_that_lasts_25_hours_has_no_end(used, last_hour):
    assert forecast(a_day(used), last_hour, NOW) is None


def test_a_told_reset_before_the_end_means_that_it_lasts():
    for hours in (4, 5):
        assert forecast(a_day(500, NOW + hours * HOUR), 100, NOW) is None
    assert forecast(a_day(500, NOW + 6 * HOUR), 100, NOW) == NOW + 5 * HOUR


@pytest.mark.parametrize("minutes", [0, 7, 30, 59])
def test_steady_calls_have_no_end_at_any_minute_of_the_hour(minutes):
    now, begun = NOW // HOUR * HOUR + minutes * 60, minutes / 60
    this_hour = NOW // HOUR * HOUR
    old = [calls_of(this_hour, round(39 * begun))]
    old += [calls_of(this_hour - n * HOUR, 39) for n in range(1, 27)]
    assert forecast(a_day(975), 39, now, old) is None


def test_burst_ends_the_day_though_old_calls_leave():
    old = [calls_of(NOW - 20 * HOUR, 500), calls_of(NOW - HOUR, 200)]
    # 700 are used: 300 are left for 2 h; the 500 leave in 5 h.
    assert forecast(a_day(700), 150, NOW, old) == pytest.approx(NOW + 2 * HOUR, abs=MINUTE)
    # By then enough have left.
    assert forecast(a_day(700), 30, NOW, old) is None
