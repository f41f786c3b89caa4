"""The last 24 hours of an organization, by hour, person and kind."""

import pytest

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.blocks import BlockCode, Blocks
from bot.quotas.rules.limits import DaySource, DayUse, Plan, limits_of
from bot.quotas.rules.quota import InUse
from bot.quotas.rules.use import (
    Checked,
    Detail,
    Forecast,
    HourOfCalls,
    Standing,
    by_person,
    first_hour,
)

HOUR = 3600
THIS_HOUR = 1000 * HOUR
KEY = OrganizationKey("eu", "1")


def standing(blocks=Blocks()):  # noqa: B008 - it cannot be changed
    day = DayUse(20, 1000, DaySource.PLAN)
    return Standing(KEY, Plan.FREE, limits_of(Plan.FREE), InUse(), day, blocks)


def detail(*calls, at=THIS_HOUR):
    hours = [HourOfCalls(*call) for call in calls]
    return Detail("Acme", standing(), {}, hours, {}, Forecast(0, None), None, at)


@pytest.mark.parametrize("seconds", [0, 1, HOUR - 1])
def test_day_is_the_current_hour_of_the_clock_and_the_23_before(seconds):
    first = THIS_HOUR - 23 * HOUR
    assert first_hour(THIS_HOUR + seconds) == first
    by_hour = detail(at=THIS_HOUR + seconds).by_hour()
    assert by_hour == [(first + n * HOUR, 0) for n in range(24)]


def test_calls_of_an_hour_are_added_up():
    before = THIS_HOUR - HOUR
    one = detail(
        (before, "list", "U1", 2), (THIS_HOUR, "list", "U1", 3), (THIS_HOUR, "probe", None, 4)
    )
    assert one.by_hour()[-3:] == [(before - HOUR, 0), (before, 2), (THIS_HOUR, 7)]


def test_most_calls_are_first_and_equal_ones_in_order():
    one = detail(
        (THIS_HOUR, "watch", None, 2),
        (THIS_HOUR, "list", "U2", 2),
        (THIS_HOUR, "check", "U1", 1),
        (THIS_HOUR - HOUR, "check", "U1", 1),
        (THIS_HOUR - HOUR, "list", "U3", 3),
    )
    assert by_person(one.hours) == [("U3", 3), (None, 2), ("U1", 2), ("U2", 2)]
    assert one.by_kind() == [("list", 5), ("check", 2), ("watch", 2)]


def test_bot_tries_again_when_the_longest_block_ends():
    blocks = Blocks().refused(BlockCode.DAY, 100.0, probe=False)
    assert Checked("Acme", standing(blocks)).until == 100.0 + 900
    assert Checked("Acme", standing(), seconds=0.2).until is None
