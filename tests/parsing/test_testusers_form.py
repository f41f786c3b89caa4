"""The `/testusers` form starts with the right values and creates the right request."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.flows.rules.identities import identity_problem, is_sendable
from bot.testusers.parse.command import ChangeRequest
from bot.testusers.parse.form import Prefilled, as_line, parse_form
from bot.testusers.parse.identities import mentioned_identities


def typed(identities: str) -> Prefilled:
    return Prefilled("welcome", lines=tuple(identities.split("\n")))


def test_decoration_around_numbers_is_ignored() -> None:
    lines = "\u202a+15550100\u202c\n\u200e+15550101;\n cafe\u0301@b.c "
    people = ("+15550100", "+15550101", "café@b.c")
    assert parse_form(typed(lines)) == ChangeRequest("add", "welcome", people)


@pytest.mark.parametrize(
    "line", ['"\u202a+1\u202c"', "\u201c\u202a+1\u202c\u201d ", ' "\u202a+1\u202c"']
)
def test_line_in_quotation_marks_is_exact(line: str) -> None:
    assert parse_form(typed(line)) == ChangeRequest("add", "welcome", ("\u202a+1\u202c",))


@pytest.mark.parametrize("line", ['"', '"+1', '+1"', "John Smith", "because demo"])
def test_line_that_does_not_look_like_an_identity_is_refused(line: str) -> None:
    problems = parse_form(typed(f"+1\n{line}"))
    assert isinstance(problems, dict)
    assert problems["lines"].startswith(f"“{line}” doesn't look like a phone number")


@given(st.text(min_size=1).filter(lambda text: "\n" not in text and not identity_problem(text)))
def test_line_that_is_filled_in_is_read_as_the_same_identity(identity: str) -> None:
    assert parse_form(typed(as_line(identity))) == ChangeRequest("add", "welcome", (identity,))


def test_a_line_is_quoted_only_if_needed() -> None:
    assert [*map(as_line, ("+1", "a b", "\u200e+1", '"a"'))] == [
        *("+1", '"a b"', '"\u200e+1"', "'\"a\"'")
    ]


@pytest.mark.parametrize(
    "line",
    ["+15550111 +15550112, vera@example.com", '"John", "Jane"', "+1,+2", "+1 chat:ada", "+1 vera"],
)
def test_several_identities_on_a_line_are_refused(line: str) -> None:
    problems = parse_form(typed(line))
    assert isinstance(problems, dict)
    assert "Each identity needs a line of its own" in problems["lines"]


LATER = datetime(2026, 3, 3, tzinfo=UTC)
ASKED = ChangeRequest("add", "welcome", ("+1",))


@pytest.mark.parametrize(
    ("inputs", "asked"),
    [
        ({}, ASKED),
        ({"kind": "remove"}, replace(ASKED, kind="remove")),
        ({"duration": " 2h "}, replace(ASKED, duration_seconds=7200)),
        ({"duration": "for 2h"}, replace(ASKED, duration_seconds=7200)),
        ({"until": LATER}, replace(ASKED, until=LATER)),
        ({"reason": " a\n b "}, replace(ASKED, reason="a b")),
    ],
)
def test_a_form_requests_exactly_its_content(inputs: dict[str, Any], asked: ChangeRequest) -> None:
    assert parse_form(replace(typed("+1"), **inputs)) == asked


@pytest.mark.parametrize(
    ("inputs", "wrong", "said"),
    [
        ({"flow": ""}, "flow", "Choose a flow."),
        ({"lines": (" ", " ")}, "lines", "Add at least one"),
        ({"lines": ("+1", "+1")}, "lines", "“+1” is listed twice."),
        ({"duration": "soon"}, "duration", "I can't read “soon” as a duration."),
        ({"duration": "2h", "kind": "remove"}, "duration", "A duration only works with Add."),
        ({"until": LATER, "kind": "remove"}, "until", "An end date only works with Add."),
        ({"until": LATER, "duration": "2h"}, "duration", "not both"),
        ({"lines": ("+1 555 0142",)}, "lines", "Did you mean “+15550142”?"),
        ({"reason": "x" * 501}, "reason", "too long: it has 501 characters"),
    ],
)
def test_an_error_appears_at_its_input(inputs: dict[str, Any], wrong: str, said: str) -> None:
    problems = parse_form(replace(typed("+1"), **inputs))
    assert isinstance(problems, dict)
    assert [*problems] == [wrong]
    assert said in problems[wrong]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("hello there", ()),
        ("call +1 555 0100, please", ("+15550100",)),
        ("<tel:+15550100|+1 555-0100>", ("+15550100",)),
        ("+1\u2011555\u20110177 (me)", ("+15550177",)),
        ("0049 30 1234 5678", ("+493012345678",)),
        ("030 1234 5678", ()),
        ("ada@example.com.", ("ada@example.com",)),
        ("<mailto:bob@example.org|bob@example.org>", ("bob@example.org",)),
        ("`whatsapp:+15550142`", ("whatsapp:+15550142",)),
        (
            "<mailto:o'neil@x.test|o'neil@x.test> or o'neil@y.test",
            ("o'neil@x.test", "o'neil@y.test"),
        ),
        ("<tel:+15550142|+1 555 0142> 18:00", ("+15550142",)),
        ("a'<mailto:..b@x.test|..b@x.test>", ()),
        ("<tel:+15550142|+1 555 0142> 2", ("+15550142",)),
        # Slack marks an address or a number that follows a scheme, too.
        ("whatsapp:<tel:+15550142|+15550142>", ("whatsapp:+15550142",)),
        ("whatsapp:<tel:+15550142|+1 555 0142>.", ("whatsapp:+15550142",)),
        ("_sip:<mailto:ada@x.test|ada@x.test>_", ("sip:ada@x.test",)),
        ("Phone:<tel:+15550142|+1 555 0142>", ("+15550142",)),
        ("E-mail:<mailto:ada@x.test|ada@x.test>", ("ada@x.test",)),
        # A link may show a different address from the one that it leads to.
        ("<mailto:eve@x.test|ada@x.test>", ()),
        ("sip:<mailto:eve@x.test|ada@x.test>", ()),
        ("<tel:+15550199|+1 555 0142>", ()),
        ("whatsapp:<tel:+15550199|+15550142>", ()),
        ("+1 555 0142 18:00", ("+15550142",)),
        ("+1 555 0142\n3 people\r\n5", ("+15550142",)),
        ("+15550142 2026-12-01", ("+15550142",)),
        ("'ada@x.test', *ben@x.test*", ("ada@x.test", "ben@x.test")),
        ("sip:ada@example.com", ("sip:ada@example.com",)),
        ("client:alice and messenger:123456", ("client:alice", "messenger:123456")),
        ("+15550100 +15550100", ("+15550100",)),
        ("b@example.com then +15550100", ("b@example.com", "+15550100")),
        # A number has 7 to 15 digits.
        ("+123456 +1234567", ("+1234567",)),
        ("tel:+123456 tel:+1234567", ("+1234567",)),
        ("+123456789012345 +1234567890123456", ("+123456789012345",)),
        # Text that only looks like a number.
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
def test_every_identity_in_a_message_can_be_requested(text: str) -> None:
    found = mentioned_identities(text)
    assert len(set(found)) == len(found)
    assert all(is_sendable(item) and " " not in item for item in found)
