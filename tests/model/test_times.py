"""The bot understands typed times and durations, and uses the requester's time zone."""

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.approvals.times import (
    LONGEST_SECONDS,
    LocalTime,
    moment_of,
    parse_duration,
    parse_when,
    spell_duration,
    zone_of,
)

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("words", "start", "taken"),
    [
        ("9:00", "09:00", 1),
        ("9am +1", "09:00", 1),
        ("12 am", "00:00", 2),
        ("12:30 PM", "12:30", 2),
        ("tomorrow 9:00 for", "tomorrow 09:00", 2),
        ("Monday 17:05", "monday 17:05", 2),
        ("2026-12-01 09:00", "2026-12-01 09:00", 2),
        ("friday", "friday", 1),
        ("Friday 9", "friday", 1),
        ("2026-12-01 x", "2026-12-01", 1),
        ("1pm", "13:00", 1),
        ("6pm friday", "friday 18:00", 2),
        ("6 pm on friday", "friday 18:00", 4),
        ("friday at 17:00", "friday 17:00", 3),
        ("18:00 on friday +1", "friday 18:00", 3),
        ("2026-12-01 at 9", "2026-12-01 09:00", 3),
        ("at 9 on friday", "friday 09:00", 4),
        ("9:00 p.m.", "21:00", 2),
        ("friday.", "friday", 1),
        ("friday at", "friday", 1),
        ("friday at 25", "friday", 1),
        ("friday on monday", "friday", 1),
        ("9:00 10:00", "09:00", 1),
        ("on friday at 6 p.m. x", "friday 18:00", 5),
        ("at on", None, 0),
        ("0am", None, 0),
        ("9", None, 0),
        ("tomorrow", "tomorrow", 1),
        ("24:00", None, 0),
        ("13pm", None, 0),
        ("2026-13-01 +1", None, 0),
        ("", None, 0),
    ],
)
def test_a_typed_time_is_understood(words: str, start: str | None, taken: int) -> None:
    found = parse_when(words.split())
    assert (str(found[0]), found[1]) == (start, taken) if found else start is None
    assert found is None or parse_when(start.split()) == (found[0], len(start.split()))


@pytest.mark.parametrize(
    ("now", "end", "moment"),
    [
        ("2026-03-02 09:00", LocalTime(time(9), "today"), None),
        ("2026-03-02 08:30", LocalTime(time(9, 30), "today"), None),
        # Ten times 365 days is the longest time ahead.
        ("2026-03-02 07:00", LocalTime(time(8), "2036-02-28"), "2036-02-28 07:00"),
        ("2026-03-02 07:00", LocalTime(time(8, 1), "2036-02-28"), None),
        ("2026-03-02 07:00", LocalTime(time(9), "2026-03-01"), None),
        ("2026-03-02 07:00", LocalTime(time(0), "0001-01-01"), None),
        # On the night of 29 March, the clocks go forward from 2:00 to 3:00.
        ("2026-03-28 12:00", LocalTime(time(2, 30), "tomorrow"), "2026-03-29 01:30"),
        # On the night of 25 October, they go back from 3:00 to 2:00.
        ("2026-10-24 12:00", LocalTime(time(2, 30), "tomorrow"), "2026-10-25 00:30"),
        ("2026-10-25 00:45", LocalTime(time(2, 30)), "2026-10-25 01:30"),
        ("2026-10-25 01:45", LocalTime(time(2, 30)), "2026-10-26 01:30"),
    ],
)
def test_a_time_that_has_passed_or_is_skipped_or_comes_twice(now, end, moment) -> None:
    def utc(text: str) -> datetime:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)

    assert moment_of(end, utc(now), BERLIN) == (moment and utc(moment))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5),
        ("30m", 1800),
        ("2h", 7200),
        ("3D", 259200),
        ("0s", None),
        ("-1h", None),
        ("2", None),
        ("h", None),
        ("1.5h", None),
        ("٣h", None),
        ("2 hours", 7200),
        ("90 min", 5400),
        ("1h30m", 5400),
        ("1 Hour 30 Minutes", 5400),
        ("2 weeks", 1_209_600),
        ("2 hiurs", None),
        ("2h and", None),
        ("2 hours 2h", None),
        ("1h30m5m", None),
        ("9999999999999999999d", None),
        ("3650d", 315_360_000),
        ("315360001s", None),
        ("3651d", None),
    ],
)
def test_a_duration_is_numbers_with_units_up_to_ten_years(text: str, seconds: int | None) -> None:
    assert parse_duration(text) == seconds


@given(st.integers(1, LONGEST_SECONDS))
def test_a_spelled_duration_is_read_as_the_same(seconds: int) -> None:
    assert parse_duration(spell_duration(seconds)) == seconds


@pytest.mark.parametrize("name", ["", "Europe", "Mars/Base", "../UTC", "/etc", "a\0b", "x" * 300])
def test_a_name_of_no_zone_is_none(name):
    assert zone_of(name) is None
