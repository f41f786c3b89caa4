"""Look-ups, and when a directory may be shown again instead of being put together anew."""

from datetime import UTC, datetime

import pytest

from bot.errors import Ambiguous, NotFound
from bot.organizations.rules import (
    DataCenterReport,
    Directory,
    Listing,
    Organization,
)
from bot.slack.messages import text

LISTING = Listing("com", (), datetime(2026, 3, 2, 9, 0, tzinfo=UTC))


def a_listing(*named: str, center: str = "com") -> Listing:
    """Organizations of these names, with the ids 10000001, 10000002 …"""
    organizations = tuple(
        Organization(organization_id=str(10000001 + number), name=name, contact_name=f"of {name}")
        for number, name in enumerate(named)
    )
    return Listing(center, organizations, LISTING.fetched_at)


def names_of(places) -> list[str]:
    return [place.organization.name for place in places]


def a_directory(*named: str, center: str = "com") -> Directory:
    """All in one data center."""
    return Directory((DataCenterReport(center, a_listing(*named, center=center)),))


@pytest.mark.parametrize(
    ("listed", "typed"),
    [
        ("Ada's Bakery", "Ada\u2019s Bakery"),
        ("Ada\u2019s Bakery", "ada's bakery"),
        ("O`Brien", "O\u00b4Brien"),
        ('The "Shop"', "The \u201cShop\u201d"),
        ("Acme\u00a0GmbH", "Acme GmbH"),
        ("Acme GmbH", "Acme\u202f GmbH "),
        ("Shop \u2013 North", "Shop - North"),
        ("Shop -- North", "Shop \u2014 North"),
        ("Wait...", "Wait\u2026"),
        ("Caf\u00e9", "Cafe\u0301"),
        ("STRASSE", "stra\u00dfe"),
        ("Ma\u00adnu\u200bal", "Manual"),
        ("\u2764 Hearts", "\u2764\ufe0f Hearts"),
    ],
)
def test_a_name_is_found_however_a_phone_writes_it(listed, typed):
    directory = a_directory(listed, "Another one")
    assert directory.find(typed).organization.name == listed
    assert names_of(directory.matching(f"of {typed}")) == [listed]
    assert directory.matching("nobody") == []


@pytest.mark.parametrize(
    "listed",
    ["Quick *bold* shop", "`Tick`", "Müller <Berlin>", "نور للتجارة", "a\u202eb", ":tada: Ltd"],
)
def test_a_name_copied_out_of_an_answer_is_found(listed):
    directory = a_directory(listed, "Another one")
    copied = text.escape(listed).replace("&lt;", "<").replace("&gt;", ">")
    for typed in (copied, text.plain(listed)):
        assert directory.find(typed).organization.name == listed


def test_exact_name_wins_over_names_that_look_alike():
    directory = a_directory("A--B", "A-B")
    for typed in ("A--B", " A-B "):
        assert directory.find(typed, in_part=False).organization.name == typed.strip()
    with pytest.raises(Ambiguous):
        directory.find("a-b", in_part=False)


@pytest.mark.parametrize("typed", ["", " ", "\u200b"])
def test_nothing_is_nobody(typed):
    directory = a_directory("", "Acme")
    assert directory.matching(typed) == []
    with pytest.raises(
        NotFound, match=r"No organization is called “\u200b?”\. Use /orgs <text> to search"
    ):
        directory.find(typed, in_part=False)
