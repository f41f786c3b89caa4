"""How far two words are from each other: as the plain definition has it, up to a bound."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.edit_distance import edit_distance

WORDS = st.text("abc", max_size=7)


def by_definition(one: str, other: str) -> int:
    """As Lowrance and Wagner have it: letters that are swapped may have others between them."""

    @cache
    def of(left: int, right: int) -> int:
        if min(left, right) == 0:
            return max(left, right)
        swaps = [
            of(first, second) + (left - first - 2) + 1 + (right - second - 2)
            for first in range(left - 1)
            for second in range(right - 1)
            if (one[first], one[left - 1]) == (other[right - 1], other[second])
        ]
        replaced = of(left - 1, right - 1) + (one[left - 1] != other[right - 1])
        return min(of(left - 1, right) + 1, of(left, right - 1) + 1, replaced, *swaps)

    return of(len(one), len(other))


@given(WORDS, WORDS, st.integers(0, 4))
def test_distance_is_that_of_the_definition_up_to_the_bound(one, other, most):
    assert edit_distance(one, other, most) == min(by_definition(one, other), most + 1)


@pytest.mark.parametrize(
    ("typed", "meant", "most", "distance"),
    [
        ("becuase", "because", 2, 1),
        ("fro", "for", 2, 1),
        ("", "now", 2, 3),
        ("now", "now", 0, 0),
        ("nwxo", "now", 2, 2),
        ("xyzxqyz", "xyz", 4, 4),
        ("abcdef", "bcdefa", 1, 2),
    ],
)
def test_words_as_people_type_them(typed, meant, most, distance):
    assert edit_distance(typed, meant, most) == distance
