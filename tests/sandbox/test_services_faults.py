import asyncio
import json

import aiohttp
import pytest
from aiohttp import encode_basic_auth

from sandbox.services.faults import Fault, FaultKind
from sandbox.services.running import running_services
from sandbox.services.state import FLOW_ACCOUNT_SID, FLOW_AUTH_TOKEN, WELCOME_FLOW, ServicesState

FLOW = {"Authorization": encode_basic_auth(FLOW_ACCOUNT_SID, FLOW_AUTH_TOKEN)}
ADDRESS = f"/v2/Flows/{WELCOME_FLOW}/TestUsers"


async def listing(http, data_center="eu", **how):
    query = {"authtoken": f"demo-{data_center}", "organization_id": how.pop("organization_id", "")}
    address = f"/{data_center}/inventory/v1/organizations"
    async with http.get(address, params=query, allow_redirects=False, **how) as response:
        return response.status, await response.read(), response.headers


async def update(http, identity):
    async with http.post(ADDRESS, data={"testUsers": identity}, headers=FLOW) as response:
        return response.status, await response.json()


async def read(http):
    async with http.get(ADDRESS, headers=FLOW) as response:
        return (await response.json())["test_users"]


def stored(services):
    return services.state.flows[WELCOME_FLOW].identities


async def test_a_status_strikes_only_where_and_as_often_as_asked(services, http):
    services.state.faults.add(
        Fault(FaultKind.STATUS, "inventory", "eu", status=503, times=2, method="GET")
    )

    assert (await listing(http, "com"))[0] == 200
    assert [(await listing(http))[0] for _ in range(3)] == [503, 503, 200]


async def test_a_fault_can_be_about_one_organization(services, http):
    services.state.faults.add(
        Fault(FaultKind.STATUS, "inventory", "eu", organization_id="20077314")
    )

    assert (await listing(http, organization_id="20077314"))[0] == 500
    assert (await listing(http, organization_id="20077315"))[0] == 200


async def test_a_refused_call_uses_up_no_fault(services, http):
    fault = services.state.faults.add(Fault(FaultKind.STATUS, "inventory", "eu", times=1))
    services.state.limits.block(("eu", None), 44)
    assert (await listing(http))[0] == 429

    services.state.limits.lift(("eu", None))

    assert fault.struck == 0
    assert (await listing(http))[0] == 500


async def test_broken_answers_are_broken_as_named(services, http):
    add = services.state.faults.add
    fault = add(Fault(FaultKind.HTML, "inventory"))
    status, body, headers = await listing(http)
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"<html>" in body
    fault.lift()

    fault = add(Fault(FaultKind.TRUNCATED, "inventory"))
    status, body, headers = await listing(http)
    assert status == 200
    with pytest.raises(json.JSONDecodeError):
        json.loads(body.decode(errors="replace"))
    fault.lift()

    fault = add(Fault(FaultKind.WRONG_TYPES, "inventory"))
    body = json.loads((await listing(http))[1])
    assert body["code"] == 0
    assert body["organizations"][1:] == [42]
    fault.lift()

    add(Fault(FaultKind.CODE, "inventory", code=1002, message="Not today."))
    status, body, headers = await listing(http)
    assert (status, json.loads(body)) == (200, {"code": 1002, "message": "Not today."})


async def test_a_redirect_points_where_asked(services, http):
    services.state.faults.add(
        Fault(FaultKind.REDIRECT, "inventory", location="http://127.0.0.1:1/elsewhere")
    )

    status, _, headers = await listing(http)

    assert (status, headers["Location"]) == (302, "http://127.0.0.1:1/elsewhere")


async def test_a_huge_body_has_no_length_and_a_bomb_is_small_on_the_wire(services, http):
    size = 2 * 1024 * 1024
    fault = services.state.faults.add(Fault(FaultKind.HUGE, "inventory", size_bytes=size))
    _, body, headers = await listing(http)
    assert len(body) > size
    assert "Content-Length" not in headers
    fault.lift()

    services.state.faults.add(Fault(FaultKind.BOMB, "inventory", size_bytes=size))
    _, body, headers = await listing(http)
    assert len(body) > size
    assert int(headers["Content-Length"]) < size / 10


async def test_a_connection_is_reset_or_cut(services, http):
    services.state.faults.add(Fault(FaultKind.RESET, "inventory", times=1))
    with pytest.raises(aiohttp.ClientOSError, match="reset by peer"):
        await listing(http)
    services.state.faults.add(Fault(FaultKind.CUT, "inventory", times=1))
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await listing(http)
    assert [call.status for call in services.state.calls] == [None, None]

    services.state.faults.add(Fault(FaultKind.CUT_BODY, "inventory", times=1))
    with pytest.raises(aiohttp.ClientPayloadError):
        await listing(http)
    assert (await listing(http))[0] == 200


async def test_a_drip_is_one_byte_at_a_time(clock):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    state = ServicesState(now=clock.monotonic, sleep=sleep)
    state.faults.add(Fault(FaultKind.DRIP, "flow"))
    async with running_services(state) as services, aiohttp.ClientSession(services.url) as http:
        assert await read(http) == state.flows[WELCOME_FLOW].identities

    assert len(slept) > 50
    assert set(slept) == {1.0}


@pytest.mark.parametrize("kind", [FaultKind.DRIP, FaultKind.HUGE])
async def test_a_client_may_leave_before_the_end_of_a_stream(services, http, caplog, kind):
    fault = Fault(kind, "inventory", seconds=0.001, size_bytes=50 * 1024 * 1024)
    services.state.faults.add(fault)
    query = {"authtoken": "demo-eu"}
    async with http.get("/eu/inventory/v1/organizations", params=query) as response:
        await response.content.readany()
        response.close()

    await services.state.until(lambda: services.state.calls[0].finished_at is not None)
    assert services.state.calls[0].status is None
    assert caplog.records == []


async def test_a_late_call_is_counted_after_its_delay_and_a_slow_one_before(clock):
    async def sleep(seconds):
        clock.advance(seconds)

    state = ServicesState(now=clock.monotonic, sleep=sleep)
    async with running_services(state) as services, aiohttp.ClientSession(services.url) as http:
        state.faults.add(Fault(FaultKind.SLOW, "inventory", seconds=5, times=1))
        await listing(http)
        state.faults.add(Fault(FaultKind.LATE, "inventory", seconds=5, times=1))
        await listing(http)

    slow, late = state.calls
    assert (slow.arrived_at, slow.counted_at, slow.finished_at) == (0, 0, 5)
    assert (late.arrived_at, late.counted_at, late.finished_at) == (5, 10, 10)


async def test_a_hanging_call_stays_in_flight_though_its_client_gave_up(services, http):
    hang = services.state.faults.add(Fault(FaultKind.HANG, "inventory", "eu"))
    call = asyncio.create_task(listing(http))
    await hang.reached()
    call.cancel()
    await asyncio.wait([call])

    usage = services.state.limits.usage["eu", None]
    assert usage.in_flight == 1
    hang.lift()
    await services.state.until(lambda: services.state.calls[0].finished_at is not None)
    assert usage.in_flight == 0


async def test_services_that_stop_do_not_wait_for_hanging_calls(clock):
    state = ServicesState(now=clock.monotonic)
    hang = state.faults.add(Fault(FaultKind.HANG, "inventory", "eu"))
    async with running_services(state) as services:
        http = aiohttp.ClientSession(services.url)
        call = asyncio.create_task(listing(http))
        await hang.reached()
    with pytest.raises(aiohttp.ClientError):
        await call
    await http.close()


async def test_a_post_is_held_before_its_work_until_lifted(services, http):
    hold = services.state.faults.add(Fault(FaultKind.HOLD, "flow", method="POST", times=1))
    before = await read(http)
    post = asyncio.create_task(update(http, "new"))
    await hold.reached()
    assert stored(services) == before

    hold.lift()

    assert (await post)[1]["test_users"] == ["new"]
    assert stored(services) == ["new"]


async def test_a_read_held_after_its_work_answers_what_was_there_then(services, http):
    hold = services.state.faults.add(Fault(FaultKind.HOLD, "flow", method="GET", after_work=True))
    before = list(stored(services))
    get = asyncio.create_task(read(http))
    await hold.reached()
    services.state.edit_flow(WELCOME_FLOW, ["outside"])

    hold.lift()

    assert await get == before


async def test_a_post_may_be_stored_though_nobody_hears_of_it(services, http):
    services.state.faults.add(Fault(FaultKind.CUT, "flow", method="POST", times=1))

    with pytest.raises(aiohttp.ClientError):
        await update(http, "new")

    assert stored(services) == ["new"]
    assert services.state.flows[WELCOME_FLOW].history == [["new"]]


async def test_a_failing_post_stores_nothing_unless_asked(services, http):
    before = list(stored(services))
    add = services.state.faults.add
    add(Fault(FaultKind.STATUS, "flow", method="POST", status=500, times=1))
    assert (await update(http, "one"))[0] == 500
    assert stored(services) == before

    add(Fault(FaultKind.STATUS, "flow", method="POST", status=500, times=1, after_work=True))
    assert (await update(http, "two"))[0] == 500
    assert stored(services) == ["two"]


async def test_an_answer_may_differ_from_what_was_stored(services, http):
    services.state.faults.add(Fault(FaultKind.OTHER_LIST, "flow", identities=("else",), times=1))

    assert (await update(http, "new"))[1]["test_users"] == ["else"]
    assert await read(http) == ["new"]


async def test_faults_of_one_place_are_lifted_together(services, http):
    faults = services.state.faults
    faults.add(Fault(FaultKind.STATUS, "inventory", "eu"))
    faults.add(Fault(FaultKind.SLOW, "inventory", "eu", seconds=60))
    kept = faults.add(Fault(FaultKind.STATUS, "flow"))

    assert faults.lift(service="inventory", data_center="eu") == 2

    assert (await listing(http))[0] == 200
    assert faults.active() == [kept]
