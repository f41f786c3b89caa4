import asyncio

import pytest

from sandbox.services.faults import Fault, FaultKind
from sandbox.services.limits import PLANS, LimitRules, Limits

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


async def test_the_day_is_told_in_headers_when_asked(services, http, clock):
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
