"""These tests use real local servers to test HTTP calls to services."""

import asyncio
import errno
import gzip
import json
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate

import aiohttp
import pytest
from aiohttp import ClientSession, TCPConnector, web
from aiohttp.abc import AbstractResolver
from pydantic import BaseModel
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.testing import capture_logs
from yarl import URL

from bot.errors import DatabaseUnavailable, QuotaError
from bot.organizations.rules import Organization
from bot.services import http
from bot.services.calls import ReportedLimits, ServiceCall
from bot.services.errors import (
    LONGEST_SECONDS,
    CredentialsRefused,
    NotJson,
    PermissionMissing,
    RateLimited,
    Redirected,
    ResponseTooLarge,
    ResponseUnreadable,
    ServiceError,
    ServiceFailed,
    ServiceRefused,
    ServiceTimeout,
    ServiceUnreachable,
    json_of,
    model_in,
    seconds_in,
)
from bot.services.http import (
    LARGE_BYTES,
    MOST_BYTES,
    MOST_SMALL_BYTES,
    RETRY_PAUSES_SECONDS,
    HeadersFirst,
    Permit,
)
from tests.support.http import Bench, RawServer, open_bench, web_server

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def a_call(url: str, method: str = "GET", *, service: str = "email", **more: object) -> ServiceCall:
    return ServiceCall(service, "the email service", method, URL(url) / "v3/it", **more)


class FakeAttempts(Permit):
    """Limits the number of attempts, and records the result of each attempt."""

    def __init__(self, *, refuse_after: int = 99, broken: bool = False) -> None:
        self.events: list[object] = []
        self.refuse_after = refuse_after
        self.broken = broken
        self.is_late = False

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Permit]:
        if self.events.count("open") >= self.refuse_after:
            raise QuotaError("No slot.")
        self.events.append("open")
        try:
            yield self
        except ServiceError as error:
            self.events.append(type(error))
            raise
        self.events.append("passed")

    def may_send(self) -> bool:
        return not self.is_late

    async def responded(self, limits: ReportedLimits | None = None) -> None:
        if self.broken:
            raise DatabaseUnavailable
        self.events += ["responded", *([limits] if limits else [])]

    async def refused(self, error: RateLimited) -> None:
        self.events.append(error.code)


async def test_a_call_carries_its_parts_and_gets_the_whole_answer(bench: Bench) -> None:
    async def echo(request: web.Request) -> web.Response:
        return web.json_response(
            {
                "line": [request.method, request.path_qs],
                "form": list((await request.post()).items()),
                "key": request.headers["Authorization"],
            }
        )

    async with web_server(echo) as url:
        call = a_call(
            url,
            "POST",
            params={"a": "1 & 2"},
            headers={"Authorization": "Bearer k"},
            form=[("x", "é,+"), ("x", "")],
        )
        body = await bench.request(call)
    assert json.loads(body) == {
        "line": ["POST", "/v3/it?a=1+%26+2"],
        "form": [["x", "é,+"], ["x", ""]],
        "key": "Bearer k",
    }


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 300, 304])
async def test_no_redirect_is_followed(bench: Bench, status: int) -> None:
    async with RawServer(OK).running() as other:
        head = f"HTTP/1.1 {status} X\r\nLocation: {other.url}/stolen\r\nContent-Length: 0\r\n\r\n"
        async with RawServer(head.encode()).running() as server:
            with pytest.raises(Redirected, match="redirected the request") as caught:
                await bench.request(a_call(server.url, headers={"Authorization": "Bearer k"}))
    assert other.requests == []
    assert "127.0.0.1" not in caught.value.sentence


def _of_length(size: int, declared: int | None) -> bytes:
    length = f"Content-Length: {declared}\r\n" if declared is not None else ""
    return f"HTTP/1.1 200 OK\r\n{length}Connection: close\r\n\r\n".encode() + b"x" * size


def _bomb() -> bytes:
    packed = gzip.compress(b"\0" * (40 << 20))
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    return head.encode() + packed


LIMITS = {"inventory": MOST_BYTES, "flow": MOST_SMALL_BYTES, "email": MOST_SMALL_BYTES}


@pytest.mark.parametrize("service", LIMITS)
@pytest.mark.parametrize("kind", ["declared", "unannounced", "compressed"])
async def test_a_response_that_is_too_large_is_refused_while_reading(
    bench: Bench, kind: str, service: str
) -> None:
    most = LIMITS[service]
    answer = {
        "declared": lambda: _of_length(1, most + 1),
        "unannounced": lambda: _of_length(most + 1, None),
        "compressed": _bomb,
    }[kind]()
    async with RawServer(answer).running() as server:
        with pytest.raises(ResponseTooLarge, match=f"over {most >> 20} MiB"):
            await bench.request(a_call(server.url, service=service))
    assert len(server.requests) == 1


@pytest.mark.parametrize("service", LIMITS)
async def test_a_response_of_the_largest_size_is_read(bench: Bench, service: str) -> None:
    most = LIMITS[service]
    async with RawServer(_of_length(most, most)).running() as server:
        assert len(await bench.request(a_call(server.url, service=service))) == most


async def test_the_json_of_a_large_error_is_not_parsed(bench: Bench) -> None:
    padding = ",".join(["[[]]"] * 20_000)
    body = f'{{"message": "Too long.", "x": [{padding}]}}'.encode()
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with RawServer(head + body).running() as server:
        with pytest.raises(ServiceRefused) as caught:
            await bench.request(a_call(server.url))
    assert caught.value.message == ""


class _Small(BaseModel):
    code: int


def most_bytes(act: Callable[[], object]) -> int:
    """Return how many bytes Python's objects take at most during a call."""
    tracemalloc.start()
    try:
        assert act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("model", [_Small, Organization])
def test_fields_that_nobody_reads_never_become_python_objects(model) -> None:
    known = b'"code": 0, "organization_id": "1", "is_default_org": null'
    body = b"{" + known + b', "x": [' + b",".join([b"[[]]"] * 30_000) + b"]}"
    call = a_call("https://example.com")
    assert most_bytes(lambda: json_of(call, body)) > 3_000_000
    assert most_bytes(lambda: model_in(call, body, model)) < 500_000


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "300"}, 300.0),
        ({"Retry-After": "2.5"}, 2.5),
        ({"Retry-After": "Thu, 26 Nov 2020 11:00:00 GMT"}, 0.0),
        ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, LONGEST_SECONDS),
        ({"Retry-After": "-5"}, 0.0),
        ({"Retry-After": "nan"}, 0.0),
        ({"Retry-After": "1e9"}, 0.0),
        ({"Retry-After": "1000000"}, LONGEST_SECONDS),
        ({"Retry-After": "9" * 65_536}, LONGEST_SECONDS),
        ({"Retry-After": "2.5000000"}, 2.5),
        ({"Retry-After": "Fri Dec 31 23:59:59 9999"}, LONGEST_SECONDS),
        ({"Retry-After": "Friday, 31-Dec-49 23:59:59 GMT"}, LONGEST_SECONDS),
        ({"Retry-After": "Fri, 31 Dec 99999999999999999999 23:59:59 GMT"}, 0.0),
        ({"Retry-After": "Mon, 01 Jan 0001 00:00:00 +2300"}, 0.0),
        ({"Retry-After": "noon"}, 0.0),
        ({}, 0.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(headers, seconds) -> None:
    assert seconds_in(headers) == seconds


def test_retry_after_is_the_time_until_a_date() -> None:
    then = formatdate(time.time() + 300, usegmt=True)
    assert 298 < seconds_in({"Retry-After": then}) <= 300


async def _drip(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.02)


async def _never(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("handler", [_drip, _never])
async def test_endless_answer_is_given_up_and_not_asked_for_again(handler) -> None:
    async with open_bench(total_seconds=0.15) as bench, web_server(handler) as url:
        with pytest.raises(ServiceTimeout, match=r"within 0\.15 seconds") as caught:
            await bench.request(a_call(url))
    assert caught.value.is_passing
    assert [item.outcome for item in bench.observed] == ["timeout"]


async def test_a_failing_status_counts_even_when_its_body_never_ends() -> None:
    head = b'HTTP/1.1 429 X\r\nContent-Length: 99\r\n\r\n{"code": 44'
    async with (
        open_bench(total_seconds=0.5) as bench,
        RawServer(head, hang=True).running() as server,
    ):
        with pytest.raises(RateLimited) as caught:
            await bench.request(a_call(server.url))
    assert caught.value.code is None


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, ServiceUnreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", ServiceUnreachable),
        (b"HTTP/1.1 503 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", ServiceFailed),
    ],
    ids=["hangs up", "breaks off", "5xx"],
)
async def test_a_read_is_tried_three_times_each_with_a_grant_of_its_own(
    bench: Bench, answer: bytes | None, error: type[ServiceError]
) -> None:
    attempts = FakeAttempts()
    async with RawServer(answer).running() as server:
        with pytest.raises(error):
            await bench.request(a_call(server.url), attempts)
    assert len(server.requests) == 3
    assert attempts.events.count("open") == 3
    assert bench.clock.slept == list(RETRY_PAUSES_SECONDS)


@pytest.mark.parametrize(("told", "tries", "slept"), [("2", 3, [2.0, 2.0]), ("9", 1, [])])
async def test_a_read_is_not_tried_again_before_the_time_that_the_service_names(
    bench: Bench, told: str, tries: int, slept: list[float]
) -> None:
    head = f"HTTP/1.1 503 X\r\nRetry-After: {told}\r\nContent-Length: 0\r\n\r\n"
    async with RawServer(head.encode()).running() as server:
        with pytest.raises(ServiceFailed) as caught:
            await bench.request(a_call(server.url))
    assert caught.value.retry_after == float(told)
    assert (len(server.requests), bench.clock.slept) == (tries, slept)


@pytest.mark.parametrize("status", [302, 400, 404, 429, 500, 503])
async def test_each_error_has_the_time_that_the_service_names(bench: Bench, status: int) -> None:
    head = f"HTTP/1.1 {status} X\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n"
    async with RawServer(head.encode()).running() as server:
        with pytest.raises(ServiceError) as caught:
            await bench.request(a_call(server.url, "POST"))
    assert caught.value.retry_after == 5.0


@pytest.mark.parametrize(
    "headers", [f"X-A: {'a' * 65_536}", "\r\n".join(f"X-{i}: a" for i in range(1_000))]
)
async def test_large_and_many_headers_are_read(bench: Bench, headers: str) -> None:
    head = f"HTTP/1.1 200 OK\r\n{headers}\r\nContent-Length: 2\r\n\r\n{{}}"
    async with RawServer(head.encode()).running() as server:
        assert await bench.request(a_call(server.url)) == b"{}"


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"])
async def test_a_post_is_sent_once(bench: Bench, answer: bytes | None) -> None:
    async with RawServer(answer).running() as server:
        with pytest.raises(ServiceError):
            await bench.request(a_call(server.url, "POST", form=[("a", "b")]))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, ServiceRefused),
        (401, CredentialsRefused),
        (403, PermissionMissing),
        (404, ServiceRefused),
        (429, RateLimited),
    ],
)
async def test_a_refusal_is_never_retried_and_has_a_type_of_its_own(
    bench: Bench, status: int, error: type[ServiceError]
) -> None:
    answer = f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode()
    async with RawServer(answer).running() as server:
        with pytest.raises(error) as caught:
            await bench.request(a_call(server.url, advice={status: "Do this."}))
    assert type(caught.value) is error
    assert "Do this." in caught.value.sentence
    assert len(server.requests) == 1


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "x"])
async def test_a_429_that_cannot_be_decompressed_is_a_429(bench: Bench, encoding: str) -> None:
    answer = f"HTTP/1.1 429 X\r\nContent-Encoding: {encoding}\r\nContent-Length: 2\r\n\r\n{{}}"
    attempts = FakeAttempts()
    async with RawServer(answer.encode()).running() as server:
        with pytest.raises(RateLimited):
            await bench.request(a_call(server.url), attempts)
    assert attempts.events == ["open", "responded", None, RateLimited]


@pytest.mark.parametrize(
    "rest",
    [
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n{}",
        "Content-Length: 2\r\n\r\n{} and more",
        "Content-Length: 0\r\n\r\n<html>Too many requests</html>",
    ],
)
@pytest.mark.parametrize("start", ["", "HTTP/1.1 103 X\r\nLink: x\r\n\r\n"])
@pytest.mark.parametrize("end", ["\r\n", "\n"])
async def test_a_429_whose_body_is_not_http_is_a_429(
    bench: Bench, start: str, end: str, rest: str
) -> None:
    attempts = FakeAttempts()
    answer = f"{start}HTTP/1.1 429 X\r\n{rest}".replace("\r\n", end).encode()
    async with RawServer(answer).running() as server:
        with pytest.raises(RateLimited):
            await bench.request(a_call(server.url), attempts)
    assert attempts.events == ["open", "responded", None, RateLimited]


@pytest.mark.parametrize("split", [-11, -10, -9, -8])
async def test_a_429_in_two_packets_whose_body_is_not_http_is_a_429(bench, split: int) -> None:
    answer = b"HTTP/1.1 429 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"

    async def in_two_packets(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.write(answer[:split])
        await asyncio.sleep(0.01)
        request.transport.write(answer[split:])
        await asyncio.Event().wait()
        raise AssertionError

    async with web_server(in_two_packets) as url:
        with pytest.raises(RateLimited):
            await bench.request(a_call(url))


@pytest.mark.parametrize(
    "rest",
    [
        *("Content-Length: x", "Content-Length: 1\r\nContent-Length: 2", "No colon", "A b: x"),
        *(": x", "X: a\0b", f"X: {'a' * 70_000}", "X: 1\r\n" * 1_100),
    ],
)
@pytest.mark.parametrize("start", ["", "HTTP/1.1 103 X\r\nLink: x\r\n\r\n"])
async def test_a_429_whose_headers_are_not_http_is_a_429(
    bench: Bench, start: str, rest: str
) -> None:
    attempts = FakeAttempts()
    answer = f"{start}HTTP/1.1 429 X\r\nRetry-After: 9\r\n{rest}\r\n\r\n{{}}"
    async with RawServer(answer.encode()).running() as server:
        with pytest.raises(RateLimited):
            await bench.request(a_call(server.url), attempts)
    assert attempts.events == ["open", "responded", None, RateLimited]


@pytest.mark.parametrize("answer", ["HTTP/1.1 429", "HTTP/1.1 429 X\r\n", "HTTP/2 429\r\nX: 1"])
async def test_a_429_that_breaks_off_is_a_429(bench: Bench, answer: str) -> None:
    async with RawServer(answer.encode()).running() as server:
        with pytest.raises(RateLimited):
            await bench.request(a_call(server.url))
    assert len(server.requests) == 1


async def test_a_429_whose_connection_is_reset_is_a_429() -> None:
    connection = HeadersFirst(asyncio.get_running_loop())
    connection.set_response_params()
    connection.data_received(b"HTTP/1.1 429 X\r\nX: 1\r\n")
    connection.connection_lost(ConnectionResetError(errno.ECONNRESET, "reset"))
    message, _ = await connection.read()
    assert message.code == 429
    assert connection.should_close


async def test_a_429_says_nothing_about_the_next_answer(bench: Bench) -> None:
    async def refuse_then_break_off(request: web.Request) -> web.StreamResponse:
        asked.append(request.transport)
        if len(asked) == 1:
            return web.Response(status=429)
        assert request.transport is asked[0] is not None
        request.transport.write(b"HTTP/1.1 200 X\r\nNo colon\r\n\r\n")
        await asyncio.Event().wait()
        raise AssertionError

    asked: list[asyncio.Transport | None] = []
    async with web_server(refuse_then_break_off) as url:
        with pytest.raises(RateLimited):
            await bench.request(a_call(url))
        with pytest.raises(ResponseUnreadable):
            await bench.request(a_call(url))


@pytest.mark.parametrize("pause", [0.0, 0.01])
async def test_a_body_that_is_not_http_is_not_waited_for(bench: Bench, pause: float) -> None:
    async def break_off(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await asyncio.sleep(pause)
        assert request.transport is not None
        request.transport.write(b"zz\r\n{}\r\n")
        await asyncio.Event().wait()
        raise AssertionError

    async with web_server(break_off) as url:
        with pytest.raises(ResponseUnreadable, match="that Gatehouse can't read"):
            await bench.request(a_call(url))
    assert len(bench.observed) == 1


@pytest.mark.parametrize("rest", [" and more", "\r\n", "HTTP/1.1 200 OK\r\n\r\n"])
async def test_what_follows_an_answer_is_ignored(bench: Bench, rest: str) -> None:
    async with RawServer(OK + rest.encode()).running() as server:
        assert await bench.request(a_call(server.url)) == b"{}"


@pytest.mark.parametrize("status", [200, 204])
@pytest.mark.parametrize(
    "late",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 408 X\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
    ],
)
async def test_what_a_service_sends_unasked_answers_no_call(
    bench: Bench, status: int, late: bytes
) -> None:
    sent = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        def send_more() -> None:
            assert request.transport is not None
            request.transport.write(late)
            sent.set()

        if "second" in request.path:
            return web.Response(text="second")
        asyncio.get_running_loop().call_later(0.01, send_more)
        return web.Response(status=status)

    async with web_server(answer) as url:
        await bench.request(a_call(f"{url}/first"))
        await sent.wait()
        await asyncio.sleep(0.02)
        for _ in range(2):
            assert await bench.request(a_call(f"{url}/second")) == b"second"


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("gzip", gzip.compress),
        ("X-GZip", gzip.compress),
        ("gzip, identity", gzip.compress),
        ("identity\r\nContent-Encoding: GZIP", gzip.compress),
        (" ,gzip, ", gzip.compress),
        ("gzip", lambda data: gzip.compress(data) + b"\0\0"),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data, wbits=-15)),
    ],
)
async def test_compressed_answers_are_understood(bench: Bench, name, pack) -> None:
    packed = pack(b'{"code": 0}')
    head = f"HTTP/1.1 200 X\r\nContent-Encoding: {name}\r\nContent-Length: {len(packed)}\r\n\r\n"
    async with RawServer(head.encode() + packed).running() as server:
        assert await bench.request(a_call(server.url)) == b'{"code": 0}'
    # With other libraries installed, aiohttp would also ask for compressions of theirs.
    assert b"\r\nAccept-Encoding: gzip, deflate\r\n" in server.requests[0]


async def test_a_grant_hears_of_the_headers_and_of_the_refusal(bench: Bench) -> None:
    body = b'{"code": 45, "message": "no more than 1,000"}'
    answer = (
        b"HTTP/1.1 429 X\r\nX-Rate-Limit-Limit: 1000\r\nX-Rate-Limit-Remaining: 0"
        b"\r\nx-rate-limit-reset: 3600\r\nContent-Length: %d\r\n\r\n" % len(body)
    ) + body
    attempts = FakeAttempts()
    async with RawServer(answer).running() as server:
        with pytest.raises(RateLimited) as caught:
            await bench.request(a_call(server.url), attempts)
    limits = ReportedLimits(1000, 0, 3600)
    assert attempts.events == ["open", "responded", limits, 45, RateLimited]
    assert (caught.value.code, caught.value.message) == (45, "no more than 1,000")


async def test_without_a_slot_nothing_is_sent_and_a_retry_needs_one_too(bench: Bench) -> None:
    async with RawServer(None).running() as server:
        with pytest.raises(QuotaError):
            await bench.request(a_call(server.url), FakeAttempts(refuse_after=0))
        assert server.requests == []
        with pytest.raises(QuotaError):
            await bench.request(a_call(server.url), FakeAttempts(refuse_after=1))
        assert len(server.requests) == 1


async def test_broken_ledger_is_not_called_the_services_fault(
    bench: Bench,
) -> None:
    async with RawServer(OK).running() as server:
        with pytest.raises(DatabaseUnavailable):
            await bench.request(a_call(server.url), FakeAttempts(broken=True))
    assert [item.outcome for item in bench.observed] == ["database"]


async def test_an_answer_that_cannot_be_read_is_no_success(bench: Bench) -> None:
    def read(_: bytes) -> None:
        raise NotJson(
            "email",
            "The email service sent a response that Gatehouse can't read, because it is not JSON.",
        )

    attempts = FakeAttempts()
    async with RawServer(OK).running() as server:
        with capture_logs() as lines, pytest.raises(NotJson):
            await bench.http.request(a_call(server.url), read, attempts)
    assert attempts.events == ["open", "responded", NotJson]
    assert [(item.outcome, item.status) for item in bench.observed] == [("not_json", 200)]
    assert [line["log_level"] for line in lines] == ["warning"]


async def test_a_large_answer_is_read_in_a_thread(bench: Bench) -> None:
    here = threading.get_ident()
    where = []
    for size in (10, LARGE_BYTES):
        async with RawServer(_of_length(size, size)).running() as server:
            where.append(
                await bench.http.request(a_call(server.url), lambda _: threading.get_ident())
            )
    assert where[0] == here != where[1]


async def test_a_service_without_tls_has_no_wrong_certificate(bench: Bench) -> None:
    async with web_server(_never) as url:
        with pytest.raises(ServiceUnreachable, match="no TLS connection") as caught:
            await bench.request(a_call(url.replace("http:", "https:")))
    assert caught.value.sent is False


async def test_untrusted_certificate_is_refused(bench: Bench) -> None:
    async with web_server(_never, tls=True) as url:
        with pytest.raises(ServiceUnreachable, match="certificate"):
            await bench.request(a_call(url))


async def test_nobody_listening_cannot_be_reached(bench: Bench) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(ServiceUnreachable, match="can't be reached") as caught:
        await bench.request(a_call(f"http://127.0.0.1:{port}"))
    assert str(port) not in caught.value.sentence


async def test_bytes_that_are_no_http_are_an_unreadable_answer(bench: Bench) -> None:
    async with RawServer(b"220 mail.example ESMTP\r\n\r\n").running() as server:
        with pytest.raises(ResponseUnreadable, match="that Gatehouse can't read"):
            await bench.request(a_call(server.url))


async def test_words_of_a_refusal_are_one_short_line_without_secrets(bench: Bench) -> None:
    bench.redactor.add("hunter2-token")
    words = "bad\n key \u202ehunter2-token\x07 " + "y" * 400
    body = json.dumps({"message": words, "detail": "not for people"}).encode()
    head = b"HTTP/1.1 400 X\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with RawServer(head + body).running() as server:
        with pytest.raises(ServiceRefused) as caught:
            await bench.request(a_call(server.url))
    assert caught.value.message.startswith("bad key [secret] yyy")
    assert len(caught.value.message) == 300
    assert "not for people" not in caught.value.sentence


async def test_each_call_is_one_log_line_with_the_request_id_and_no_address(bench: Bench) -> None:
    async with RawServer(None, OK).running() as server:
        with (
            capture_logs(processors=[merge_contextvars]) as lines,
            bound_contextvars(request_id="r1"),
        ):
            await bench.request(a_call(server.url, params={"authtoken": "s3cret"}))
    assert [(line["log_level"], line["outcome"], line["status"]) for line in lines] == [
        ("warning", "unreachable", None),
        ("info", "ok", 200),
    ]
    assert all(line["request_id"] == "r1" and line["path"] == "/v3/it" for line in lines)
    assert "s3cret" not in str(lines)
    assert "127.0.0.1" not in str(lines)


async def test_a_host_that_cannot_be_found_is_told() -> None:
    class NoSuchHost(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list:
            raise OSError("no address for secret-host")

        async def close(self) -> None:
            pass

    connector = TCPConnector(resolver=NoSuchHost())
    async with ClientSession(connector=connector) as session:
        bench = Bench(session, 10.0)
        with pytest.raises(ServiceUnreachable, match="host name can't be found") as caught:
            await bench.request(a_call("https://secret-host.example"))
    assert "secret-host" not in caught.value.sentence


async def test_a_call_without_a_connection_counts_as_unsent(bench: Bench, monkeypatch) -> None:
    """This test simulates a firewall that drops every packet."""
    monkeypatch.setattr(http, "CONNECT_SECONDS", 0.05)

    async def silent(*_: object, **__: object) -> None:
        await asyncio.sleep(30)

    monkeypatch.setattr(aiohttp.TCPConnector, "_create_connection", silent)
    attempts = FakeAttempts()
    with pytest.raises(ServiceUnreachable, match="can't be reached") as caught:
        await bench.request(a_call("https://inventory.example.com"), attempts)
    assert caught.value.sent is False
    assert attempts.events == ["open", ServiceUnreachable]


@pytest.mark.parametrize("is_kept", [False, True])
async def test_request_that_was_held_up_is_not_written(bench: Bench, is_kept) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path_qs)
        return web.Response()

    attempts = FakeAttempts()
    async with web_server(answer) as url:
        if is_kept:
            await bench.request(a_call(url), attempts)
        attempts.is_late = True
        with pytest.raises(
            ServiceUnreachable, match="took too long to start, so it wasn't sent"
        ) as caught:
            await bench.request(a_call(url), attempts)
    assert (caught.value.sent, len(asked)) == (False, int(is_kept))


async def test_get_that_was_held_up_is_made_with_another_grant(bench: Bench) -> None:
    class HeldUpOnce(FakeAttempts):
        def may_send(self) -> bool:
            return self.events.count("open") > 1

    async def answer(_request: web.Request) -> web.Response:
        return web.Response()

    attempts = HeldUpOnce()
    async with web_server(answer) as url:
        await bench.request(a_call(url), attempts)
    assert attempts.events.count("open") == 2
