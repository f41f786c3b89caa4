"""The identities that a message mentions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.testusers.parse.form import mentioned_identities
from bot.testusers.rules.changes import is_sendable


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("hello there", ()),
        ("call +1 555 0100, please", ("+15550100",)),
        ("<tel:+15550100|+1 555-0100>", ("+15550100",)),
        ("+1\u2011555\u20110177 (me)", ("+15550177",)),
        ("030 1234 5678", ("03012345678",)),
        ("ada@example.com.", ("ada@example.com",)),
        ("<mailto:bob@example.org|bob@example.org>", ("bob@example.org",)),
        ("`whatsapp:+15550142`", ("whatsapp:+15550142",)),
        ("sip:ada@example.com", ("sip:ada@example.com",)),
        ("client:alice and messenger:123456", ("client:alice", "messenger:123456")),
        ("+15550100 +15550100", ("+15550100",)),
        ("b@example.com then +15550100", ("b@example.com", "+15550100")),
        # A number has 7 to 15 digits, and 9 where no country is named.
        ("+123456 +1234567", ("+1234567",)),
        ("tel:+123456 tel:+1234567", ("+1234567",)),
        ("+123456789012345 +1234567890123456", ("+123456789012345",)),
        ("12345678 or 123456789", ("123456789",)),
        ("123456789012345 or 1234567890123456", ("123456789012345",)),
        # What only looks like one.
        ("see https://example.com:8080/a and <https://b.example|here>", ()),
        ("organization 10234695 on 2026-12-01 09:00, from 9:00 to 10:30", ()),
        ("Note:this is nothing", ()),
        ("<@U0ADMIN> <#C0GENERAL|general> :wave:", ()),
    ],
)
def test_identities_are_found(text: str, found: tuple[str, ...]) -> None:
    assert mentioned_identities(text) == found


def test_message_is_read_up_to_its_40000th_character() -> None:
    assert mentioned_identities(f"{' ' * 39_992}+1234567") == ("+1234567",)
    assert mentioned_identities(f"{' ' * 39_993}+1234567") == ()


@given(st.text(max_size=300))
def test_whatever_is_found_can_be_asked_for(text: str) -> None:
    found = mentioned_identities(text)
    assert len(set(found)) == len(found)
    assert all(is_sendable(item) and " " not in item for item in found)
