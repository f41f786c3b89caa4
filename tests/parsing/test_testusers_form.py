"""The `/testusers` form starts with the right values and creates the right request."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.flows.rules import identity_problem
from bot.spelling import DOUBLE_QUOTES, SINGLE_QUOTES
from bot.testusers.parse.command import ChangeRequest, Prefilled, as_line, moment, parse_form


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


@pytest.mark.parametrize("seconds", ["-5", "abc", "0", "1.5"])
def test_a_date_that_cannot_be_read_is_long_over(seconds: str) -> None:
    assert moment(seconds) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("seconds", ["99999999999999", "253402300800", "9" * 5000])
def test_a_date_after_the_end_of_the_calendar_is_far_away(seconds: str) -> None:
    at = moment(seconds)
    assert at is not None
    assert at.year > 5000


@pytest.mark.parametrize("line", ['"+1', '+1"', "John Smith", "because demo"])
def test_line_that_does_not_look_like_an_identity_is_refused(line: str) -> None:
    problems = parse_form(typed(f"+1\n{line}"))
    assert isinstance(problems, dict)
    assert problems["lines"].startswith(f"“{line}” doesn't look like a phone number")


@given(st.text(min_size=1).filter(lambda text: "\n" not in text and not identity_problem(text)))
def test_line_that_is_filled_in_is_read_as_the_same_identity(identity: str) -> None:
    parsed = parse_form(typed(as_line(identity)))
    has_both_marks = all(set(identity) & set(marks) for marks in (DOUBLE_QUOTES, SINGLE_QUOTES))
    is_refused = has_both_marks and isinstance(parsed, dict)
    assert is_refused or parsed == ChangeRequest("add", "welcome", (identity,))


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
        ({"lines": ("@Team",)}, replace(ASKED, identities=(), presets=("team",))),
        ({"lines": ("\u2022 +1", "", "-")}, ASKED),
        ({"lines": ("1. +1", "2. +2")}, replace(ASKED, identities=("+1", "+2"))),
        ({"reason": "a “for 2h”"}, replace(ASKED, reason="a “for 2h”")),
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
        ({"lines": ("+1 555 0142",)}, "lines", "“+1 555 0142” doesn't look like"),
        ({"lines": ("whatsapp:+1 555 0142",)}, "lines", "“whatsapp:+1 555 0142” doesn't look"),
        ({"lines": ("John Smith",)}, "lines", "“John Smith” doesn't look"),
        ({"lines": ("@team @other",)}, "lines", "Each identity needs a line of its own"),
        ({"lines": ("\ufffd@team",)}, "lines", "stands for a character that was lost"),
        ({"lines": ('"a\ufffd"',)}, "lines", "stands for a character that was lost"),
        ({"reason": "a\ufffd"}, "reason", "stands for a character that was lost"),
        ({"reason": "demo for 2h"}, "reason", "ends in “for 2h”, but there's no end date"),
        ({"reason": "x" * 501}, "reason", "too long: it has 501 characters"),
    ],
)
def test_an_error_appears_at_its_input(inputs: dict[str, Any], wrong: str, said: str) -> None:
    problems = parse_form(replace(typed("+1"), **inputs))
    assert isinstance(problems, dict)
    assert [*problems] == [wrong]
    assert said in problems[wrong]
