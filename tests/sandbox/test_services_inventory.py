import asyncio
import time
from collections import defaultdict

import aiohttp
import pytest

from sandbox.services.organizations import DATA_CENTERS, many_organizations
from sandbox.services.running import RunningServices

FIELDS = {
    "organization_id": str,
    "name": str,
    "contact_name": str,
    "email": str,
    "is_default_org": bool,
    "language_code": str,
    "fiscal_year_start_month": int,
    "account_created_date": str,
    "time_zone": str,
    "is_org_active": bool,
    "currency_id": str,
    "currency_code": str,
    "currency_symbol": str,
    "currency_format": str,
    "price_precision": int,
}


async def listing(http: aiohttp.ClientSession, data_center: str, **query: str) -> tuple[int, dict]:
    address = f"/{data_center}/inventory/v1/organizations"
    query = {"authtoken": f"demo-{data_center}", **query}
    async with http.get(address, params=query) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("data_center", DATA_CENTERS)
async def test_every_data_center_lists_organizations_as_specified(http, data_center):
    status, body = await listing(http, data_center)

    assert (status, body["code"], body["message"]) == (200, 0, "success")
    for organization in body["organizations"]:
        assert {name: type(value) for name, value in organization.items()} == FIELDS
        assert organization["organization_id"].isdigit()
        assert organization["currency_id"].isdigit()
    assert [o["is_default_org"] for o in body["organizations"]].count(True) == 1


async def test_names_are_as_awkward_as_in_life(http):
    where = defaultdict(set)
    states = set()
    for data_center in DATA_CENTERS:
        _, body = await listing(http, data_center)
        for organization in body["organizations"]:
            where[organization["name"]].add(data_center)
            states.add(organization["is_org_active"])

    assert where["Northwind Traders"] == {"com", "eu"}
    assert states == {True, False}
    together = "".join(where)
    assert all(mark in together for mark in ("&", "<", "🌵", "شركة"))


@pytest.mark.parametrize(
    "headers",
    [{"Authorization": "Bearer demo-eu"}, {"Authorization": "Token demo-eu"}],
)
async def test_the_credential_is_accepted_in_a_header_of_any_scheme(http, headers):
    async with http.get("/eu/inventory/v1/organizations", headers=headers) as response:
        assert response.status == 200


@pytest.mark.parametrize("query", [{}, {"authtoken": "demo-com"}, {"authtoken": ""}])
async def test_without_the_data_centers_own_credential_the_answer_is_401(services, http, query):
    async with http.get("/eu/inventory/v1/organizations", params=query) as response:
        assert response.status == 401
        assert (await response.json())["code"] != 0
    assert services.state.calls[-1].counted_at is None


async def test_an_organization_is_reachable_only_in_its_own_data_center(http):
    assert (await listing(http, "eu", organization_id="20077314"))[0] == 200

    status, body = await listing(http, "com", organization_id="20077314")

    assert status == 400
    assert body["code"] != 0


async def test_an_unknown_data_center_is_not_found(http):
    status, body = await listing(http, "org")

    assert (status, body["code"] != 0) == (404, True)


async def test_calls_are_recorded_without_credentials(services, http):
    await listing(http, "eu", organization_id="20077314")

    [call] = services.state.calls
    assert (call.method, call.path) == ("GET", "/eu/inventory/v1/organizations")
    assert (call.data_center, call.organization_id) == ("eu", "20077314")
    assert (call.status, call.in_flight) == (200, 1)
    assert "demo-eu" not in repr(call)


async def test_ten_thousand_long_names_are_served_quickly(services: RunningServices, http):
    services.state.set_organizations("com", many_organizations("com", 10_000))

    started = time.perf_counter()
    answers = await asyncio.gather(*(listing(http, "com") for _ in range(3)))

    assert time.perf_counter() - started < 5
    names = {organization["name"] for organization in answers[0][1]["organizations"]}
    assert len(names) == 10_000
    assert {len(name) for name in names} == {300}
    assert len(services.state.data_centers["com"].listing) < 10 * 1024 * 1024
