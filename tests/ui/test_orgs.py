"""The pages of `/orgs` that are made once for everybody."""

from datetime import UTC, datetime

import pytest

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


CENTERS = ("com", "eu", "in", "com.au", "jp", "ca", "com.cn", "sa")


@pytest.mark.parametrize("was_listed", [True, False])
def test_each_data_center_that_fails_is_named_even_if_all_do(was_listed):
    reports = []
    for center in CENTERS:
        organizations = (Organization(organization_id="1", name="x"),)
        known = Listing(center, organizations, AT) if was_listed else None
        reports.append(DataCenterReport(center, known, "It has not answered. " * 14))
    message = listing(Directory(tuple(reports)), View(), may_refresh=True)
    shown = [block["text"]["text"] for block in message.slack_blocks if block["type"] == "section"]
    for center in CENTERS:
        assert any(f":warning: *{center}*" in one for one in shown)
        assert f":warning: *{center}*" in message.text


def test_no_angle_bracket_of_ours_is_left_to_slack_to_read():
    (*_, footnote, _) = listing(a_directory("x"), View(), may_refresh=True).slack_blocks
    assert "`/orgs show &lt;id or name&gt;`" in footnote["elements"][0]["text"]


def test_what_is_filtered_is_made_anew():
    pages, directory = Pages(), a_directory("Northwind", "Tailspin")
    pages.listing(directory, View(), may_refresh=True)
    found = pages.listing(directory, View("tail"), may_refresh=True)
    assert "Northwind" not in found.text
