import aiohttp
import pytest

from sandbox.services.organizations import DATA_CENTERS

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
