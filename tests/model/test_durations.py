"""Durations are read as people type them, and spelled so that they are read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.approvals.parse import LONGEST_SECONDS, parse_duration, spell_duration


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
        ("9999999999999999999d", None),
        ("3650d", 315_360_000),
        ("315360001s", None),
        ("3651d", None),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: int | None) -> None:
    assert parse_duration(text) == seconds


@given(st.integers(1, LONGEST_SECONDS))
def test_a_spelled_duration_is_read_as_the_same(seconds: int) -> None:
    assert parse_duration(spell_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "spelled"),
    [(1, "1s"), (90, "90s"), (5400, "90m"), (7200, "2h"), (604_800, "7d"), (1_209_600, "14d")],
)
def test_a_duration_is_spelled_in_its_largest_unit_up_to_days(seconds: int, spelled: str) -> None:
    assert spell_duration(seconds) == spelled
