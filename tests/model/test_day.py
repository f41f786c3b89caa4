"""The daily limit comes from the plan or the service, and what is left ends at some time."""

from dataclasses import replace

import pytest

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import (
    RESET,
    Limit,
    LimitKind,
    Plan,
    Source,
    day_began_at,
    day_use,
    limit_in_message,
    reported_day,
)
from bot.quotas.rules.quota import Blocks, InUse, Standing
from bot.services.calls import ReportedLimits

NOW = 1_000_000.0
HOUR = 3600.0
KEY = OrganizationKey("eu", "10")
PLAN = Limit(LimitKind.DAY, 1000)
REPORTED = Limit(LimitKind.DAY, 2500, Source.REPORTED)


def told(limit=2500, remaining=2400, reset=10_000, number=100, unsure=0):
    return reported_day(ReportedLimits(limit, remaining, reset), NOW, number, unsure)


def test_unreported_day_is_what_was_reserved_since_it_began():
    assert day_use(PLAN, NOW, 40) == (40, [PLAN])


def test_day_begins_25_hours_ago_or_with_a_reset_since_then():
    assert day_began_at(None, NOW) == NOW - 25 * HOUR
    day = told(reset=10_000)
    assert day_began_at(day, NOW) == day.resets_at - 24 * HOUR
    assert day_began_at(day, day.resets_at - 1) == day.resets_at - 24 * HOUR
    assert day_began_at(day, day.resets_at) == day.resets_at
    assert day_began_at(day, day.resets_at + 24 * HOUR) == day.resets_at
    assert day_began_at(day, day.resets_at + 30 * HOUR) == day.resets_at + 5 * HOUR
    # The longest day has 25 hours.
    assert day_began_at(told(reset=90_000), NOW) == NOW + 90_001 - 24 * HOUR


def test_later_calls_are_added_to_the_services_numbers():
    used, [day] = day_use(PLAN, NOW + 5, 110, told(number=100, unsure=2), 10)
    assert used == 100 + 2 + 10
    assert day == replace(REPORTED, until=NOW + 10_001)


def test_after_a_reset_only_later_calls_count_and_one_is_made_at_a_time():
    assert day_use(PLAN, NOW + 10_001, 3, told(), 10) == (3, [REPORTED, RESET])


def test_the_plan_applies_again_after_the_services_reset():
    assert day_use(PLAN, NOW + 10_001 + 24 * HOUR, 3, told(), 10) == (3, [PLAN])


@pytest.mark.parametrize(
    ("limit", "remaining", "reset"),
    [
        (0, 0, 100),
        (-5, 0, 100),
        (100, 50, 100),
        (1000, 1001, 100),
        (1000, -1, 100),
        (1000, 50, 0),
        (1000, 50, -1),
        (1000, 50, 90_001),
    ],
)
def test_absurd_headers_are_ignored(limit, remaining, reset):
    assert told(limit, remaining, reset) is None


@pytest.mark.parametrize(
    ("limit", "remaining", "reset"),
    [(101, 50, 100), (1000, 1000, 100), (1000, 0, 100), (1000, 50, 1), (1000, 50, 90_000)],
)
def test_sane_headers_set_the_day(limit, remaining, reset):
    day = told(limit, remaining, reset)
    assert (day.limit, day.used) == (limit, limit - remaining)
    assert day.resets_at == NOW + reset + 1


def test_a_45_may_lower_the_limit_but_not_raise_it():
    lower = replace(PLAN, most=500, source=Source.MESSAGE)
    assert day_use(PLAN, NOW, 7, lowered=500) == (7, [lower])
    for same_or_more in (1000, 5000):
        assert day_use(PLAN, NOW, 7, lowered=same_or_more) == (7, [PLAN])
    _, [day] = day_use(PLAN, NOW, 100, told(), lowered=1000)
    assert (day.most, day.until) == (1000, NOW + 10_001)


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        ("The API call rate limit of 1000 was exceeded", 1000),
        ("You have exceeded the maximum call rate limit of 1,000.", 1000),
        ("limit of 10,000 per day", 10_000),
        ("limit 10.000", 10_000),
        ("limit 5 000 reached", 5000),
        ("Error 45: 2,500 calls; try again in 60 minutes", None),
        ("only 200 calls a day", None),
        ("wait 30 s", None),
        ("the rate limit was exceeded", None),
        ("", None),
        ("code 45", None),
        ("9" * 40, None),
        ("too many calls from 192.168.100.200", None),
        ("limit of 1,000; you are at 192.168.100.200", 1000),
        ("1,001 calls of 2,500, and 1,002 before", None),
        ("limit of 999,999,999", 999_999_999),
        ("limit of 1,000,000,000", None),
    ],
)
def test_the_limit_in_a_message_is_read_with_its_separators(message, limit):
    assert limit_in_message(message) == limit


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        ("Organization 10234695 has exceeded its limit of 1,000 calls", 1000),
        ("The limit of 1,000 calls is reached; it resets at 2026-03-02 00:00", 1000),
        ("Organization 10234695 made 1,001 calls", None),
        ("2,500 calls were made, above the limit of 1,000", 1000),
        ("Retry after 3600", None),
        ("Please wait 900 and try again", None),
        ("Resets at 2026-03-02", None),
        ("The daily limit was exceeded. It resets at 12 AM.", None),
        ("The daily (24-hour) limit was exceeded", None),
        ("The daily limit was exceeded, try again at 5 PM", None),
        ("Daily limit exceeded (limit of 100 per minute)", None),
        ("exceeded its limit of 101 calls", 101),
    ],
)
def test_limit_is_no_id_no_date_and_no_pause(message, limit):
    assert limit_in_message(message) == limit


def test_numbers_of_a_minute_are_not_taken_for_a_days():
    assert reported_day(ReportedLimits(100, 99, 42), NOW, 1, 0) is None


def reported(limit="2500", remaining="2400", reset="60"):
    sent = {"Limit": limit, "Remaining": remaining, "Reset": reset}
    names = {f"X-Rate-Limit-{name}": value for name, value in sent.items() if value is not None}
    return ReportedLimits.from_headers(names)


def test_whole_numbers_are_taken_as_sent():
    assert reported() == ReportedLimits(limit=2500, remaining=2400, reset_seconds=60)
    assert reported("0", "0", "0") == ReportedLimits(0, 0, 0)
    assert reported("9" * 9) == ReportedLimits(999_999_999, 2400, 60)


@pytest.mark.parametrize("name", ["limit", "remaining", "reset"])
@pytest.mark.parametrize("sent", [None, "", "many", "-1", "1.5", "1,000", "²", "٣", "9" * 10])
def test_anything_else_tells_nothing(name, sent):
    assert reported(**{name: sent}) is None


@pytest.mark.parametrize(
    ("used", "last_hour", "ends_in_hours"),
    [(500, 100, 5), (900, 10, 10), (999, 60, 1 / 60), (1000, 3, 0), (1000, 0, 0), (1200, 0, 0)],
)
def test_the_end_is_what_is_left_at_the_pace_of_the_last_hour(used, last_hour, ends_in_hours):
    assert a_day(used).day_ends_at(last_hour) == pytest.approx(NOW + ends_in_hours * HOUR)


@pytest.mark.parametrize(("used", "last_hour"), [(20, 0), (20, 1), (20, 39), (0, 40)])
def test_an_allowance_that_lasts_25_hours_has_no_end(used, last_hour):
    assert a_day(used).day_ends_at(last_hour) is None


def test_an_allowance_that_outlasts_its_reset_has_no_end():
    for hours in (4, 5):
        assert a_day(500, NOW + hours * HOUR).day_ends_at(100) is None
    assert a_day(500, NOW + 6 * HOUR).day_ends_at(100) == NOW + 5 * HOUR


def a_day(used, resets_at=None) -> Standing:
    limits = [Limit(LimitKind.DAY, 1000, until=resets_at)]
    return Standing(KEY, Plan.FREE, InUse(day=used), limits, Blocks(), now=NOW)
