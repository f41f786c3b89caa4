"""What people type after `/orgs`."""

import pytest

from bot.errors import UsageError
from bot.organizations.parse import OrgsRequest, parse_orgs


@pytest.mark.parametrize(
    ("typed", "kind", "words"),
    [
        ("", "list", ""),
        ("   ", "list", ""),
        ("EUR", "list", "EUR"),
        ("two words", "list", "two words"),
        ("  two   words ", "list", "two words"),
        ("“two words”", "list", "two words"),
        ("Tom &amp; Jerry", "list", "Tom & Jerry"),
        ("a\u00a0b", "list", "a b"),
        ("<mailto:ada@example.com|ada@example.com>", "list", "ada@example.com"),
        ("help", "help", ""),
        ("HELP", "help", ""),
        ("--help", "help", ""),
        ("?", "help", ""),
        ("-h", "help", ""),
        ("\u2014help", "help", ""),
        ("“help”", "list", "help"),
        ("help me", "list", "help me"),
        ("refresh", "refresh", ""),
        ("Refresh", "refresh", ""),
        ("refresh now", "list", "refresh now"),
        ("show 10234695", "show", "10234695"),
        ("SHOW Northwind Traders", "show", "Northwind Traders"),
        ('show "Northwind Traders"', "show", "Northwind Traders"),
        ("show show", "show", "show"),
        # What somebody typed that looks like Slack's escapes stays as typed.
        ("show A &amp;lt; B", "show", "A &lt; B"),
        ("show &amp;lt;", "show", "&lt;"),
        ("“show” me", "list", "“show” me"),
        ("showing", "list", "showing"),
        ("x" * 200, "list", "x" * 200),
    ],
)
def test_forms(typed, kind, words):
    assert parse_orgs(typed) == OrgsRequest(kind, words)


@pytest.mark.parametrize("typed", ["show", " show ", "--show"])
def test_showing_nothing_is_a_question(typed):
    with pytest.raises(UsageError, match="Which organization"):
        parse_orgs(typed)


@pytest.mark.parametrize("typed", ["x" * 201, "show " + "x" * 201, "x " * 500])
def test_a_filter_beyond_reason_is_refused(typed):
    with pytest.raises(UsageError, match="more than 200 characters"):
        parse_orgs(typed)
