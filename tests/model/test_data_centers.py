"""The addresses of the eight data centers."""

from bot.organizations.rules import DATA_CENTERS, root_of
from bot.settings import DATA_CENTERS as CONFIGURABLE


def test_there_are_eight_and_all_can_be_configured() -> None:
    assert tuple(DATA_CENTERS) == CONFIGURABLE
    assert len(DATA_CENTERS) == 8


def test_a_port_stays_and_only_the_end_of_the_host_is_replaced() -> None:
    root = root_of("https://www.common.com.example.com:8443/com/v1", "eu")
    assert root == "https://www.common.com.example.eu:8443/com/v1"
