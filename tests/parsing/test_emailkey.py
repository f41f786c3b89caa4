"""What people type after /emailkey."""

import pytest

from bot.emailkey import EmailKeyRequest, parse_emailkey
from bot.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("check", EmailKeyRequest("check", ("templates",))),
        ("  Check  ", EmailKeyRequest("check", ("templates",))),
        ("check scopes", EmailKeyRequest("check", ("scopes",))),
        ("check “scopes”", EmailKeyRequest("check", ("scopes",))),
        ("check user/profile", EmailKeyRequest("check", ("user/profile",))),
        ("check /v3/templates", EmailKeyRequest("check", ("templates",))),
        ("check\u00a0Scopes.v2", EmailKeyRequest("check", ("Scopes.v2",))),
        (f"check {'x' * 100}", EmailKeyRequest("check", ("x" * 100,))),
        ("check scopes templates scopes", EmailKeyRequest("check", ("scopes", "templates"))),
        ("templates", EmailKeyRequest("templates")),
        ("—help", EmailKeyRequest("help")),
        ("?", EmailKeyRequest("help")),
        ("help", EmailKeyRequest("help")),
        (" ", EmailKeyRequest("help")),
    ],
)
def test_what_is_understood(typed: str, wanted: EmailKeyRequest) -> None:
    assert parse_emailkey(typed) == wanted


@pytest.mark.parametrize("typed", ["chek", "templates 2", "help me", '"check"'])
def test_anything_else_shows_the_usage_and_an_example_that_works(typed: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_emailkey(typed)
    assert "/emailkey check [resource]… | templates" in caught.value.usage
    parse_emailkey(caught.value.example.removeprefix("/emailkey "))


@pytest.mark.parametrize(
    "typed",
    ["../v2/keys", "a/../b", "a//b", "a?b=c", "a#b", "a%2fb", "ä", ".", "x" * 101, "<a|b>"],
)
def test_a_resource_cannot_lead_anywhere_else(typed: str) -> None:
    with pytest.raises(UsageError):
        parse_emailkey(f"check {typed}")
