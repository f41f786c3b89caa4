"""When a directory may be shown again instead of being put together anew."""

from datetime import UTC, datetime

from bot.model.directory import DataCenterReport, Directory, Listing

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
