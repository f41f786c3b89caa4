"""Whatever a rough service, people, restarts and settings do: cards, grants and list agree.

`ROUGH_DAYS=200` lives more days than the suite has time for.
"""

import os
from pathlib import Path

import pytest

from tests.workflows.testusers.rough.days import Days
from tests.workflows.testusers.rough.plants import PLANTS
from tests.workflows.testusers.rough.scenes import day

pytestmark = pytest.mark.slow
DAYS = int(os.environ.get("ROUGH_DAYS", "4"))


@pytest.fixture(scope="module")
def days(tmp_path_factory) -> Days:
    return Days(Path(tmp_path_factory.mktemp("rough")))


@pytest.mark.parametrize("number", range(DAYS))
def test_cards_grants_and_list_agree_on_rough_days(days, number) -> None:
    days.live(day(number))


@pytest.mark.parametrize("plant", PLANTS)
def test_planted_fault_is_found_in_a_scene(days, plant) -> None:
    with pytest.raises(AssertionError):
        days.live([PLANTS[plant][1]], plant)
