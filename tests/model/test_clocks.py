"""What the `Date` of an answer tells of a clock."""

import pytest

from bot.checks.rules.clocks import (
    ReportedTime,
    agrees,
    ahead_or_behind,
    is_step,
    is_wrong,
    time_in,
)


@pytest.mark.parametrize(
    ("asked_at", "reported", "answered_at", "ahead"),
    [
        (100.0, 100.0, 100.2, 0.0),
        # Told in whole seconds.
        (100.9, 100.0, 101.1, 0.0),
        # Any moment of a slow call.
        (100.0, 109.0, 110.0, 0.0),
        (175.0, 100.0, 176.0, 74.0),
        (25.0, 100.0, 26.0, -74.0),
    ],
)
def test_clock_is_ahead_by_what_no_delay_explains(asked_at, reported, answered_at, ahead) -> None:
    assert ReportedTime(asked_at, reported, answered_at).ahead == ahead


def test_time_is_read_from_a_date_header() -> None:
    assert time_in("Sat, 21 Nov 2026 19:00:00 GMT") == 1795287600.0
    assert time_in("Sat, 21 Nov 2026 20:00:00 +0100") == 1795287600.0
    assert time_in("") is None
    assert time_in("soon") is None


def test_difference_is_said_with_its_direction() -> None:
    assert ahead_or_behind(74.4) == "74 s ahead of"
    assert ahead_or_behind(1.0) == "1 s ahead of"
    assert ahead_or_behind(-0.6) == "1 s behind"
    assert ahead_or_behind(-300.0) == "300 s behind"


@pytest.mark.parametrize("sign", [1, -1])
def test_clock_is_wrong_from_a_minute_and_right_within_two_seconds(sign) -> None:
    assert [is_wrong(sign * seconds) for seconds in (59.5, 60.0, 60.5)] == [False, False, True]
    assert [agrees(sign * seconds) for seconds in (1.5, 2.0, 2.5)] == [True, True, False]


@pytest.mark.parametrize("sign", [1, -1])
def test_clock_that_goes_on_by_a_second_too_many_was_set(sign) -> None:
    assert [is_step(sign * seconds) for seconds in (0.5, 1.0, 1.5)] == [False, True, True]
