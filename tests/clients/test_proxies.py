"""A proxy of the environment is used for all calls, or by NO_PROXY for none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import aiohttp
import pytest
from slack_sdk.errors import SlackClientError
from yarl import URL

from bot.services.calls import ServiceCall
from bot.services.errors import ServiceUnreachable
from bot.services.http import open_session, proxy_for
from bot.slack.client import slack_web_client
from tests.support.http import open_bench

ELSEWHERE = "http://127.0.0.1:9"


@pytest.fixture
async def asked() -> AsyncIterator[list[str]]:
    """What a proxy was asked for; it answers nothing."""
    lines: list[str] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append((await reader.readline()).decode().split()[1])
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTTP_PROXY", f"http://{host}:{port}")
        patch.setenv("HTTPS_PROXY", f"http://{host}:{port}")
        yield lines
    server.close()


async def call_everybody() -> None:
    """One call to a service, and one to Slack."""
    async with open_session() as session:
        with suppress(aiohttp.ClientError):
            await session.get(f"{ELSEWHERE}/v2/Flows")
        client = slack_web_client("xoxb-1", f"{ELSEWHERE}/api/", session)
        with suppress(aiohttp.ClientError, SlackClientError):
            await client.auth_test()


async def test_services_and_slack_are_called_through_the_proxy(asked) -> None:
    await call_everybody()
    # A GET that gets no answer is sent a second time.
    assert list(dict.fromkeys(asked)) == [f"{ELSEWHERE}/v2/Flows", f"{ELSEWHERE}/api/auth.test"]


@pytest.mark.parametrize(("status", "may_help"), [(502, True), (407, False)])
async def test_call_that_the_proxy_declines_is_told_as_unsent(
    monkeypatch, status, may_help
) -> None:
    async def decline(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(decline, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    monkeypatch.setenv("HTTPS_PROXY", f"http://{host}:{port}")
    call = ServiceCall("email", "the email service", "GET", URL("https://elsewhere.example/v3"))
    async with server, open_bench() as bench:
        with pytest.raises(
            ServiceUnreachable, match=rf"the proxy refused to connect \(HTTP {status}\)"
        ) as got:
            await bench.request(call)
    assert (got.value.sent, got.value.retryable) == (False, may_help)


async def test_no_proxy_holds_for_all(asked, monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,slack.com")
    await call_everybody()
    assert asked == []
    assert proxy_for("wss-primary.slack.com") is None


async def test_socket_takes_the_proxy_too(asked) -> None:
    assert (proxy_for("wss-primary.slack.com") or "").startswith("http://127.0.0.1:")
