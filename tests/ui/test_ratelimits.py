"""`/ratelimits` as people see it: the list, one organization, a check."""

import pytest

from bot.organizations.rules import OrganizationKey
from bot.quotas import messages as ratelimits
from bot.quotas.rules.blocks import Blocks
from bot.quotas.rules.limits import DaySource, DayUse, Plan
from bot.quotas.rules.quota import InUse
from bot.quotas.rules.use import (
    Detail,
    HourOfCalls,
    OrganizationUse,
    Standing,
    first_hour,
)
from tests.support.requests import hold

NOW = 1_780_000_000.0
NASTY = "<!channel> *bold* `x` \u202e" + "ü" * 300


def standing(name="10", *, minute=0, concurrent=0, day=0, blocks=Blocks(), **day_more):  # noqa: B008
    in_use = InUse(minute, concurrent)
    day_use = DayUse(day, **{"limit": 1000, "source": DaySource.PLAN, **day_more})
    key = OrganizationKey("eu", name)
    return Standing(key, Plan.FREE, in_use, day_use, blocks)


def a_detail(one, *, hours=(), pace=(0, None), name="Acme"):
    return Detail(name, one, {}, hours, {"U1": "Ada <x>"}, *pace, None, NOW)


def test_a_page_of_many_nasty_names_is_within_slacks_limits():
    uses = [OrganizationUse(NASTY, standing(str(n))) for n in range(2_000)]
    for page in (0, 5, 133):
        message = ratelimits.overview(uses, (), NOW, page)
        hold(message)
    assert "Page 134 of 134" in repr(message.slack_blocks)


def test_organization_fits_whatever_its_name():
    people = [HourOfCalls(first_hour(NOW), f"kind {n}", f"U{n}", 1) for n in range(200)]
    message = ratelimits.detail(a_detail(standing(), hours=people, name=NASTY))
    hold(message)
    assert "others 190" in message.text


@pytest.mark.parametrize(
    ("pace", "words"),
    [
        ((0, None), "0 calls in the last hour: well within the daily limit"),
        (
            (5, NOW + 3600),
            "5 calls in the last hour: the daily limit will be reached <!date^",
        ),
        ((5, NOW), "the daily limit is used up"),
    ],
)
def test_the_forecast_in_words(pace, words):
    assert words in ratelimits.detail(a_detail(standing(), pace=pace)).text
