"""Test calls that wait for a slot, and calls that the gateway or the service declines."""

import asyncio
import gzip
import json
import math
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from aiohttp import web
from yarl import URL

from bot.errors import DatabaseUnavailable
from bot.quotas.store import incidents
from bot.store.engine import Database
from tests.gateway.conftest import EU, ITEMS, hold_all, running_gateway


async def declined(gateway, client="script", **rest) -> tuple[str, int, int]:
    """Assert that a call is declined. Return the reason, the code and the `Retry-After` value."""
    async with gateway.call(ITEMS, client, **rest) as answer:
        assert answer.status == 429
        body = await answer.json()
        assert set(body) == {"code", "message"}
        retry = answer.headers["Retry-After"]
        assert retry.isdigit()
        return answer.headers["Gatehouse-Declined"], body["code"], int(retry)


async def use_up(gateway, calls: int, client="script") -> None:
    for _ in range(calls):
        assert await gateway.status(ITEMS, client) == 200


def assert_is_left(seconds: int, told: int, began: float) -> None:
    """Assert that `told` is close to the number of seconds left in a pause.

    The pause started at `began` and lasts for `seconds`.
    """
    assert seconds - 1 - (time.monotonic() - began) <= told <= seconds + 1


@pytest.mark.slow
async def test_minute_of_clients_is_four_fifths(gateway):
    began = time.monotonic()
    await use_up(gateway, 80)
    kind, code, seconds = await declined(gateway)
    assert (kind, code) == ("minute", 44)
    assert_is_left(60, seconds, began)
    assert len(gateway.upstream.got) == 80


async def test_share_is_declined_in_the_same_form(gateway):
    await use_up(gateway, 20, "quarter")
    assert (await declined(gateway, "quarter"))[:2] == ("minute", 44)
    async with gateway.call(ITEMS, "quarter") as answer:
        assert (
            "used its share of the calls for organization 20061234"
            in (await answer.json())["message"]
        )
    assert await gateway.status(ITEMS, "nightly") == 200


async def test_fifth_call_at_once_is_declined(gateway):
    go_on, calls = await hold_all(gateway)
    kind, code, seconds = await declined(gateway)
    # The calls under way may take 15 s, but seldom do.
    assert (kind, code, seconds <= 2) == ("concurrent", 1070, True)
    go_on.set()
    assert await asyncio.gather(*calls) == [200] * 4
    assert gateway.upstream.most_running == 4


async def test_client_that_waits_goes_when_a_call_ends(gateway):
    go_on, calls = await hold_all(gateway)
    waiting = asyncio.create_task(gateway.status(ITEMS, headers={"Prefer": "wait=20"}))
    done, _ = await asyncio.wait({waiting}, timeout=0.3)
    assert not done
    go_on.set()
    assert await waiting == 200
    assert await asyncio.gather(*calls) == [200] * 4


async def test_a_client_waits_no_longer_than_it_prefers(gateway):
    go_on, calls = await hold_all(gateway)
    began = asyncio.get_running_loop().time()
    assert (await declined(gateway, headers={"Prefer": "wait=1"}))[:2] == ("concurrent", 1070)
    assert 1.0 <= asyncio.get_running_loop().time() - began < 30.0
    go_on.set()
    await asyncio.gather(*calls)


@pytest.mark.parametrize(("waited", "most"), [(0.0, 1.0), (0.6, 0.4), (1.0, 0.0)])
async def test_a_decline_is_not_delayed_further_after_a_wait(gateway, waited, most):
    hold_back = gateway.world.bot.inventory.gateway._hold_back
    began = asyncio.get_running_loop().time() - waited
    await asyncio.gather(*(hold_back("script", began) for _ in range(40)))
    took = asyncio.get_running_loop().time() - began - waited
    assert most <= took < most + 0.3


def refusing(code: int, *, retry: str | None = None):
    async def answer(_request, _body):
        body = json.dumps({"code": code, "message": "Too many, says the service."}).encode()
        headers = {"Content-Type": "application/json"}
        if retry:
            headers["Retry-After"] = retry
        return web.Response(status=429, body=body, headers=headers)

    return answer


async def open_incidents(gateway):
    async with gateway.world.bot.database.read_only() as tx:
        return await incidents.all_open(tx)


@pytest.mark.parametrize(
    ("code", "known", "seconds"),
    [(44, 44, 60), (45, 45, 900), (1070, 1070, 2), (9, 44, 60)],
)
async def test_refusal_by_the_service_is_passed_on(gateway, code, known, seconds):
    gateway.upstream.answer, began = refusing(code), time.monotonic()
    async with gateway.call(ITEMS) as answer:
        assert answer.status == 429
        assert await answer.json() == {"code": code, "message": "Too many, says the service."}
        assert "Gatehouse-Declined" not in answer.headers
        assert_is_left(seconds, int(answer.headers["Retry-After"]), began)
    (incident,) = await open_incidents(gateway)
    assert incident.code == known
    assert incident.detail.words == "Too many, says the service."


async def test_a_compressed_429_is_read(gateway):
    body = gzip.compress(json.dumps({"code": 45, "message": "No more today."}).encode())
    packed = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    gateway.upstream.responds(status=429, body=body, headers=packed)
    async with gateway.call(ITEMS) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "900")
        assert (await answer.json())["message"] == "No more today."
    (incident,) = await open_incidents(gateway)
    assert (incident.code, incident.detail.words) == (45, "No more today.")


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
async def test_a_429_that_cannot_be_decompressed_counts(gateway, encoding):
    gateway.upstream.responds(status=429, body=b"abc", headers={"Content-Encoding": encoding})
    assert await gateway.status(ITEMS, auto_decompress=False) == 429
    assert [incident.code for incident in await open_incidents(gateway)] == [44]


async def test_nobody_calls_while_the_service_blocks(gateway):
    gateway.upstream.answer, began = refusing(44), time.monotonic()
    await gateway.status(ITEMS)
    kind, code, seconds = await declined(gateway, "nightly")
    assert (kind, code) == ("blocked", 44)
    assert_is_left(60, seconds, began)
    assert len(gateway.upstream.got) == 1


@pytest.mark.parametrize(("told", "kept"), [("300", 300), ("99999", 90_000), ("299.5", 300)])
async def test_longer_pause_of_the_service_is_kept(gateway, told, kept):
    gateway.upstream.answer, began = refusing(44, retry=told), time.monotonic()
    async with gateway.call(ITEMS) as answer:
        assert answer.headers["Retry-After"] == str(math.ceil(float(told)))
    assert_is_left(kept, (await declined(gateway))[2], began)


def breaking_off(length: int | None = None, seconds: float = 0.0):
    """Send status 429 and part of the body, and then close the connection or wait for `seconds`."""

    async def answer(request, _body):
        response = web.StreamResponse(status=429, headers={"Content-Type": "application/json"})
        response.content_length = length
        await response.prepare(request)
        await response.write(b'{"code": 44, "mess')
        if seconds:
            await asyncio.sleep(seconds)
        else:
            request.transport.close()
        return response

    return answer


@pytest.mark.parametrize(
    "broken",
    [breaking_off(1000), breaking_off(), breaking_off(12_000_000), breaking_off(seconds=5.0)],
    ids=["with a length", "in chunks", "too long", "never ending"],
)
async def test_refusal_counts_from_its_status_line(gateway, broken, monkeypatch):
    monkeypatch.setattr("bot.gateway.forward.REFUSAL_SECONDS", 0.3)
    gateway.upstream.answer = broken
    async with gateway.call(ITEMS) as answer:
        assert answer.status == 429
        assert "message" in await answer.json()
        assert int(answer.headers["Retry-After"]) >= 55
    assert (await declined(gateway))[:2] == ("blocked", 44)
    assert len(gateway.upstream.got) == 1
    assert [incident.code for incident in await open_incidents(gateway)] == [44]


async def test_only_the_gateways_own_answers_say_so(gateway):
    own = {"Gatehouse-Answered": "gateway"}
    for path, client in (("/healthz", None), (ITEMS, None), ("/in/x", "script")):
        async with gateway.call(path, client) as answer:
            assert own.items() <= dict(answer.headers).items()
    async with gateway.call(ITEMS) as answer:
        assert "Gatehouse-Answered" not in answer.headers
    gateway.upstream.answer = refusing(44)
    async with gateway.call(ITEMS) as answer:
        assert "Gatehouse-Answered" not in answer.headers
    async with gateway.call(ITEMS) as answer:
        assert own.items() <= dict(answer.headers).items()


async def test_reserve_is_left_to_others(sqlite_url):
    reserve = json.dumps({"*": {"minute": 99}, f"eu/{EU}": {"minute": 90}})
    async with running_gateway(sqlite_url, inventory_reserve=reserve) as gateway:
        await use_up(gateway, 8)
        async with gateway.call(ITEMS) as answer:
            assert "limit of 8 calls per minute" in (await answer.json())["message"]
        assert len(gateway.upstream.got) == 8


async def test_reserve_that_leaves_one_call_leaves_the_gateway_one(database_url):
    reserve = json.dumps({"*": {"minute": 30, "day": 1000}})
    async with running_gateway(database_url, inventory_reserve=reserve) as gateway:
        await use_up(gateway, 1)
        async with gateway.call(ITEMS) as answer:
            assert answer.status == 429
            assert answer.headers["Gatehouse-Declined"] == "day"
            assert int(answer.headers["Retry-After"]) > 80_000
            assert "limit of 1 call per day" in (await answer.json())["message"]


async def test_decline_blames_nobody_for_what_others_used(gateway):
    told = {"X-Rate-Limit-Limit": "10000", "X-Rate-Limit-Remaining": "1500"}
    gateway.upstream.responds(headers={**told, "X-Rate-Limit-Reset": "3600"})
    await use_up(gateway, 1)
    async with gateway.call(ITEMS) as answer:
        sentence = (await answer.json())["message"]
    assert "Gatehouse's limit of 8,000 calls per day for" in sentence
    assert "Gatehouse has used" not in sentence


@pytest.mark.parametrize(
    ("broken", "status"),
    [("closed", 502), ("refusing", 429), ("failing", 502), ("database", 503)],
)
async def test_listing_that_cannot_be_read_is_not_an_organization_that_is_not_listed(
    gateway, broken, status, monkeypatch
):
    directory = gateway.world.bot.inventory.directory
    gateway.world.clock.ahead += timedelta(seconds=400)
    if broken == "closed":
        access = directory.inventory.access["eu"]
        closed = replace(access, root=URL("http://127.0.0.1:9/eu/inventory/v1"))
        monkeypatch.setitem(directory.inventory.access, "eu", closed)
    elif broken == "refusing":
        gateway.upstream.answer = refusing(44)
    elif broken == "failing":
        gateway.upstream.responds(status=500)
    else:
        for name in ("transaction", "read_only", "autocommit"):
            monkeypatch.setattr(Database, name, _away)
    for _ in range(2):
        async with gateway.call("/eu/items?organization_id=999") as answer:
            assert answer.status == status
            assert "message" in await answer.json()
            assert ("Retry-After" in answer.headers) == (status in {429, 503})


def _away(_database):
    raise DatabaseUnavailable


async def test_plan_decides_for_clients_too(sqlite_url):
    plans = json.dumps({f"eu/{EU}": "premium"})
    async with running_gateway(sqlite_url, inventory_plans=plans) as gateway:
        go_on, calls = await hold_all(gateway)
        more = [asyncio.create_task(gateway.status(ITEMS)) for _ in range(4)]
        while gateway.upstream.running < 8:
            await asyncio.wait(more, timeout=0.01)
        assert (await declined(gateway))[0] == "concurrent"
        go_on.set()
        assert await asyncio.gather(*calls, *more) == [200] * 8
