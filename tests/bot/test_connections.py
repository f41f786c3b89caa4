"""Large bodies, silent connections and invalid HTTP do not delay other requests."""

import asyncio
import gzip
import logging
import time
from contextlib import asynccontextmanager
from functools import cache

import pytest
from aiohttp import web

from bot import server
from bot.server import Site, make_server


@cache
def bomb() -> bytes:
    """Return a small request body that decompresses to 300 MB."""
    return gzip.compress(b"\0" * (300 << 20), 9)


@asynccontextmanager
async def listening(most: int = 500, scrape=None):
    """Run the bot's HTTP server without Slack. Yield the server's port."""

    async def ready():
        return None

    async def page():
        return b"x 1\n"

    runner = web.AppRunner(make_server(None, ready, scrape or page, None), access_log=None)
    await runner.setup()
    await Site(runner, ("127.0.0.1", 0), most).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def exchange(port: int, sent: bytes) -> bytes:
    """Send raw bytes. Return all bytes that the server sends before it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        await writer.drain()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def request(path: str, body: bytes, *headers: str, method: str = "POST") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


@pytest.mark.parametrize("path", ["/slack/events", "/healthz", "/metrics", "/nowhere"])
async def test_compressed_body_is_never_unpacked(path):
    async with listening() as port:
        method = "POST" if path == "/slack/events" else "GET"
        sent = request(path, bomb(), "Content-Encoding: gzip", "Connection: close", method=method)
        started = time.process_time()
        answer = await exchange(port, sent)
        assert not answer.startswith(b"HTTP/1.1 5")
        assert time.process_time() - started < 1.0


async def test_unwanted_body_is_read_for_a_second_at_most(monkeypatch):
    monkeypatch.setattr(server, "DRAIN_SECONDS", 0.1)
    async with listening() as port, asyncio.timeout(30):
        head = "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nx"
        assert (await exchange(port, head.encode())).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("part", [b"", b"GET /hea", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"])
async def test_silent_connection_is_closed(part, monkeypatch):
    monkeypatch.setattr(server, "FIRST_REQUEST_SECONDS", 0.1)
    async with listening() as port, asyncio.timeout(30):
        assert await exchange(port, part) == b""


async def test_answered_connection_outlives_the_first_deadline(monkeypatch):
    monkeypatch.setattr(server, "FIRST_REQUEST_SECONDS", 0.1)
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(request("/healthz", b"", method="GET"))
            assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")
            await asyncio.sleep(0.15)
        writer.close()


async def test_many_silent_connections_leave_room_for_others():
    async with listening(most=20) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        sent = request("/healthz", b"", "Connection: close", method="GET")
        assert (await exchange(port, sent)).startswith(b"HTTP/1.1 200")
        gone = [reader for reader, _ in silent if reader.at_eof()]
        assert len(gone) >= 40
        for _, writer in silent:
            writer.close()


MALFORMED = [
    b"nonsense\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked secret-words\r\n\r\n",
    b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz secret-words\r\n",
    b"GET / HTTP/1.1\r\nbad header\x00 secret-words\r\n\r\n",
]


@pytest.mark.parametrize("sent", MALFORMED, ids=range(len(MALFORMED)))
async def test_malformed_http_is_not_repeated(sent, caplog):
    with caplog.at_level(logging.INFO):
        async with listening() as port, asyncio.timeout(30):
            answer = await exchange(port, sent)
    assert b"secret-words" not in answer
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


@pytest.mark.parametrize("path", ["/healthz", "/nowhere"])
async def test_answers_name_no_version(path):
    async with listening() as port:
        answer = await exchange(port, request(path, b"", "Connection: close", method="GET"))
        assert b"Server: Gatehouse\r\n" in answer
        assert b"aiohttp" not in answer
        assert b"aiohttp" not in await exchange(port, b"nonsense\r\n\r\n")


async def test_connection_with_work_in_progress_is_closed_last():
    asked, answering = asyncio.Event(), asyncio.Event()

    async def scrape():
        asked.set()
        await answering.wait()
        return b"x 1\n"

    async with listening(most=3, scrape=scrape) as port, asyncio.timeout(30):
        busy = await asyncio.open_connection("127.0.0.1", port)
        busy[1].write(request("/metrics", b"", "Connection: close", method="GET"))
        await asked.wait()
        idle, silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        idle[1].write(request("/healthz", b"", method="GET"))
        await idle[0].readuntil(b"\r\n\r\nok")
        sent, others = request("/healthz", b"", method="GET"), []
        # First goes the one that has asked nothing, then the one that waits for nothing.
        for closed in (silent, idle):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            others.append((reader, writer))
            assert await closed[0].read() == b""
            writer.write(sent)
            await reader.readuntil(b"\r\n\r\nok")
        answering.set()
        assert (await busy[0].read()).endswith(b"x 1\n")
        for _, writer in (busy, idle, silent, *others):
            writer.close()
