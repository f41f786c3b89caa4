"""The bot understands what people type after `/orgs`, `/ratelimits` and other commands."""

import pytest

from bot.emailkey import EmailKeyRequest, parse_emailkey
from bot.errors import UsageError
from bot.gatehouse import GatehouseRequest, parse_gatehouse
from bot.organizations.parse import OrgsRequest, parse_orgs
from bot.quotas.parse import RatelimitsRequest, parse_ratelimits
from bot.quotas.rules.limits import Plan


@pytest.mark.parametrize(
    ("typed", "kind", "words"),
    [
        ("   ", "list", ""),
        ("  two   words ", "list", "two words"),
        ("“two words”", "list", "two words"),
        ("Tom &amp; Jerry", "list", "Tom & Jerry"),
        ("a\u00a0b", "list", "a b"),
        ("<mailto:ada@example.com|ada@example.com>", "list", "ada@example.com"),
        ("HELP", "help", ""),
        ("-h", "help", ""),
        ("“help”", "list", "help"),
        ("help me", "list", "help me"),
        ("Refresh", "refresh", ""),
        ("refresh now", "list", "refresh now"),
        ("SHOW Northwind Traders", "show", "Northwind Traders"),
        ('show "Northwind Traders"', "show", "Northwind Traders"),
        ("show show", "show", "show"),
        # Typed text that looks like Slack's escapes stays unchanged.
        ("show A &amp;lt; B", "show", "A &lt; B"),
        ("“show” me", "list", "“show” me"),
        ("showing", "list", "showing"),
        ("x" * 200, "list", "x" * 200),
    ],
)
def test_orgs(typed, kind, words):
    assert parse_orgs(typed) == OrgsRequest(kind, words)


@pytest.mark.parametrize(
    ("typed", "parsed"),
    [
        ("   ", RatelimitsRequest("all")),
        ("?", RatelimitsRequest("help")),
        ("Müller &amp; Söhne", RatelimitsRequest("one", "Müller & Söhne")),
        ("\u201cCheck Point\u201d", RatelimitsRequest("one", "Check Point")),
        ("help desk", RatelimitsRequest("one", "help desk")),
        ("x" * 400, RatelimitsRequest("one", "x" * 400)),
        ("Check\u00a0Café Zoë", RatelimitsRequest("check", "Café Zoë")),
        ("plan 1 standard", RatelimitsRequest("plan", "1", Plan.STANDARD)),
        ("pl\u200ban 1 stan\u200bdard\u2060", RatelimitsRequest("plan", "1", Plan.STANDARD)),
        ("plan Café Zoë Nord PREMIUM", RatelimitsRequest("plan", "Café Zoë Nord", Plan.PREMIUM)),
        ('plan "free plan" free', RatelimitsRequest("plan", "free plan", Plan.FREE)),
    ],
)
def test_ratelimits(typed, parsed):
    assert parse_ratelimits(typed) == parsed


@pytest.mark.parametrize(
    ("typed", "parsed"),
    [
        ("  Check  ", EmailKeyRequest("check", "templates")),
        ("check “scopes”", EmailKeyRequest("check", "scopes")),
        ("check\u200b sco\u200bpes\u2060", EmailKeyRequest("check", "scopes")),
        ("check user/profile", EmailKeyRequest("check", "user/profile")),
        ("check /v3/templates", EmailKeyRequest("check", "templates")),
        (f"check {'x' * 100}", EmailKeyRequest("check", "x" * 100)),
        ("templates", EmailKeyRequest("templates")),
        (" ", EmailKeyRequest("help")),
    ],
)
def test_emailkey(typed, parsed):
    assert parse_emailkey(typed) == parsed


@pytest.mark.parametrize(
    "resource",
    ["../v2/keys", "a/../b", "a//b", "a?b=c", "a#b", "a%2fb", "ä", ".", "x" * 101, "<a|b>", "a b"],
)
def test_resource_cannot_lead_anywhere_else(resource):
    with pytest.raises(UsageError):
        parse_emailkey(f"check {resource}")


@pytest.mark.parametrize(
    ("typed", "kind", "count"),
    [
        ("", "help", 10),
        (" STATUS ", "status", 10),
        ("whoami", "whoami", 10),
        ("audit", "audit", 10),
        ("audit 1", "audit", 1),
        ("audit 50", "audit", 50),
        ("audit\u200b 5\u200b", "audit", 5),
    ],
)
def test_gatehouse(typed, kind, count):
    assert parse_gatehouse(typed) == GatehouseRequest(kind, count)


@pytest.mark.parametrize("number", ["0", "51", "1.5", "many", "1 2", "²", "-1", "—5", "9" * 5000])
def test_audit_shows_one_to_fifty_entries(number):
    with pytest.raises(UsageError, match="Choose 1 to 50"):
        parse_gatehouse(f"audit {number}")


@pytest.mark.parametrize(
    ("parse", "typed", "said"),
    [
        (parse_orgs, "--show", "Which organization"),
        (parse_orgs, "show " + "x" * 201, "can have up to 200 characters"),
        (parse_orgs, "x " * 500, "can have up to 200 characters"),
        (parse_ratelimits, "check", "Which organization"),
        (parse_ratelimits, "plan standard", "which plan"),
        (parse_ratelimits, "plan 1 gold", "free, standard, professional, premium, enterprise"),
        (parse_ratelimits, "x" * 12_001, "at most 10,000 characters"),
        (parse_emailkey, "chek", "Unknown subcommand “chek”. Did you mean “check”"),
        (parse_emailkey, "templates 2", "Use /emailkey templates with nothing after it"),
        (parse_gatehouse, "status now", "Use /gatehouse status with nothing after it"),
        (parse_gatehouse, "“status”", "Unknown subcommand “status”"),
    ],
)
def test_mistake_is_named(parse, typed, said):
    with pytest.raises(UsageError, match=said):
        parse(typed)
