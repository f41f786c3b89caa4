"""The stand-in services follow the specification, including its error responses and rate limits."""

import asyncio

import aiohttp
import pytest
from aiohttp import encode_basic_auth

from sandbox.services.faults import Fault, FaultKind
from sandbox.services.limits import PLANS, LimitRules, Limits
from sandbox.services.organizations import DATA_CENTERS
from sandbox.services.state import SURVEY_FLOW, WELCOME_FLOW

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


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": encode_basic_auth(name, password)}


AUTH = basic("AC00000000000000000000000000000001", "demo-flow-token")
ADDRESS = f"/v2/Flows/{WELCOME_FLOW}/TestUsers"


async def update(http, *identities, field="testUsers", address=ADDRESS, auth=AUTH):
    form = [(field, identity) for identity in identities]
    async with http.post(address, data=form, headers=auth) as response:
        return response.status, await response.json()


async def read_flow(http, address=ADDRESS, auth=AUTH):
    async with http.get(address, headers=auth) as response:
        return response.status, await response.json()


async def test_an_update_replaces_the_list_and_answers_what_was_sent(services, http):
    status, body = await update(http, "+15550001", "chat:böb")

    assert status == 200
    assert body == {
        "sid": WELCOME_FLOW,
        "test_users": ["+15550001", "chat:böb"],
        "url": f"{services.url}{ADDRESS}",
    }
    assert await read_flow(http) == (200, body)
    assert services.state.flows[WELCOME_FLOW].history == [["+15550001", "chat:böb"]]
    assert services.state.flows[SURVEY_FLOW].history == []


async def test_a_list_can_be_long(services, http):
    identities = [f"+1555{number}" for number in range(2_000)]
    assert (await update(http, *identities))[0] == 200
    assert services.state.flows[WELCOME_FLOW].identities == identities


async def test_the_field_can_also_be_spelled_in_pascal_case(services, http):
    assert (await update(http, "a", "b", field="TestUsers"))[0] == 200
    assert services.state.flows[WELCOME_FLOW].identities == ["a", "b"]


async def test_one_empty_value_is_the_empty_list(services, http):
    status, body = await update(http, "")

    assert (status, body["test_users"]) == (200, [])
    assert services.state.flows[WELCOME_FLOW].history == [[]]


@pytest.mark.parametrize(
    ("identities", "status"),
    [(["é" * 150], 200), (["é" * 151], 400), (["a" * 301], 400), (["a", ""], 400), ([], 400)],
)
async def test_a_value_that_is_no_list_of_identities_is_refused(services, http, identities, status):
    before = list(services.state.flows[WELCOME_FLOW].identities)

    assert (await update(http, *identities))[0] == status

    stored = services.state.flows[WELCOME_FLOW].identities
    assert stored == (identities if status == 200 else before)


@pytest.mark.parametrize(
    "auth",
    [
        None,
        basic("AC00000000000000000000000000000001", "wrong"),
        basic("AC00000000000000000000000000000002", "demo-flow-token"),
    ],
)
async def test_wrong_credentials_are_a_401(services, http, auth):
    assert (await read_flow(http, auth=auth))[0] == 401
    assert (await update(http, "x", auth=auth))[0] == 401
    assert services.state.flows[WELCOME_FLOW].history == []


@pytest.mark.parametrize(
    ("sid", "status"),
    [
        ("FW" + "0" * 31, 400),
        ("FW" + "g" * 32, 400),
        ("fw" + "0" * 32, 400),
        ("FW" + "0" * 30 + "09", 404),
    ],
)
async def test_a_flow_that_is_not_there_is_refused(http, sid, status):
    assert (await read_flow(http, f"/v2/Flows/{sid}/TestUsers"))[0] == status


EU = ("eu", "20077314")


async def call(http, organization_id="20077314"):
    query = {"authtoken": "demo-eu"}
    if organization_id:
        query["organization_id"] = organization_id
    async with http.get("/eu/inventory/v1/organizations", params=query) as response:
        return response.status, (await response.json())["code"]


async def test_the_101st_call_in_a_minute_is_a_44(services, http, clock):
    answers = [await call(http) for _ in range(101)]

    assert answers == [(200, 0)] * 100 + [(429, 44)]
    assert await call(http, "20077315") == (200, 0)
    assert await call(http, None) == (200, 0)
    clock.advance(60)
    assert await call(http) == (200, 0)
    assert [refused.code for refused in services.state.refused] == [44]


async def test_the_sixth_call_at_once_is_a_1070_on_the_free_plan(services, http):
    state = services.state
    hold = state.faults.add(Fault(FaultKind.HOLD, "inventory", "eu"))
    held = [asyncio.create_task(call(http)) for _ in range(5)]
    await state.until(lambda: state.limits.usage[EU].in_flight == 5)

    refused = await call(http)
    hold.lift()

    assert refused == (429, 1070)
    assert await asyncio.gather(*held) == [(200, 0)] * 5
    assert await call(http) == (200, 0)
    assert state.limits.usage[EU].peak_in_flight == 5
    assert state.limits.usage[EU].in_flight == 0


def limits_at(clock, **rules):
    return Limits(clock.monotonic, LimitRules(**rules))


def enter(limits, at=EU):
    refusal = limits.enter(at)
    if refusal is None:
        limits.leave(at)
        return None
    return refusal


@pytest.mark.parametrize("plan", PLANS)
def test_the_day_ends_with_the_plan_and_names_its_limit(clock, plan):
    limits = limits_at(clock, per_minute=10**6)
    limits.plans[EU] = plan
    for _ in range(PLANS[plan].per_day):
        assert enter(limits) is None

    refusal = enter(limits)

    assert refusal.code == 45
    assert f"{PLANS[plan].per_day:,}" in refusal.message
    clock.advance(86_400)
    assert enter(limits) is None


@pytest.mark.parametrize("code", [44, 45, 1070])
async def test_a_block_refuses_until_it_ends_or_is_lifted(services, http, clock, code):
    limits = services.state.limits
    limits.block(EU, code, seconds=60)
    assert await call(http) == (429, code)
    assert await call(http, "20077315") == (200, 0)
    clock.advance(60)
    assert await call(http) == (200, 0)

    limits.block(EU, code)
    clock.advance(10**6)
    assert await call(http) == (429, code)
    limits.lift(EU)
    assert await call(http) == (200, 0)


async def test_the_service_reports_the_day_in_headers_if_enabled(services, http, clock):
    clock.advance(100.0)
    query = {"authtoken": "demo-eu", "organization_id": "20077314"}
    async with http.get("/eu/inventory/v1/organizations", params=query) as response:
        assert "X-Rate-Limit-Limit" not in response.headers
    services.state.limits.rules.tells_day = True

    async with http.get("/eu/inventory/v1/organizations", params=query) as response:
        told = {name: response.headers[f"X-Rate-Limit-{name}"] for name in ("Limit", "Remaining")}
        reset = response.headers["X-Rate-Limit-Reset"]

    assert told == {"Limit": "1000", "Remaining": "998"}
    assert reset == "86300"
