"""The form of `/testusers`: what is typed into it, as it is understood."""

from bot.parsing.testusers_form import TypedForm, parse_form
from bot.parsing.testusers_requests import ChangeRequest


def typed(identities: str) -> TypedForm:
    return TypedForm("welcome", "add", identities, duration="", start="", reason="")


def test_what_phones_put_around_numbers_does_not_count() -> None:
    lines = "\u202a+15550100\u202c\n\u200e+15550101;\n cafe\u0301@b.c \n+1-555\u20110102"
    people = ("+15550100", "+15550101", "café@b.c", "+1-555-0102")
    assert parse_form(typed(lines)) == ChangeRequest("add", "welcome", people)
