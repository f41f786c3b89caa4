"""Test that each call is counted once even if the database, the service or a client fails."""

import asyncio
import itertools
import json
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from inspect import isawaitable
from itertools import count

import pytest
from aiohttp import web

from bot.errors import DatabaseUnavailable
from bot.gateway.clients import token_hash
from tests.gateway.conftest import ITEMS, hold_all, running_gateway
from tests.gateway.test_closed import raw, request_of, status_of
from tests.gateway.upstream import running_upstream


def waiting_calls(turns) -> Counter[str]:
    """Return the number of waiting calls for each client."""
    lines = turns._lines.values()
    return Counter(waiter.client for line in lines for waiter in line.waiters)


def break_down(gateway, monkeypatch) -> None:
    @asynccontextmanager
    async def broken():
        raise DatabaseUnavailable
        yield

    for way in ("transaction", "autocommit", "read_only"):
        monkeypatch.setattr(gateway.world.bot.database, way, broken)


@asynccontextmanager
async def connected(gateway):
    host, port = gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def until(condition, expected=True) -> None:
    """Wait until the function `condition`, which may be async, returns the expected value."""
    async with asyncio.timeout(20):
        while (await found if isawaitable(found := condition()) else found) != expected:
            await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0.02))])


async def in_use(gateway) -> tuple[int, int]:
    account = await gateway.used()
    return (0, 0) if account is None else (account.in_use.minute, account.in_use.concurrent)


async def test_no_call_without_the_database(gateway, monkeypatch):
    break_down(gateway, monkeypatch)
    async with gateway.call(ITEMS) as answer:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) >= 1
        assert set(await answer.json()) == {"message"}
    async with gateway.call(ITEMS, headers={"Prefer": "wait=5"}) as answer:
        assert answer.status == 503
    assert gateway.upstream.got == []


async def test_database_that_breaks_meanwhile_costs_nobody_an_answer(gateway, monkeypatch):
    async def answer(_request, _body):
        break_down(gateway, monkeypatch)
        return web.json_response({"code": 0})

    gateway.upstream.answer = answer
    assert await gateway.status(ITEMS) == 200
    monkeypatch.undo()
    # The call was never settled, so it is held like a call without an answer.
    assert await in_use(gateway) == (1, 1)


async def test_call_of_a_process_that_stood_still_is_not_sent(gateway, monkeypatch):
    # The process was stopped between the grant and the first byte, so the slot may be taken.
    assert await gateway.status(ITEMS) == 200
    clock = gateway.world.bot.clock
    since_boot, readings = clock.since_boot, count()
    # The guard reads the clock when it asks the database and when the answer arrives.
    monkeypatch.setattr(clock, "since_boot", lambda: since_boot() + 61 * (next(readings) > 1))
    async with gateway.call(ITEMS) as answer:
        assert answer.status == 502
        assert "took too long to start" in (await answer.json())["message"]
    assert len(gateway.upstream.got) == 1
    assert await in_use(gateway) == (1, 0)


async def test_service_that_takes_too_long_is_a_timeout(gateway, monkeypatch):
    monkeypatch.setattr("bot.gateway.forward.TOTAL_SECONDS", 0.3)

    async def answer(_request, _body):
        await asyncio.sleep(5)

    gateway.upstream.answer = answer
    async with gateway.call(ITEMS) as response:
        assert response.status == 504
        assert "didn't respond" in (await response.json())["message"]
    assert await in_use(gateway) == (1, 1)


async def test_service_that_wants_another_protocol_is_a_bad_gateway(gateway):
    async def answer(request, _body):
        head = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
        request.transport.write(head)
        return web.Response()

    gateway.upstream.answer = answer
    async with gateway.call(ITEMS) as response:
        assert (response.status, set(await response.json())) == (502, {"message"})
    assert await in_use(gateway) == (1, 0)


async def test_call_that_waits_is_not_hung_up_on_for_more_connections(sqlite_url, monkeypatch):
    monkeypatch.setattr("bot.gateway.server.MOST_CONNECTIONS", 20)
    wait = {"Prefer": "wait=30"}
    async with running_gateway(sqlite_url) as gateway:
        go_on, calls = await hold_all(gateway)
        names = itertools.cycle(["script", "nightly"])
        calls += [
            asyncio.create_task(gateway.status(ITEMS, next(names), headers=wait)) for _ in range(14)
        ]
        turns = gateway.world.bot.inventory.gateway.forwarder.turns
        await until(lambda: waiting_calls(turns), {"script": 7, "nightly": 7})
        # A client that has nothing open still gets one place.
        calls.append(asyncio.create_task(gateway.status(ITEMS, "quarter", headers=wait)))
        await until(lambda: waiting_calls(turns)["quarter"], 1)
        for client in ("quarter", "script") * 5:
            more = asyncio.create_task(gateway.status(ITEMS, client, headers=wait))
            await asyncio.wait({more}, timeout=1)
            assert more.done()
            assert await more == 429
        go_on.set()
        assert await asyncio.gather(*calls) == [200] * 19


async def test_outage_uses_up_nothing_and_is_not_hammered(sqlite_url):
    centers = '{"eu": {"authtoken": "xyz-secret", "base_url": "http://127.0.0.1:9/v1"}}'
    async with running_gateway(sqlite_url, inventory_data_centers=centers) as gateway:
        began = asyncio.get_running_loop().time()
        wait = {"Prefer": "wait=30"}
        calls = (gateway.status(ITEMS, headers=wait) for _ in range(60))
        assert set(await asyncio.gather(*calls)) == {502}
        assert asyncio.get_running_loop().time() - began >= 0.9
        account = await gateway.used()
        assert (account.made, account.in_use.minute, account.in_use.day) == (60, 0, 0)


HALF = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"


@pytest.mark.parametrize(("end", "status"), [(b"", 502), (b"0\r\n\r\n", 200)])
async def test_http_1_0_gets_only_a_whole_answer_without_a_length(gateway, end, status):
    async def answer(request, _body):
        request.transport.write(HALF + end)
        request.transport.close()
        return web.Response()

    gateway.upstream.answer = answer
    got = await raw(gateway, request_of(ITEMS).replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert status_of(got) == status
    head, _, body = got.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert (body == b"12345") is (status == 200)


async def test_http_1_0_gets_one_answer_to_an_expect_header(gateway):
    asking = request_of(ITEMS, "POST", headers=[("Expect", "100-continue")], body=b"12345")
    got = await raw(gateway, asking.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert status_of(got) == 200
    assert got.count(b"HTTP/1.") == 1
    assert (await raw(gateway, asking)).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")


@pytest.mark.parametrize(
    ("request_line", "status"),
    [(b"GET / HTTP/9.9", 400), (b"GET /%b HTTP/1.1" % (b"x" * 9000), 431)],
)
async def test_bytes_that_are_no_http_get_a_json_answer(gateway, request_line, status):
    got = await raw(gateway, request_line + b"\r\nHost: x\r\n\r\n")
    head, _, body = got.partition(b"\r\n\r\n")
    assert status_of(got) == status
    assert b"Gatehouse-Answered: gateway" in head
    assert set(json.loads(body)) == {"message"}


async def test_kept_connection_that_breaks_is_not_sent_again(gateway):
    assert await gateway.status(ITEMS) == 200
    count = len(gateway.upstream.got)

    async def answer(request, _body):
        request.transport.abort()
        return web.Response()

    gateway.upstream.answer = answer
    assert await gateway.status(ITEMS) == 502
    assert len(gateway.upstream.got) == count + 1


async def test_answer_that_breaks_off_is_not_taken_for_a_whole_one(gateway):
    async def answer(request, _body):
        response = web.StreamResponse()
        response.content_length = 1000
        await response.prepare(request)
        await response.write(b"x" * 10)
        request.transport.close()
        return response

    gateway.upstream.answer = answer
    assert await gateway.status(ITEMS) == 502
    assert await in_use(gateway) == (1, 1)


async def test_client_that_sends_half_a_body_holds_nothing(gateway):
    async with connected(gateway) as (_, writer):
        whole = request_of(ITEMS, "POST", body=b"x" * 1000)
        writer.write(whole[:-500])
        await writer.drain()
        assert await gateway.status(ITEMS) == 200
        await until(lambda: in_use(gateway), (1, 0))
    assert await gateway.status(ITEMS) == 200
    assert len(gateway.upstream.got) == 2


async def test_an_incomplete_body_is_refused_after_a_timeout(gateway, monkeypatch):
    monkeypatch.setattr("bot.gateway.server.BODY_SECONDS", 0.2)
    answer = await raw(gateway, request_of(ITEMS, "POST", body=b"x" * 1000)[:-500])
    assert status_of(answer) == 408
    assert gateway.upstream.got == []


async def test_client_that_goes_while_it_waits_takes_no_slot(gateway):
    go_on, calls = await hold_all(gateway)
    turns = gateway.world.bot.inventory.gateway.forwarder.turns
    async with connected(gateway) as (_, writer):
        writer.write(request_of(ITEMS, headers=[("Prefer", "wait=30")]))
        await until(lambda: waiting_calls(turns)["script"], 1)
    await until(lambda: waiting_calls(turns)["script"], 0)
    go_on.set()
    await asyncio.gather(*calls)
    assert (await gateway.used()).made == 4


class Leaver:
    """Simulates a client that disconnects at a given step of a call.

    There are steps before and after each database transaction, and during the response. The first
    step is number 1.
    """

    def __init__(self, gateway, monkeypatch) -> None:
        self.count = 0
        self._leaves_at = 0
        self._gateway = gateway
        self._connected = gateway.world.bot.database._connected
        monkeypatch.setattr(gateway.world.bot.database, "_connected", self._watched)
        gateway.upstream.answer = self._answer

    async def call(self, leaves_at: int) -> None:
        self.count, self._leaves_at = 0, leaves_at
        async with connected(self._gateway) as (reader, self._writer):
            self._writer.write(request_of(ITEMS, "POST", body=b"x" * 1000))
            with suppress(ConnectionError):
                await reader.read()

    async def _step(self) -> None:
        self.count += 1
        if self.count == self._leaves_at:
            self._writer.transport.abort()
            await until(self._is_gone)

    async def _is_gone(self) -> bool:
        connections = self._gateway.world.bot.inventory.gateway._runner.server.connections
        return all(connection.transport is None for connection in connections)

    @asynccontextmanager
    async def _watched(self):
        # The bot's jobs use the database too.
        task = repr(asyncio.current_task())
        is_request = any(name in task for name in ("RequestHandler", "turns eu/", "Batches"))
        if is_request:
            await self._step()
        async with self._connected() as connection:
            yield connection
        if is_request:
            await self._step()

    async def _answer(self, request, _body) -> web.StreamResponse:
        response = web.StreamResponse()
        await self._step()
        await response.prepare(request)
        for _ in range(3):
            await response.write(b"x" * 100_000)
            await self._step()
        return response


async def test_client_that_goes_at_any_step_is_counted_once(gateway_on_each, monkeypatch):
    gateway = gateway_on_each
    leaver = Leaver(gateway, monkeypatch)
    # The first call also looks at the database's clock.
    await leaver.call(0)
    await leaver.call(0)
    steps = leaver.count
    assert steps >= 8

    async def is_settled() -> bool:
        if gateway.world.bot.inventory.gateway._running.total():
            return False
        # A granted call that was never sent counts neither in the minute nor in the day.
        seen, account = len(gateway.upstream.got), await gateway.used()
        return (*(await in_use(gateway)), account.in_use.day) == (seen, 0, seen)

    for step in range(1, steps + 1):
        await leaver.call(step)
        await until(is_settled)
    # If the client goes away before its call is sent, no call is made.
    assert 2 < len(gateway.upstream.got) < 2 + steps
    await leaver.call(0)
    assert leaver.count == steps


LARGE = 256 * 1024 + 1


async def pieces(size):
    for start in range(0, size, 65_536):
        yield b"x" * min(65_536, size - start)


@pytest.mark.parametrize("body", [lambda: b"x" * LARGE, lambda: pieces(LARGE)])
async def test_large_bodies_beyond_the_limit_are_refused_before_they_are_read(gateway, body):
    def post(client, data):
        return asyncio.create_task(gateway.status(ITEMS, client, method="POST", data=data))

    go_on = asyncio.Event()

    async def answer(_request, _body):
        await go_on.wait()
        return web.json_response({"code": 0})

    gateway.upstream.answer = answer
    calls = [post("script", body()), post("script", body())]
    await until(lambda: gateway.upstream.running, 2)
    async with gateway.call(ITEMS, method="POST", data=body()) as refused:
        assert refused.status == 503
        assert refused.headers["Retry-After"].isdigit()
        assert "2 of one client" in (await refused.json())["message"]
    started = request_of(ITEMS, "POST", body=b"x" * LARGE)[: -LARGE + 10]
    assert status_of(await raw(gateway, started)) == 503
    calls.append(post("script", b"x" * (LARGE - 1)))
    await until(lambda: gateway.upstream.running, 3)
    go_on.set()
    assert await asyncio.gather(*calls) == [200] * 3
    assert await post("script", body()) == 200


async def test_a_process_holds_eight_large_bodies(sqlite_url):
    entries = {f"c{i}": {"organizations": "*", "methods": ["POST"]} for i in range(5)}
    tokens = {name: {**entry, "token_sha256": token_hash(name)} for name, entry in entries.items()}
    async with running_gateway(sqlite_url, gateway_clients=json.dumps(tokens)) as gateway:
        async with AsyncExitStack() as stack:

            async def begin(client) -> None:
                body = b"x" * LARGE
                _, writer = await stack.enter_async_context(connected(gateway))
                writer.write(request_of(ITEMS, "POST", token=client, body=body)[: -LARGE + 10])

            for number in range(8):
                await begin(f"c{number // 2}")
            held = gateway.world.bot.inventory.gateway._large
            await until(lambda: len(held), 8)
            request = request_of(ITEMS, "POST", token="c4", body=b"x" * LARGE)
            assert status_of(await raw(gateway, request)) == 503
        await until(lambda: len(held), 0)
        assert status_of(await raw(gateway, request)) == 200


async def test_large_answers_wait_until_others_are_read_and_small_ones_do_not(gateway, monkeypatch):
    monkeypatch.setattr("bot.gateway.forward.MOST_HELD_BYTES", 12 << 20)

    async def answer(request, _body):
        return web.Response(body=b"x" * (300 if "small" in request.query_string else 9 << 20))

    gateway.upstream.answer = answer
    async with connected(gateway) as (reader, writer):
        writer.transport.pause_reading()
        writer.write(request_of(ITEMS))
        held = gateway.world.bot.inventory.gateway.forwarder._held
        await until(lambda: [*held.values()], [9 << 20])
        second = asyncio.create_task(gateway.status(ITEMS, "nightly"))
        await until(lambda: len(gateway.upstream.got), 2)
        assert await gateway.status(f"{ITEMS}&small=1", "quarter") == 200
        assert not second.done()
        writer.transport.resume_reading()
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(9 << 20)
        assert await second == 200
    await until(lambda: dict(held), {})


async def test_a_large_answer_without_memory_is_not_the_services_fault(gateway, monkeypatch):
    monkeypatch.setattr("bot.gateway.forward.MOST_HELD_BYTES", 1 << 20)
    monkeypatch.setattr("bot.gateway.forward.ROOM_SECONDS", 0.1)
    gateway.upstream.responds(body=b"x" * LARGE)
    async with gateway.call(ITEMS) as answer:
        assert answer.status == 502
        assert "too many large responses" in (await answer.json())["message"]
    shown = (await gateway.world.ask("U0VIEWER", "/gatehouse", "status")).all_text
    assert "Needs attention" not in shown
    assert await in_use(gateway) == (1, 1)


async def test_client_that_never_reads_costs_others_nothing(gateway):
    gateway.upstream.responds(body=b"x" * (8 << 20))

    async def all_over() -> bool:
        return len(gateway.upstream.got) >= 4 and (await in_use(gateway))[1] == 0

    async with AsyncExitStack() as stack:
        for _ in range(6):
            _, writer = await stack.enter_async_context(connected(gateway))
            writer.transport.pause_reading()
            writer.write(request_of(ITEMS))
        await until(all_over)
        assert await gateway.status(ITEMS, "nightly") == 200


async def test_slow_reader_gets_all_of_its_answer(gateway):
    gateway.upstream.responds(body=b"x" * (4 << 20))
    async with connected(gateway) as (reader, writer):
        writer.write(request_of(ITEMS))
        await reader.readuntil(b"\r\n\r\n")
        await until(lambda: in_use(gateway), (1, 0))
        assert len(await reader.readexactly(4 << 20)) == 4 << 20


async def test_token_that_is_revoked_again_within_a_minute_is_renewed_again(sqlite_url):
    given, revoked = [], set()

    async def answer(request, _body):
        if request.path == "/token":
            given.append(f"token-{len(given)}")
            # Some providers give milliseconds.
            return web.json_response({"access_token": given[-1], "expires_in": 3_600_000})
        sent = request.headers["Authorization"].removeprefix("Bearer ")
        return web.json_response({"code": 0}, status=401 if sent in revoked else 200)

    async with running_upstream() as upstream:
        upstream.answer = answer
        oauth = {"client_id": "a", "client_secret": "secret-b", "refresh_token": "secret-c"}
        oauth["token_url"] = f"{upstream.url}/token"
        centers = {"eu": {"oauth": oauth, "base_url": f"{upstream.url}/v1"}}
        async with running_gateway(
            sqlite_url, inventory_data_centers=json.dumps(centers)
        ) as caller:
            for number in range(1, 4):
                await until(lambda: caller.status(ITEMS), 200)
                assert len(given) == number
                revoked.add(given[-1])
                assert await caller.status(ITEMS) == 401


async def test_stop_refuses_waiting_calls_and_finishes_running_calls(gateway):
    go_on, calls = await hold_all(gateway)
    waiting = asyncio.create_task(gateway.status(ITEMS, headers={"Prefer": "wait=30"}))
    turns = gateway.world.bot.inventory.gateway.forwarder.turns
    await until(lambda: waiting_calls(turns), {"script": 1})
    stopping = asyncio.create_task(gateway.world.bot.inventory.gateway.stop(5))
    assert await waiting == 503
    go_on.set()
    await stopping
    assert await asyncio.gather(*calls) == [200] * 4
