"""Calls use the proxy that is set in the environment, unless NO_PROXY lists the host."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.errors import SlackClientError
from yarl import URL

from bot.errors import SlackUnreachable
from bot.ops.clock import SystemClock
from bot.services.calls import ServiceCall
from bot.services.errors import ServiceUnreachable
from bot.services.http import open_session, proxy_for, tls_context
from bot.slack.client import SlackClient, slack_web_client
from tests.support.forks import run_forked
from tests.support.http import SELF_SIGNED, open_bench, web_server
from tests.support.settings import LEAST

ELSEWHERE = "http://127.0.0.1:9"
WEBSOCKETS = URL("https://wss-primary.slack.com")


@pytest.fixture
async def asked() -> AsyncIterator[list[str]]:
    """Run a proxy that never responds. Yield the URLs that were requested from the proxy."""
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
    """Make one call to a service and one call to Slack."""
    async with open_session() as session:
        with suppress(aiohttp.ClientError):
            await session.get(f"{ELSEWHERE}/v2/Flows")
        client = slack_web_client("xoxb-1", f"{ELSEWHERE}/api/", session)
        with suppress(aiohttp.ClientError, SlackClientError):
            await client.auth_test()


async def test_services_and_slack_are_called_through_the_proxy(asked) -> None:
    await call_everybody()
    # A GET without an answer is sent a second time.
    assert list(dict.fromkeys(asked)) == [f"{ELSEWHERE}/v2/Flows", f"{ELSEWHERE}/api/auth.test"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200",
        b"hello\r\n\r\n",
        b"",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_call_that_the_proxy_declines_counts_as_unsent(monkeypatch, answer, method) -> None:
    said = "can't be reached, because the proxy refused to connect"
    await assert_unsent(monkeypatch, answer, said, method)


async def test_a_proxy_that_connects_is_not_blamed(monkeypatch) -> None:
    answer = b"HTTP/1.1 200 OK\r\n\r\nThis is no TLS."
    await assert_unsent(monkeypatch, answer, r"The email service can't be reached\.$")


async def assert_unsent(monkeypatch, answer: bytes, said: str, method: str = "GET") -> None:
    """Make a call through a proxy that answers and closes the connection."""

    async def decline(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(decline, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    monkeypatch.setenv("HTTPS_PROXY", f"http://{host}:{port}")
    call = ServiceCall("email", "the email service", method, URL("https://elsewhere.example/v3"))
    async with server, open_bench() as bench:
        with pytest.raises(ServiceUnreachable, match=said) as got:
            await bench.request(call)
    assert got.value.sent is False


async def test_no_proxy_holds_for_all(asked, monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,slack.com")
    await call_everybody()
    assert asked == []
    assert proxy_for(WEBSOCKETS) is None


async def test_socket_takes_the_proxy_too(asked) -> None:
    assert (proxy_for(WEBSOCKETS) or "").startswith("http://127.0.0.1:")


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "http://proxy.invalid:3128"])
async def test_an_unreachable_proxy_is_blamed_and_not_the_service(monkeypatch, proxy) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    said = rf"because the proxy {URL(proxy).host} can't be reached. Check HTTPS_PROXY\.$"
    call = ServiceCall("email", "the email service", "GET", URL("https://elsewhere.example/v3"))
    async with open_bench() as bench, open_session() as session:
        with pytest.raises(ServiceUnreachable, match=said) as got:
            await bench.request(call)
        assert got.value.sent is False
        client = slack_web_client("xoxb-1", "https://slack.invalid/api/", session)
        slack = SlackClient(client, SystemClock(), lambda _method, _outcome: None)
        with pytest.raises(SlackUnreachable) as unreachable:
            await slack.who_am_i()
        assert re.search(said, unreachable.value.sentence)


async def test_all_connections_trust_the_certificates_of_the_settings(monkeypatch, request) -> None:
    async def answer(_request: web.BaseRequest) -> web.Response:
        return web.json_response({"ok": True})

    monkeypatch.setenv("SSL_CERT_FILE", str(SELF_SIGNED))
    tls_context.cache_clear()
    request.addfinalizer(tls_context.cache_clear)
    async with web_server(answer, tls=True) as url, open_session() as session:
        assert (await session.get(url)).status == 200
        client = slack_web_client("xoxb-1", f"{url}/api/", session)
        assert (await client.auth_test())["ok"]
        # Socket Mode opens its connection with this client's context.
        async with aiohttp.ClientSession() as other:
            assert (await other.get(url, ssl=client.ssl)).status == 200


async def test_file_sets_the_proxy_and_the_certificates(tmp_path) -> None:
    file = tmp_path / "gatehouse.toml"
    file.write_text(
        f'http_proxy = "{ELSEWHERE}"\nssl_cert_file = "{SELF_SIGNED}"\n', encoding="utf-8"
    )
    given = {**LEAST, "SLACK_API_URL": "http://127.0.0.1:9/api/", "GATEHOUSE_CONFIG": str(file)}
    status, said = await run_forked(
        ("check",), {**given, "DATABASE_URL": f"sqlite:///{tmp_path}/gatehouse.db"}
    )
    assert status == 1
    assert "because the proxy 127.0.0.1 can't be reached. Check HTTP_PROXY." in said
    assert f"Read from {file}." in said
