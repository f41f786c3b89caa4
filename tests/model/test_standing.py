"""One word for an organization, and who is worst off."""

import random

import pytest

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.blocks import BlockCode, Blocks
from bot.quotas.rules.days import DaySource, DayUse
from bot.quotas.rules.plans import Plan, limits_of
from bot.quotas.rules.quota import InUse, LimitKind
from bot.quotas.rules.standing import Meter, Standing, State, may_be_smaller_plan


def standing(name="1", *, minute=0, concurrent=0, day=0, blocked=False) -> Standing:
    blocks = Blocks().refused(BlockCode.MINUTE, 0.0, probe=False) if blocked else Blocks()
    return Standing(
        key=OrganizationKey("eu", name),
        plan=Plan.FREE,
        limits=limits_of(Plan.FREE),
        in_use=InUse(minute, concurrent),
        day=DayUse(day, 1000, DaySource.PLAN),
        blocks=blocks,
    )


def test_the_worst_thing_is_said():
    assert standing().state is State.FINE
    assert standing(minute=80).state is State.NEARLY_FULL
    assert standing(concurrent=5).state is State.BUSY
    assert standing(minute=100, concurrent=5).state is State.MINUTE_FULL
    assert standing(minute=100, day=1000).state is State.DAY_FULL
    assert standing(minute=100, day=1000, blocked=True).state is State.BLOCKED


def test_organization_that_was_never_called_uses_nothing():
    idle = Standing.idle(OrganizationKey("eu", "1"), Plan.FREE)
    assert idle == standing()
    assert not idle.is_used


@pytest.mark.parametrize("kind", ["minute", "concurrent", "day"])
def test_one_call_is_use_of_any_limit(kind):
    assert standing(**{kind: 1}).is_used


@pytest.mark.parametrize(
    ("kind", "used", "limit", "may_be"),
    [
        (LimitKind.DAY, 1000, 2000, False),
        (LimitKind.DAY, 1001, 2000, True),
        (LimitKind.DAY, 1999, 2000, True),
        (LimitKind.DAY, 2000, 2000, False),
        (LimitKind.CONCURRENT, 5, 10, False),
        (LimitKind.CONCURRENT, 6, 10, True),
    ],
)
def test_use_above_the_smallest_plan_may_mean_a_wrong_plan(kind, used, limit, may_be):
    assert may_be_smaller_plan(kind, Meter(used, limit)) is may_be


def test_limit_of_nothing_is_used_up():
    assert Meter(0, 0).share == 1


def test_a_meter_reads_used_of_limit():
    one = standing(minute=37, day=120, concurrent=2)
    assert [str(one.meter(kind)) for kind in LimitKind] == ["37/100", "120/1,000", "2/5"]


def test_the_worst_is_first_and_equal_ones_are_in_order():
    in_order = [
        standing("9", blocked=True),
        standing("8", day=1001),
        standing("7", minute=100),
        standing("6", concurrent=5),
        standing("5", minute=90),
        standing("4", day=850),
        standing("3", minute=10),
        standing("1"),
        standing("2"),
    ]
    shuffled = random.Random(1).sample(in_order, len(in_order))
    assert sorted(shuffled, key=lambda item: item.rank) == in_order
