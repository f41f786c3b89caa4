import pytest
from aiohttp import encode_basic_auth


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": encode_basic_auth(name, password)}


BEARER = {"Authorization": "Bearer SG.demo-key"}


async def status_of(http, path, **how):
    async with http.get(path, **how) as response:
        return response.status


@pytest.mark.parametrize("path", ["/v3/templates", "/v3/resource"])
async def test_a_key_is_accepted_as_bearer_and_as_basic(http, path):
    assert await status_of(http, path, headers=BEARER) == 200
    assert await status_of(http, path, headers=basic("apikey", "SG.demo-key")) == 200


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"headers": {"Authorization": "Bearer SG.other"}},
        {"headers": {"Authorization": "Token SG.demo-key"}},
        {"headers": {"Authorization": "Basic !!!"}},
        {"headers": basic("someone", "SG.demo-key")},
    ],
)
async def test_anything_else_is_a_401(http, how):
    assert await status_of(http, "/v3/templates", **how) == 401


async def test_a_key_without_the_permission_is_a_403(http):
    limited = {"Authorization": "Bearer SG.limited-key"}

    assert await status_of(http, "/v3/templates", headers=limited) == 403
    assert await status_of(http, "/v3/resource", headers=limited) == 200


async def test_an_unknown_resource_is_a_404(http):
    assert await status_of(http, "/v3/nothing/here", headers=BEARER) == 404


async def test_templates_are_named(http):
    async with http.get("/v3/templates", headers=BEARER) as response:
        body = await response.json()
    assert {"id", "name"} <= body["result"][0].keys()
