"""What /emailkey shows."""

import json

import pytest

from bot import emailkey
from bot.emailkey import EmailTemplate, EmailTemplates


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (EmailTemplates((), None), "has no list of templates"),
        (EmailTemplates((), 0), "no templates"),
        (EmailTemplates((), 1), "1 template, but no names or IDs"),
        (EmailTemplates((), 3), "3 templates, but no names or IDs"),
        (EmailTemplates((EmailTemplate("d-1", None),), 3), "2 without a name or ID"),
    ],
)
def test_what_cannot_be_named_is_counted(found: EmailTemplates, says: str) -> None:
    assert says in emailkey.templates(found).text


def a_lot(count: int) -> EmailTemplates:
    named = tuple(EmailTemplate(f"d-{n}", f"<!here> & {'n' * 300}") for n in range(count))
    return EmailTemplates(named, count)


def test_names_are_inert_and_a_page_stays_within_slacks_limits() -> None:
    message = emailkey.templates(a_lot(10_000), 100)
    sent = json.dumps(message.payload())
    assert "<!here>" not in sent
    assert len(message.text) <= 4000
    assert len(sent) < 12_000
