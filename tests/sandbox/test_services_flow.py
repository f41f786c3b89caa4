import pytest
from aiohttp import encode_basic_auth

from sandbox.services.state import SURVEY_FLOW, WELCOME_FLOW


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": encode_basic_auth(name, password)}


AUTH = basic("AC00000000000000000000000000000001", "demo-flow-token")
ADDRESS = f"/v2/Flows/{WELCOME_FLOW}/TestUsers"


async def update(http, *identities, field="testUsers", address=ADDRESS, auth=AUTH):
    form = [(field, identity) for identity in identities]
    async with http.post(address, data=form, headers=auth) as response:
        return response.status, await response.json()


async def read(http, address=ADDRESS, auth=AUTH):
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
    assert await read(http) == (200, body)
    assert services.state.flows[WELCOME_FLOW].history == [["+15550001", "chat:böb"]]
    assert services.state.flows[SURVEY_FLOW].history == []


async def test_the_other_spelling_of_the_field_is_taken_too(services, http):
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
async def test_what_is_no_list_of_identities_is_refused_and_not_stored(
    services, http, identities, status
):
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
    assert (await read(http, auth=auth))[0] == 401
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
    assert (await read(http, f"/v2/Flows/{sid}/TestUsers"))[0] == status
