import aiohttp
import pytest

from sandbox.services.oauth_tokens import CLIENT_ID, CLIENT_SECRET, refresh_token

CLIENT = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}


def form(**changes):
    body = {"grant_type": "refresh_token", "refresh_token": refresh_token("eu"), **CLIENT}
    return {name: value for name, value in (body | changes).items() if value is not None}


async def ask(http, fields, **how):
    async with http.post("/oauth/token", data=fields, **how) as response:
        return response.status, await response.json()


async def list_eu(http, token, data_center="eu"):
    headers = {"Authorization": f"Bearer {token}"}
    address = f"/{data_center}/inventory/v1/organizations"
    async with http.get(address, headers=headers) as response:
        return response.status


async def test_a_refresh_token_buys_an_access_token_of_its_data_center(services, http, clock):
    status, body = await ask(http, form())

    assert (status, body["token_type"], body["expires_in"]) == (200, "Bearer", 3600)
    assert "refresh_token" not in body
    assert await list_eu(http, body["access_token"]) == 200
    assert await list_eu(http, body["access_token"], "com") == 401
    clock.advance(3600)
    assert await list_eu(http, body["access_token"]) == 401
    assert services.state.oauth.granted == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"refresh_token": "wrong"}, (400, "invalid_grant")),
        ({"refresh_token": None}, (400, "invalid_request")),
        ({"grant_type": "password"}, (400, "unsupported_grant_type")),
        ({"client_secret": "wrong"}, (401, "invalid_client")),
    ],
)
async def test_refusals_have_the_names_of_the_rfc(http, changes, expected):
    status, body = await ask(http, form(**changes))

    assert (status, body["error"]) == expected


async def test_the_client_may_name_itself_by_basic_authentication(http):
    headers = {"Authorization": aiohttp.encode_basic_auth(CLIENT_ID, CLIENT_SECRET)}
    fields = form(client_id=None, client_secret=None)

    assert (await ask(http, fields, headers=headers))[0] == 200
    assert (await ask(http, fields))[0] == 401


async def test_a_rotating_provider_refuses_the_old_refresh_token(services, http):
    services.state.oauth.rotates = True
    _, body = await ask(http, form())

    assert (await ask(http, form()))[1] == {"error": "invalid_grant"}
    assert (await ask(http, form(refresh_token=body["refresh_token"])))[0] == 200
    assert (services.state.oauth.granted, services.state.oauth.refused) == (2, 1)


async def test_tokens_can_be_revoked(services, http):
    _, body = await ask(http, form())
    services.state.oauth.revoke_access()
    services.state.oauth.revoke_refresh(refresh_token("eu"))

    assert await list_eu(http, body["access_token"]) == 401
    assert (await ask(http, form()))[1] == {"error": "invalid_grant"}
