"""Look-ups, and when a directory may be shown again instead of being put together anew."""

from datetime import UTC, datetime

import pytest

from bot.errors import Ambiguous, NotFound
from bot.model.organizations.directory import DataCenterReport, Directory, Listing
from bot.model.organizations.organization import Organization
from bot.ui import text

LISTING = Listing("com", (), datetime(2026, 3, 2, 9, 0, tzinfo=UTC))
LATER = Listing("com", (), datetime(2026, 3, 2, 9, 5, tzinfo=UTC))


def test_a_directory_knows_the_listings_it_is_made_of():
    directory = Directory((DataCenterReport("com", LISTING),))
    assert directory.is_of([DataCenterReport("com", LISTING)])


def test_a_newer_listing_a_failure_and_another_data_center_are_not_those():
    directory = Directory((DataCenterReport("com", LISTING),))
    assert not directory.is_of([DataCenterReport("com", LATER)])
    assert not directory.is_of([DataCenterReport("com", LISTING, "It is down.")])
    assert not directory.is_of([DataCenterReport("com", LISTING), DataCenterReport("eu", None)])
    assert not directory.is_of([])


def a_directory(*named: str, center: str = "com") -> Directory:
    """Organizations of these names, with the ids 10000001, 10000002 …"""
    organizations = tuple(
        Organization(organization_id=str(10000001 + number), name=name, contact_name=f"of {name}")
        for number, name in enumerate(named)
    )
    return Directory(
        (DataCenterReport(center, Listing(center, organizations, LISTING.fetched_at)),)
    )


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
    assert [one.organization.name for one in directory.matching(f"of {typed}")] == [listed]
    assert (directory.has_matching(f"of {typed}"), directory.has_matching("nobody")) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    "listed",
    ["Quick *bold* shop", "`Tick`", "Müller <Berlin>", "نور للتجارة", "a\u202eb", ":tada: Ltd"],
)
def test_a_name_copied_out_of_an_answer_is_found(listed):
    directory = a_directory(listed, "Another one")
    copied = text.escape(listed).replace("&lt;", "<").replace("&gt;", ">")
    for typed in (copied, text.plain(listed)):
        assert directory.find(typed).organization.name == listed


@pytest.mark.parametrize("typed", ["", " ", "\u200b", "\u2060 \u00a0"])
def test_nothing_that_is_seen_names_no_organization(typed):
    with pytest.raises(NotFound):
        a_directory("Acme").find(typed)


def test_an_id_with_letters_is_found():
    one = Organization(organization_id="Org-7A", name="Acme")
    directory = Directory((DataCenterReport("eu", Listing("eu", (one,), LISTING.fetched_at)),))
    assert directory.find("org\u20117a").organization == one


def test_an_id_of_two_data_centers_is_told_apart_by_the_data_center():
    everywhere = Directory(
        a_directory("Acme").reports + a_directory("Acme Too", center="com.au").reports
    )
    with pytest.raises(Ambiguous) as caught:
        everywhere.find("10000001")
    assert caught.value.candidates == ("Acme (com/10000001)", "Acme Too (com.au/10000001)")
    assert "as in com/10000001" in caught.value.how_to_choose
    for look_up in (everywhere.find, everywhere.named):
        assert look_up("COM.AU/10000001").organization.name == "Acme Too"
        assert look_up("com/10000001").organization.name == "Acme"


def test_one_that_is_listed_twice_is_still_one():
    (report,) = a_directory("Acme").reports
    twice = Listing("com", report.listing.organizations * 2, LISTING.fetched_at)
    assert Directory((DataCenterReport("com", twice),)).find("acme").organization.name == "Acme"


def test_what_acts_wants_an_id_or_a_whole_name():
    directory = a_directory("Acme Old GmbH", "Beta")
    assert directory.find("ol").organization.name == "Acme Old GmbH"
    for typed in ("acme  old gmbh", "10000001", "com/10000001"):
        assert directory.named(typed).organization.name == "Acme Old GmbH"
    with pytest.raises(Ambiguous, match="only part of a name") as caught:
        directory.named("ol")
    assert caught.value.candidates == ("Acme Old GmbH (10000001, com)",)
    assert caught.value.choices == {"com/10000001": "Acme Old GmbH (com/10000001)"}
    with pytest.raises(NotFound):
        directory.named("nobody")


def test_of_names_that_look_alike_the_one_that_is_typed_exactly_is_meant():
    directory = a_directory("A--B", "A-B")
    for typed in ("A--B", " A-B "):
        assert directory.named(typed).organization.name == typed.strip()
    with pytest.raises(Ambiguous):
        directory.named("a-b")


@pytest.mark.parametrize("typed", ["", " ", "\u200b"])
def test_nothing_is_nobody(typed):
    directory = a_directory("", "Acme")
    assert (directory.matching(typed), directory.has_matching(typed)) == ([], False)
    with pytest.raises(
        NotFound, match=r"No organization is called “\u200b?”\. /orgs <text> searches"
    ):
        directory.named(typed)


def test_a_look_up_in_vain_says_how_to_go_on():
    with pytest.raises(
        NotFound, match=r"called “chekc 7”\. /orgs <text> searches by a part of it\."
    ):
        a_directory("Acme").find(" chekc 7")
