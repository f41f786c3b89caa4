"""The addresses of the eight data centers."""

import pytest

from bot.organizations.rules import DATA_CENTERS, root_of
from bot.settings import DATA_CENTERS as CONFIGURABLE

BASE = "https://inventory.example.com/inventory/v1"


def test_there_are_eight_and_all_can_be_configured() -> None:
    assert tuple(DATA_CENTERS) == CONFIGURABLE
    assert len(DATA_CENTERS) == 8


@pytest.mark.parametrize("data_center", DATA_CENTERS)
def test_the_suffix_of_the_host_is_replaced(data_center: str) -> None:
    expected = f"https://inventory.example.{data_center}/inventory/v1"
    assert root_of(BASE, data_center) == expected


def test_a_port_stays_and_only_the_end_of_the_host_is_replaced() -> None:
    root = root_of("https://www.common.com.example.com:8443/com/v1", "eu")
    assert root == "https://www.common.com.example.eu:8443/com/v1"


@pytest.mark.parametrize("base", ["https://inventory.example.org/v1", "http://127.0.0.1:9/com"])
def test_a_host_without_the_suffix_has_no_other_data_centers(base: str) -> None:
    assert root_of(base, "com") == base
    with pytest.raises(ValueError, match=r"does not end in \.com"):
        root_of(base, "eu")
