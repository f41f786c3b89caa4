"""Two different identities never look the same on the screen."""

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.spelling import exactly

# Above U+3400, whole blocks are alike: ideographs, syllables, private and unassigned characters.
DISTINCT = [chr(n) for n in range(sys.maxunicode + 1) if n < 0x3400 or n % 16 == 0]


def test_every_unicode_character_can_be_told_apart():
    shown = {exactly(f"chat:a{character}da") for character in DISTINCT}
    assert len(shown) == len(DISTINCT)
    assert all(re.fullmatch(r"(?:[ -_a-~]|⟨U\+[0-9A-F]{4,6}⟩)+", item) for item in shown)


@given(one=st.text(max_size=12), other=st.text(max_size=12))
def test_identities_that_differ_are_shown_differently(one, other):
    assert (exactly(one) == exactly(other)) is (one == other)


@pytest.mark.parametrize(
    ("identity", "shown"),
    [
        ("+1 555 0100", "+1 555 0100"),
        ("whatsapp:+15550100", "whatsapp:+15550100"),
        ("ab  cd", "ab⟨U+0020⟩⟨U+0020⟩cd"),
        ("ab\u00a0cd", "ab⟨U+00A0⟩cd"),
        (" a ", "⟨U+0020⟩a⟨U+0020⟩"),
        ("chat:\u0430da", "chat:⟨U+0430⟩da"),
        ("a`b", "a⟨U+0060⟩b"),
        ("⟨U+200D⟩", "⟨U+27E8⟩U+200D⟨U+27E9⟩"),
    ],
)
def test_identity_is_shown_exactly(identity, shown):
    assert exactly(identity) == shown
