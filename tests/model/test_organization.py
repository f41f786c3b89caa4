"""What the listing of the inventory service is read into."""

import json

import pytest
from pydantic import ValidationError

from bot.organizations.rules import (
    UNNAMED,
    Organization,
)

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
def test_empty_name_is_shown_as_none(name: str) -> None:
    assert Organization.model_validate({**SENT, "name": name}).name == UNNAMED


def test_null_hides_no_other_organization() -> None:
    nulls = {"name": None, "is_default_org": None, "is_org_active": None, "email": None}
    both = [Organization.model_validate(item) for item in ({**SENT, **nulls}, SENT)]
    assert (both[0].name, both[0].is_default_org, both[0].is_org_active) == (UNNAMED, False, True)
    assert both[1].name == SENT["name"]
