import pytest


async def post(http, path, body):
    async with http.post(f"/_control/{path}", json=body) as response:
        return response.status, await response.text()


async def listed(http, data_center="eu"):
    query = {"authtoken": f"demo-{data_center}", "organization_id": "20077314"}
    address = f"/{data_center}/inventory/v1/organizations"
    async with http.get(address, params=query) as response:
        return response.status


async def state_of(http):
    async with http.get("/_control/state") as response:
        return await response.json()


EU = {"data_center": "eu", "organization_id": "20077314"}


async def test_an_organization_is_blocked_and_lifted(http):
    assert (await post(http, "block", {**EU, "code": 44, "seconds": 60}))[0] == 200
    assert await listed(http) == 429
    [eu] = [dc for dc in (await state_of(http))["data_centers"] if dc["data_center"] == "eu"]
    assert [o["block"] and o["block"]["code"] for o in eu["organizations"]] == [44, None, None]

    assert (await post(http, "lift", EU))[0] == 200

    assert await listed(http) == 200


async def test_faults_are_set_shown_and_lifted(services, http):
    status, _ = await post(
        http, "faults", {"service": "inventory", "data_center": "eu", "kind": "status"}
    )
    assert status == 200
    assert await listed(http) == 500
    [fault] = (await state_of(http))["faults"]
    assert (fault["kind"], fault["data_center"], fault["struck"]) == ("status", "eu", 1)

    assert await post(http, "faults/lift", {"fault_id": fault["fault_id"]}) == (
        200,
        '{"lifted": 1}',
    )
    assert await listed(http) == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("block", {**EU, "code": 1}),
        ("block", {"data_center": "eu", "organization_id": "1", "code": 44}),
        ("block", {"data_center": "org", "code": 44}),
        ("plan", {**EU, "plan": "golden"}),
        ("limits", {"per_second": 1}),
        ("limits", {"minute": {"kind": "square"}}),
        ("faults", {"service": "inventory", "kind": "sulk"}),
        ("faults", {"service": "kitchen", "kind": "slow"}),
        ("faults", {"service": "inventory", "kind": "slow", "colour": "red"}),
        ("flows/x", {}),
        ("flows/x", []),
    ],
)
async def test_a_wish_that_makes_no_sense_is_refused(services, http, path, body):
    assert (await post(http, path, body))[0] == 400
    assert services.state.faults.active() == []


async def test_the_last_calls_are_shown_without_credentials(http):
    for _ in range(3):
        await listed(http)

    async with http.get("/_control/calls", params={"last": "2"}) as response:
        text, body = await response.text(), await response.json()

    assert [call["number"] for call in body["calls"]] == [2, 3]
    assert body["calls"][0]["status"] == 200
    assert "demo-eu" not in text


async def test_a_page_of_another_site_controls_nothing(services, http):
    body = '{"data_center": "eu", "code": 44}'
    async with http.post("/_control/block", data=body) as response:
        assert response.status == 415
    rebound = {"Host": "evil.example"}
    async with http.post("/_control/block", json={}, headers=rebound) as response:
        assert response.status == 403
    assert services.state.limits.usage["eu", None].block is None
