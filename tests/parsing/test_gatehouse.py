"""What people type after `/gatehouse`."""

import pytest

from bot.checks.parse import FEW_ENTRIES, MOST_ENTRIES, GatehouseRequest, parse_gatehouse
from bot.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "kind", "count"),
    [
        ("", "help", FEW_ENTRIES),
        ("Help", "help", FEW_ENTRIES),
        ("?", "help", FEW_ENTRIES),
        ("whoami", "whoami", FEW_ENTRIES),
        (" STATUS ", "status", FEW_ENTRIES),
        ("audit", "audit", FEW_ENTRIES),
        ("audit 1", "audit", 1),
        (f"audit {MOST_ENTRIES}", "audit", MOST_ENTRIES),
    ],
)
def test_forms(typed, kind, count):
    assert parse_gatehouse(typed) == GatehouseRequest(kind, count)


def test_ten_entries_are_shown_and_fifty_at_most():
    assert (FEW_ENTRIES, MOST_ENTRIES) == (10, 50)


NUMBERS = ["0", str(MOST_ENTRIES + 1), "1.5", "many", "1 2", "²", "-1", "--5", "—5", "9" * 5000]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:9])
def test_a_number_of_entries_that_cannot_be(number):
    with pytest.raises(UsageError, match=f"Choose 1 to {MOST_ENTRIES}"):
        parse_gatehouse(f"audit {number}")


@pytest.mark.parametrize("typed", ["hello", "status now", "“status”", "who am i"])
def test_anything_else_is_answered_with_the_usage(typed):
    with pytest.raises(UsageError, match="didn't get that"):
        parse_gatehouse(typed)
