"""The bot reads the service's list of organizations, and people can search the list."""

import json
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from bot.errors import Ambiguous, NotFound
from bot.organizations.rules import (
    UNNAMED,
    DataCenterReport,
    Directory,
    Listing,
    Organization,
)
from bot.slack.messages import text

SENT = {
    "organization_id": "10234695",
    "name": "Zillum",
    "contact_name": "John Smith",
    "email": "johnsmith@zillum.com",
    "is_default_org": False,
    "language_code": "en",
    "fiscal_year_start_month": 0,
    "account_created_date": "2012-02-18",
    "time_zone": "PST",
    "is_org_active": True,
    "currency_id": "460000000000097",
    "currency_code": "USD",
    "currency_symbol": "$",
    "currency_format": "###,##0.00",
    "price_precision": 2,
}


def test_every_field_of_the_specification_is_kept() -> None:
    organization = Organization.model_validate_json(json.dumps(SENT))
    assert organization.model_dump() == SENT


def test_only_id_and_name_of_an_active_organization_have_to_be_there() -> None:
    organization = Organization.model_validate({"organization_id": "7", "name": "Zillum"})
    assert (organization.is_default_org, organization.is_org_active) == (False, True)


def test_a_field_nobody_knows_does_no_harm() -> None:
    assert Organization.model_validate({**SENT, "novelty": [1]}).name == "Zillum"


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("organization_id", 10234695),
        ("organization_id", ""),
        ("name", 7),
        ("is_org_active", "true"),
        ("fiscal_year_start_month", "0"),
        ("price_precision", 2.5),
        ("currency_code", ["USD"]),
    ],
)
def test_a_wrong_type_is_an_error(field: str, wrong: object) -> None:
    with pytest.raises(ValidationError):
        Organization.model_validate({**SENT, field: wrong})


@pytest.mark.parametrize("wrong", ["", "1\0", "1 2", "1\n", "\u202e1", "7" * 65])
def test_an_id_can_be_a_key(wrong: str) -> None:
    with pytest.raises(ValidationError):
        Organization.model_validate({**SENT, "organization_id": wrong})
    assert Organization.model_validate({**SENT, "organization_id": "7" * 64})


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_is_shown_as_missing(name: str) -> None:
    assert Organization.model_validate({**SENT, "name": name}).name == UNNAMED


def test_null_hides_no_other_organization() -> None:
    nulls = {"name": None, "is_default_org": None, "is_org_active": None, "email": None}
    both = [Organization.model_validate(item) for item in ({**SENT, **nulls}, SENT)]
    assert (both[0].name, both[0].is_default_org, both[0].is_org_active) == (UNNAMED, False, True)
    assert both[1].name == SENT["name"]


LISTING = Listing("com", (), datetime(2026, 3, 2, 9, 0, tzinfo=UTC))


def a_listing(*named: str, center: str = "com") -> Listing:
    """Return organizations that have these names and consecutive IDs, starting with 10000001."""
    organizations = tuple(
        Organization(organization_id=str(10000001 + number), name=name, contact_name=f"of {name}")
        for number, name in enumerate(named)
    )
    return Listing(center, organizations, LISTING.fetched_at)


def names_of(places) -> list[str]:
    return [place.organization.name for place in places]


def a_directory(*named: str, center: str = "com") -> Directory:
    """Return a directory that contains these organizations, all in one data center."""
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


def test_names_that_look_alike_are_a_choice():
    directory = a_directory("A--B", "A-B", "A-B-C")
    for typed in ("A--B", " A-B ", "a-b"):
        with pytest.raises(Ambiguous) as several:
            directory.find(typed)
        assert len(several.value.choices) == 2


@pytest.mark.parametrize("typed", ["", " ", "\u200b"])
def test_an_empty_search_matches_no_organization(typed):
    directory = a_directory("", "Acme")
    assert directory.matching(typed) == []
    with pytest.raises(
        NotFound, match=r"No organization is called “\u200b?”\. Use /orgs <text> to search"
    ):
        directory.find(typed, in_part=False)
