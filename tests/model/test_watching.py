"""The watcher's turns: even, one percent, longest ago first."""

import pytest

from bot.organizations.rules import OrganizationKey
from bot.quotas.watcher import Watched, next_check, next_turn_at, seconds_between_checks

DAY = 86_400.0
NOW = 10 * DAY


def watched(name, limit=1000, ago=DAY):
    return Watched(OrganizationKey("eu", name), NOW - ago, seconds_between_checks(limit, 0, 1))


def test_one_percent_of_the_day_is_the_most():
    assert watched("a", 1000).every_seconds == DAY / 10
    assert watched("a", 10_000).every_seconds == DAY / 100
    assert watched("a", 100).every_seconds == DAY
    assert watched("a", 0).every_seconds == float("inf")


def test_who_was_checked_longest_ago_is_first():
    some = [watched("a", ago=9000), watched("b", ago=12_000), watched("c", ago=10_000)]
    assert next_check(some, NOW).key.organization_id == "b"


def test_a_check_just_made_delays_no_other_where_listings_are_small():
    assert next_check([watched("a", ago=0), watched("b")], NOW).key.organization_id == "b"


def test_nobody_is_checked_before_their_turn():
    assert next_check([watched("a", ago=8639)], NOW) is None
    assert next_check([watched("a", ago=8640)], NOW) is not None
    assert next_check([], NOW) is None


def test_many_that_are_due_are_spread():
    assert next_turn_at([watched("a"), watched("b")], NOW) == pytest.approx(NOW + DAY / 40)
    assert next_turn_at([watched("a", ago=0)], NOW) == NOW + DAY / 10
    assert next_turn_at([watched(str(n)) for n in range(10_000)], NOW) == NOW + 5
    assert next_turn_at([], NOW) is None
    assert next_turn_at([watched("a", limit=0)], NOW) is None
