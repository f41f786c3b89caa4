"""What was typed after `/ratelimits`."""

import pytest

from bot.errors import UsageError
from bot.quotas.parse import RatelimitsRequest, parse_ratelimits
from bot.quotas.rules.plans import Plan


@pytest.mark.parametrize(
    ("typed", "parsed"),
    [
        ("", RatelimitsRequest("all")),
        ("   ", RatelimitsRequest("all")),
        ("help", RatelimitsRequest("help")),
        ("—help", RatelimitsRequest("help")),
        ("?", RatelimitsRequest("help")),
        ("10234695", RatelimitsRequest("one", "10234695")),
        ("Müller &amp; Söhne", RatelimitsRequest("one", "Müller & Söhne")),
        ("\u201cCheck Point\u201d", RatelimitsRequest("one", "Check Point")),
        ("help desk", RatelimitsRequest("one", "help desk")),
        ("x" * 400, RatelimitsRequest("one", "x" * 400)),
        ("check 1", RatelimitsRequest("check", "1")),
        ("Check\u00a0Café Zoë", RatelimitsRequest("check", "Café Zoë")),
        ('check "a b"', RatelimitsRequest("check", "a b")),
        ("plan 1 standard", RatelimitsRequest("plan", "1", Plan.STANDARD)),
        ("plan Café Zoë PREMIUM", RatelimitsRequest("plan", "Café Zoë", Plan.PREMIUM)),
        ("plan Café Zoë Nord Süd free", RatelimitsRequest("plan", "Café Zoë Nord Süd", Plan.FREE)),
        ('plan "free plan" free', RatelimitsRequest("plan", "free plan", Plan.FREE)),
    ],
)
def test_each_form_is_understood(typed, parsed):
    assert parse_ratelimits(typed) == parsed


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("check", "Which organization"),
        ("plan", "which plan"),
        ("plan standard", "which plan"),
        ("plan 1 gold", "free, standard, professional, premium, enterprise"),
        ("x" * 401, "more than 400"),
        ("x" * 12_001, "at most 12,000 characters"),
    ],
)
def test_what_is_missing_is_said_with_an_example_that_works(typed, said):
    with pytest.raises(UsageError) as caught:
        parse_ratelimits(typed)
    assert said in caught.value.sentence
    assert parse_ratelimits(caught.value.example.removeprefix("/ratelimits "))
