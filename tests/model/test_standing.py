"""One word for an organization, and who is worst off."""

import random

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.blocks import BlockCode, Blocks
from bot.quotas.rules.limits import DaySource, DayUse, Plan
from bot.quotas.rules.quota import InUse
from bot.quotas.rules.use import Standing


def standing(name="1", *, minute=0, concurrent=0, day=0, blocked=False) -> Standing:
    blocks = Blocks().refused(BlockCode.MINUTE, 0.0, probe=False) if blocked else Blocks()
    return Standing(
        key=OrganizationKey("eu", name),
        plan=Plan.FREE,
        in_use=InUse(minute, concurrent),
        day=DayUse(day, 1000, DaySource.PLAN),
        blocks=blocks,
    )


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
