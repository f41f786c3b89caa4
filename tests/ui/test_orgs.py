"""The pages of `/orgs` that are made once for everybody."""

from datetime import UTC, datetime

from bot.model.directory import DataCenterReport, Directory, Listing
from bot.model.organization import Organization
from bot.ui.orgs import Pages, View, listing

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def a_directory(*names: str) -> Directory:
    organizations = tuple(
        Organization(organization_id=str(number), name=name) for number, name in enumerate(names)
    )
    return Directory((DataCenterReport("com", Listing("com", organizations, AT)),))


def test_a_page_is_made_once_for_everybody_with_the_same_buttons():
    pages, directory = Pages(), a_directory("Northwind")
    first = pages.listing(directory, View(), may_refresh=True)
    assert pages.listing(directory, View(), may_refresh=True) is first
    assert pages.listing(directory, View(), may_refresh=False) != first
    assert first == listing(directory, View(), may_refresh=True)


def test_a_page_of_an_older_listing_is_forgotten():
    pages = Pages()
    pages.listing(a_directory("Northwind"), View(), may_refresh=True)
    assert "Tailspin" in pages.listing(a_directory("Tailspin"), View(), may_refresh=True).text


def test_what_is_filtered_is_made_anew():
    pages, directory = Pages(), a_directory("Northwind", "Tailspin")
    pages.listing(directory, View(), may_refresh=True)
    found = pages.listing(directory, View("tail"), may_refresh=True)
    assert "Northwind" not in found.text
