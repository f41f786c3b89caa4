"""When a flow that the service does not know counts as deleted."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.testusers.rules.missing import is_deleted, looked_in_vain

START = datetime(2026, 3, 1, tzinfo=UTC)


def looks(*seconds: float) -> tuple[datetime, ...]:
    found: tuple[datetime, ...] = ()
    for one in seconds:
        found = looked_in_vain(found, START + timedelta(seconds=one))
    return found


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ((), False),
        ((0,), False),
        ((0, 150), False),
        ((0, 150, 299), False),
        ((0, 150, 300), True),
        ((0, 600, 1200), True),
        (range(0, 300, 10), False),
        (range(0, 301, 10), True),
    ],
)
def test_three_looks_over_five_minutes_find_no_flow(seconds, expected) -> None:
    assert is_deleted(looks(*seconds)) is expected


def test_looks_that_are_close_count_as_the_first() -> None:
    assert looks(0, 10, 149) == (START,)
