"""The inventory client gets a grant before each call, and checks every response."""

from typing import Any

import pytest
from yarl import URL

from bot.errors import NotConfigured
from bot.organizations.client import DataCenterAccess, InventoryClient
from bot.organizations.rules import Organization, OrganizationKey
from bot.services.calls import PROBE, CallCause
from bot.services.credentials import Credential, Signed, authorization
from bot.services.errors import (
    CredentialsRefused,
    NotJson,
    ServiceError,
    ServiceRefused,
    WrongForm,
)
from tests.support.http import Bench, FakeGuard, FakeServices

ROOT = URL("https://inventory.example.eu/inventory/v1")
EU = OrganizationKey("eu", "7")
CAUSE = CallCause("list", "U1")
LISTING = {
    "code": 0,
    "message": "success",
    "organizations": [{"organization_id": "7", "name": "Zillum"}],
}


class FakeCredential:
    """A fake credential that counts how many times it is renewed."""

    def __init__(self) -> None:
        self.renewals = 0

    async def sign(self) -> Signed:
        return Signed("")

    async def renewed(self, refused: Signed) -> Signed:
        self.renewals += 1
        return Signed("")


LISTING_SCOPE = "ServiceInventory.settings.READ"


@pytest.fixture
def guard() -> FakeGuard:
    return FakeGuard()


def a_client(bench: Bench, guard: FakeGuard, credential: Credential | None = None):
    access = DataCenterAccess(
        ROOT, credential or Credential(Signed("t0ken", {"authtoken": "t0ken"})), LISTING_SCOPE
    )
    return InventoryClient(bench.http, guard.call, {"eu": access})


def address(**query: str) -> URL:
    return (ROOT / "organizations").with_query(query)


async def test_a_listing_counts_against_the_organization_it_names(
    bench: Bench, services: FakeServices, guard: FakeGuard
) -> None:
    services.get(address(organization_id="7", authtoken="t0ken"), payload=LISTING)
    found = await a_client(bench, guard).organizations(EU, CAUSE)
    assert found == (Organization(organization_id="7", name="Zillum"),)
    assert guard.events == [EU, "responded", "passed"]
    assert guard.causes == [CAUSE]


async def test_the_header_form_keeps_the_token_out_of_the_address(
    bench: Bench, services: FakeServices, guard: FakeGuard
) -> None:
    services.get(address(organization_id="7"), payload=LISTING)
    credential = Credential(
        Signed("t0ken", headers=authorization("Neutral-oauthtoken {token}", "t0ken"))
    )
    await a_client(bench, guard, credential).organizations(EU, CAUSE)
    (((_, url), (sent,)),) = services.requests.items()
    assert "t0ken" not in str(url)
    assert sent.kwargs["headers"]["Authorization"] == "Neutral-oauthtoken t0ken"


@pytest.mark.parametrize("cause", [CallCause("watch", background=True), CallCause(PROBE)])
@pytest.mark.parametrize("status", [502, 401])
async def test_a_background_call_takes_one_grant(
    bench: Bench, services: FakeServices, guard: FakeGuard, cause: CallCause, status: int
) -> None:
    services.get(address(organization_id="7"), status=status, repeat=True)
    credential = FakeCredential()
    with pytest.raises(ServiceError):
        await a_client(bench, guard, credential).organizations(EU, cause)
    assert guard.events == [EU, "responded"]
    assert credential.renewals == (1 if status == 401 else 0)


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        ({"body": "<html>Maintenance of db-7</html>"}, NotJson, "not JSON"),
        ({"body": '{"code": 0, "organ'}, NotJson, "not JSON"),
        ({"body": b"\xff\xfe"}, NotJson, "not JSON"),
        ({"body": "[" * 100_000}, NotJson, "not JSON"),
        ({"payload": [1]}, WrongForm, "not the expected object"),
        ({"payload": {"organizations": []}}, WrongForm, "field “code”"),
        ({"payload": {"code": "0", "organizations": []}}, WrongForm, "field “code”"),
        ({"payload": {"code": 0}}, WrongForm, "no list of organizations"),
        ({"payload": {"code": 0, "organizations": {}}}, WrongForm, "field “organizations”"),
        (
            {"payload": {"code": 0, "organizations": [{"organization_id": 7, "name": "x"}]}},
            WrongForm,
            "organizations.0.organization_id",
        ),
        ({"payload": {"code": 57, "message": "of db-7"}}, ServiceRefused, "(code 57)"),
        (
            {"status": 401, "payload": {"code": 57}},
            CredentialsRefused,
            f"INVENTORY_DATA_CENTERS. The new credential needs the scope {LISTING_SCOPE}.",
        ),
        (
            {"status": 401, "payload": {"code": 57}},
            CredentialsRefused,
            "check that its API root (base_url) is of the same data center.",
        ),
        ({"status": 400, "payload": {"code": 5, "message": "Hm"}}, ServiceRefused, "Hm"),
    ],
)
async def test_a_broken_answer_is_one_error_with_a_sentence(
    bench: Bench,
    services: FakeServices,
    guard: FakeGuard,
    answer: dict[str, Any],
    error: type[ServiceError],
    says: str,
) -> None:
    services.get(address(organization_id="7", authtoken="t0ken"), **answer)
    with pytest.raises(error) as caught:
        await a_client(bench, guard).organizations(EU, CAUSE)
    sentence = caught.value.sentence
    assert sentence.startswith("The inventory service (eu) ")
    assert says in sentence
    assert "db-7" not in sentence
    assert "t0ken" not in sentence
    # This call did not pass, so it must not end a block.
    assert guard.events == [EU, "responded"]


async def test_a_data_center_without_settings_is_named(bench: Bench, guard: FakeGuard) -> None:
    with pytest.raises(NotConfigured, match=r"service \(jp\) is not set up"):
        await a_client(bench, guard).organizations(OrganizationKey("jp"), CAUSE)
    assert a_client(bench, guard).data_centers == ("eu",)
