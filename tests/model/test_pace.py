"""How much one person may do in a minute."""

import pytest

from bot.errors import TooManyCommands
from bot.slack.rules.pace import Deed, Pace


def done(pace: Pace, deed: Deed, times: int, at: float = 0.0, who: str = "U1") -> int:
    """How many of so many deeds at once are admitted."""
    admitted = 0
    for _ in range(times):
        try:
            pace.require(who, at, deed)
        except TooManyCommands:
            continue
        admitted += 1
    return admitted


@pytest.mark.parametrize(
    ("deed", "most"), [(Deed.COMMAND, 5), (Deed.INTERACTION, 10), (Deed.TYPING, 10)]
)
def test_clicks_may_be_twice_as_many_as_commands(deed, most):
    pace = Pace(5, {})
    assert done(pace, deed, 50) == most
    assert done(pace, deed, 50, at=59.9) == 0
    assert done(pace, deed, 50, at=60.0) == most


def test_each_deed_is_forgotten_a_minute_after_it():
    pace = Pace(2, {})
    assert done(pace, Deed.COMMAND, 1, at=0.0) == 1
    assert done(pace, Deed.COMMAND, 2, at=30.0) == 1
    assert done(pace, Deed.COMMAND, 2, at=60.0) == 1


def test_deeds_and_people_are_counted_apart():
    pace = Pace(1, {})
    assert done(pace, Deed.COMMAND, 2) == 1
    assert done(pace, Deed.INTERACTION, 3) == 2
    assert done(pace, Deed.COMMAND, 2, who="U2") == 1


def test_zero_is_no_limit():
    assert done(Pace(0, {}), Deed.INTERACTION, 1_000) == 1_000


def test_who_presses_on_is_told_once_in_five_seconds():
    pace, told = Pace(1, {}), []
    pace.require("U1", 0.0)
    for at in (0.25, 0.5, 4.75, 5.25, 6.0):
        with pytest.raises(TooManyCommands) as declined:
            pace.require("U1", at)
        told.append(not declined.value.is_told)
    assert told == [True, False, False, True, False]


def test_decline_names_what_there_is_too_much_of():
    pace = Pace(1, {})
    done(pace, Deed.INTERACTION, 2)
    with pytest.raises(TooManyCommands, match="lot of clicks"):
        pace.require("U1", 0.0, Deed.INTERACTION)


def test_decline_names_the_seconds_until_the_oldest_is_forgotten():
    pace = Pace(2, {})
    pace.require("U1", 10.0)
    pace.require("U1", 20.0)
    with pytest.raises(TooManyCommands) as declined:
        pace.require("U1", 30.0)
    assert declined.value.retry_after_seconds == 40.0
