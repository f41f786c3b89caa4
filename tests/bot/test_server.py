"""The server accepts only signed requests from Slack, and reports its health and metrics."""

import asyncio
import io
import json
import time
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import pytest
from aiohttp import HttpVersion10, StreamReader, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from structlog.testing import capture_logs

from bot.gateway.rules import GatewayRefusal
from bot.gateway.server import read_body
from bot.metrics import Metrics
from bot.ops.clock import SystemClock
from bot.server import MOST_BYTES, is_local, make_server
from bot.slack.messages.block_kit import Message
from handlers.endpoint import BODY_SECONDS, Refusals, SlackEndpoint
from sandbox.slack.delivery import sign
from tests.support.listening import small_bot

FORM = "application/x-www-form-urlencoded"
COMMAND = urlencode({"command": "/x", "user_id": "U0VIEWER", "text": ""}).encode()


@pytest.fixture
async def bot():
    async with small_bot() as running:

        async def answer(ask):
            return Message("done")

        running.command("/x", answer)
        yield running


def signed(secret: str, body: bytes, *, at: str | None = None, kind: str = FORM) -> dict[str, str]:
    timestamp = str(int(time.time())) if at is None else at
    text = body.decode("utf-8", "replace")
    return {
        "Content-Type": kind,
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": sign(secret, timestamp, text),
    }


async def post(bot, body: bytes, headers: dict[str, str]) -> int:
    async with aiohttp.ClientSession() as session:
        url = f"{bot.slack.bot_url}/slack/events"
        async with session.post(url, data=io.BytesIO(body), headers=headers) as answer:
            return answer.status


async def test_a_signed_request_is_accepted(bot):
    assert await post(bot, COMMAND, signed(bot.slack.signing_secret, COMMAND)) == 200


async def test_command_about_a_payload_gets_in(bot):
    # Bolt reads a form with this word as an interaction, and would find no payload.
    asked = urlencode({"command": "/x", "user_id": "U0VIEWER", "text": "payload"}).encode()
    assert await post(bot, asked, signed(bot.slack.signing_secret, asked)) == 200


async def test_how_long_an_acknowledgement_took_is_measured(bot):
    await post(bot, COMMAND, signed(bot.slack.signing_secret, COMMAND))
    await post(bot, COMMAND, signed("another-secret", COMMAND))
    (family,) = bot.parts.metrics.ack_seconds.collect()
    assert [sample.value for sample in family.samples if sample.name.endswith("_count")] == [1.0]


async def test_a_forged_signature_or_body_is_refused(bot):
    assert await post(bot, COMMAND, signed("another-secret", COMMAND)) == 401
    headers = signed(bot.slack.signing_secret, COMMAND)
    assert await post(bot, COMMAND + b"&text=more", headers) == 401


async def test_a_stale_request_is_refused(bot):
    for age in (301, 86_400, -310):
        headers = signed(bot.slack.signing_secret, COMMAND, at=str(int(time.time()) - age))
        assert await post(bot, COMMAND, headers) == 401


@pytest.mark.parametrize("age", [0, 290, -50])
async def test_a_request_of_the_last_five_minutes_is_taken(bot, age):
    headers = signed(bot.slack.signing_secret, COMMAND, at=str(int(time.time()) - age))
    assert await post(bot, COMMAND, headers) == 200


async def test_an_unsigned_request_is_refused(bot):
    for missing in ("X-Slack-Signature", "X-Slack-Request-Timestamp"):
        headers = signed(bot.slack.signing_secret, COMMAND)
        del headers[missing]
        assert await post(bot, COMMAND, headers) == 401


async def test_header_that_is_there_twice_is_refused(bot):
    for name in ("X-Slack-Signature", "X-Slack-Request-Timestamp"):
        headers = CIMultiDict(signed(bot.slack.signing_secret, COMMAND))
        # With two differing headers, a replay could be verified by one and recognised by the other.
        headers.add(name, "v0=" + "0" * 64 if name.endswith("Signature") else "1")
        assert await post(bot, COMMAND, headers) == 401


async def test_a_trailer_is_no_header_of_the_next_request(bot):
    head = "POST /slack/events HTTP/1.1\r\nHost: bot.example\r\n"
    chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n0\r\nX-Slack-Signature: x\r\n\r\n"
    rest = signed(bot.slack.signing_secret, COMMAND)
    rest |= {"Content-Length": str(len(COMMAND)), "Connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in rest.items())
    host, port = bot.slack.bot_url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{chunked}{head}{lines}\r\n".encode() + COMMAND)
    answers = (await reader.read()).decode()
    writer.close()
    # The proxy sends the next request on another connection.
    assert answers.count("HTTP/1.1 ") == 1
    assert "\r\nConnection: close\r\n" in answers


TIMESTAMPS = ["", "x", "12.5", "-1", "1e9", " 1", "١٢٣", "0x10", "9" * 13, "9" * 5000, "nan"]


async def test_a_timestamp_that_is_no_number_is_refused(bot):
    for at in TIMESTAMPS:
        assert await post(bot, COMMAND, signed(bot.slack.signing_secret, COMMAND, at=at)) == 401


async def test_a_signature_of_another_form_is_refused(bot):
    for signature in ("", "v0=", "v1=00", "v0=é", "x" * 4000):
        headers = {**signed(bot.slack.signing_secret, COMMAND), "X-Slack-Signature": signature}
        assert await post(bot, COMMAND, headers) == 401


BROKEN = [
    (b"\xff\xfe", FORM),
    (b"", FORM),
    (b"hello=1", FORM),
    (b"payload=", FORM),
    (b"payload={", FORM),
    (b"payload=[]", FORM),
    (b"payload=null", FORM),
    (b"payload={}", FORM),
    (b'payload={"type": 7}', FORM),
    (b'payload={"type": "view_submission", "view": 7}', FORM),
    (b'payload={"type": "view_submission", "view": {}}', FORM),
    (b'payload={"type": "block_actions"}', FORM),
    (b'payload={"type": "block_actions", "actions": []}', FORM),
    (b'payload={"type": "block_actions", "actions": [7]}', FORM),
    (b'payload={"type": "block_suggestion"}', FORM),
    (b'{"type": "event_callback"}', "application/json"),
    (b'{"type": "event_callback", "event": {}}', "application/json"),
    (b"payload=" + b"[" * 50_000, FORM),
    (b"{", "application/json"),
    (b"[]", "application/json"),
    (b"{}", "application/json"),
    (b"[" * 200_000, "application/json"),
    (b'{"type": "event_callback"}', "text/plain"),
    (b'{"type": "event_callback", "event": {"type": "x"}, "command": 7}', "application/json"),
    (b'payload={"type": "shortcut", "callback_id": "x", "command": "/x"}', FORM),
]


async def test_a_signed_body_of_another_form_is_refused(bot):
    for body, kind in BROKEN:
        assert await post(bot, body, signed(bot.slack.signing_secret, body, kind=kind)) == 401


KINDS = [FORM, "application/json", "text/plain", "multipart/form-data; boundary=x", ""]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_signed_body_means_the_same_with_every_content_type(bot, kind):
    clicks, body = [], json.dumps(message_with_a_click_inside()).encode()

    async def clicked(ask):
        clicks.append(ask)

    bot.action("press", clicked)
    headers = signed(bot.slack.signing_secret, body, kind=kind)
    # It's an event that nobody listens to.
    assert await post(bot, body, headers) == 404
    assert await post(bot, COMMAND, signed(bot.slack.signing_secret, COMMAND, kind=kind)) == 200
    await bot.parts.tasks.drain(5)
    assert clicks == []


def message_with_a_click_inside() -> dict[str, Any]:
    """Return an event with a text that would be a click if the body were read as a form."""
    action = {"type": "button", "action_id": "press", "block_id": "b", "value": "7"}
    click = {"type": "block_actions", "user": {"id": "U0APPROVER"}, "actions": [action]}
    text = f"hello &payload={quote(json.dumps(click))}&x="
    event = {"type": "message", "channel_type": "im", "user": "U0NOROLE", "text": text}
    return {"type": "event_callback", "event_id": "Ev1", "event": event}


async def test_type_that_nobody_listens_to_is_not_found(bot):
    body = b'payload={"type": "of_next_year"}'
    assert await post(bot, body, signed(bot.slack.signing_secret, body, kind=FORM)) == 404


@given(body=st.binary(max_size=60), signature=st.text(max_size=20), timestamp=st.text(max_size=20))
async def test_nothing_unsigned_gets_in_or_breaks_anything(body, signature, timestamp):
    headers = {"X-Slack-Signature": signature, "X-Slack-Request-Timestamp": timestamp}
    assert is_refused(body, headers)


def is_refused(body: bytes, headers: dict[str, str]) -> bool:
    endpoint = SlackEndpoint(None, "secret", Refusals(Metrics(), SystemClock()))
    request = make_mocked_request("POST", "/slack/events", headers=CIMultiDict(headers))
    return endpoint._refusal(request, body.decode("utf-8", "replace")) is not None


async def test_a_sender_that_left_before_its_body_was_read_is_no_fault():
    loop = asyncio.get_running_loop()
    body = StreamReader(BaseProtocol(loop), 1024, loop=loop)
    request = make_mocked_request("POST", "/slack/events", payload=body)
    endpoint = SlackEndpoint(None, "secret", Refusals(Metrics(), SystemClock()))
    assert (await endpoint.handle(request)).status == 400
    with pytest.raises(GatewayRefusal, match="incomplete"):
        await read_body(request)


@pytest.mark.parametrize(("extra", "status"), [(0, 200), (1, 413)])
async def test_a_body_of_up_to_a_mebibyte_is_read(bot, extra, status):
    fill = b"&text=" + b"x" * (MOST_BYTES - len(COMMAND) - len(b"&text=") + extra)
    body = COMMAND + fill
    assert await post(bot, body, signed(bot.slack.signing_secret, body)) == status


async def test_click_in_a_view_needs_no_name_of_the_view(bot):
    for view in ('{"id": "V1"}', '{"type": "home", "blocks": []}', "null"):
        for kind in ("block_suggestion", "block_actions"):
            named = '"action_id": "nobody.listens", "value": ""'
            payload = f'{{"type": "{kind}", {named}, "actions": [{{{named}}}], "view": {view}}}'
            body = urlencode({"payload": payload}).encode()
            assert await post(bot, body, signed(bot.slack.signing_secret, body)) != 401


async def test_fault_of_ours_is_a_500_and_counted(bot, capsys, caplog):
    async def broken():
        raise RuntimeError("ours")

    bot.app.command("/broken")(broken)
    asked = urlencode({"command": "/broken", "user_id": "U0VIEWER"}).encode()
    assert await post(bot, asked, signed(bot.slack.signing_secret, asked)) == 500
    assert (await bot.outcomes())["slack.request", "broken"] == 1
    # Another test in this process may have redirected the log to the standard library.
    assert "slack.broken" in capsys.readouterr().out + caplog.text


async def get(url: str, path: str, **headers: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{url}{path}", headers=headers) as answer,
    ):
        return answer.status, await answer.text()


@pytest.mark.parametrize(("path", "method"), [("/slack/events", "GET"), ("/healthz", "POST")])
async def test_another_method_is_not_allowed(bot, path, method):
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"{bot.slack.bot_url}{path}") as answer,
    ):
        assert answer.status == 405


async def test_an_unknown_path_is_not_found(bot):
    assert (await get(bot.slack.bot_url, "/"))[0] == 404


async def refusals(bot) -> dict[str, float]:
    (family,) = bot.parts.metrics.refused.collect()
    totals = [sample for sample in family.samples if sample.name.endswith("_total")]
    counts = {sample.labels["cause"]: sample.value for sample in totals}
    return {cause: count for cause, count in counts.items() if count}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/slack/events/", 404),
        ("POST", "/slack", 404),
        ("POST", "/", 404),
        ("GET", "/slack/events", 405),
        ("POST", "/healthz", 405),
    ],
)
async def test_a_request_of_slack_for_another_path_is_counted(bot, method, path, status):
    sent = signed("another-secret", COMMAND)
    with capture_logs() as logs:
        async with aiohttp.ClientSession() as session:
            for _ in range(3):
                url = f"{bot.slack.bot_url}{path}"
                async with session.request(method, url, headers=sent) as answer:
                    assert answer.status == status
    assert await refusals(bot) == {"wrong_path": 3.0}
    lines = [line["requests"] for line in logs if line["event"] == "slack.refused"]
    assert lines == [{"wrong_path": 1}]


async def test_another_path_without_a_signature_is_not_counted(bot):
    assert (await get(bot.slack.bot_url, "/slack"))[0] == 404
    # Bolt has no listener for this one, but the path is right.
    body = b'payload={"type": "of_next_year"}'
    assert await post(bot, body, signed(bot.slack.signing_secret, body)) == 404
    assert await refusals(bot) == {}


async def test_a_request_with_a_header_over_8_kib_is_counted(bot):
    headers = {**signed(bot.slack.signing_secret, COMMAND), "X-Forwarded-Cert": "x" * 9000}
    assert await post(bot, COMMAND, headers) == 431
    assert await refusals(bot) == {"long_header": 1.0}


async def test_clients_that_send_nothing_keep_no_large_body_out(bot):
    large = urlencode({"command": "/x", "user_id": "U0VIEWER", "text": "x" * 100_000}).encode()
    port = int(bot.slack.bot_url.rpartition(":")[2])
    idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
    for _, writer in idle:
        writer.write(b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\nx")
        await writer.drain()
    async with asyncio.timeout(BODY_SECONDS / 2):
        assert await post(bot, large, signed(bot.slack.signing_secret, large)) == 200
    for _, writer in idle:
        writer.close()


async def ask(server: web.Application, path: str, **headers: str) -> tuple[int, str]:
    runner = web.AppRunner(server)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        return await get(f"http://127.0.0.1:{runner.addresses[0][1]}", path, **headers)
    finally:
        await runner.cleanup()


def a_server(
    missing: str | None = None, token: str | None = None, page: bytes = b"gatehouse_x 1\n"
) -> web.Application:
    async def ready() -> str | None:
        return missing

    async def scrape() -> bytes:
        return page

    return make_server(None, ready, scrape, token)


@pytest.mark.parametrize("missing", [None, "database", "slack"])
async def test_health_needs_the_process_and_readiness_all_parts(missing):
    assert await ask(a_server(missing), "/healthz") == (200, "ok")
    expected = (200, "ready") if missing is None else (503, missing)
    assert await ask(a_server(missing), "/readyz") == expected


async def test_in_socket_mode_nothing_comes_in_over_http():
    assert (await ask(a_server(), "/slack/events"))[0] == 404


async def test_metrics_are_for_this_machine_without_a_token():
    assert await ask(a_server(), "/metrics") == (200, "gatehouse_x 1\n")


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", "Basic right", "bearer right"])
async def test_metrics_want_their_token(given):
    assert (await ask(a_server(token="right"), "/metrics", Authorization=given))[0] == 401


async def test_metrics_are_given_for_their_token():
    status, _ = await ask(a_server(token="right"), "/metrics", Authorization="Bearer right")
    assert status == 200


@pytest.mark.parametrize(
    ("remote", "status"),
    [
        ("127.0.0.1", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
        ("10.0.0.1", 403),
        ("::ffff:10.0.0.1", 403),
        ("", 403),
    ],
)
def test_metrics_without_a_token_are_refused_to_everybody_else(remote, status):
    request = make_mocked_request("GET", "/metrics", {"Host": "localhost:3000"})
    request = request.clone(remote=remote)
    assert is_local(request) is (status is None)


PROXIED = [
    ("Forwarded", "for=203.0.113.9"),
    ("X-Forwarded-For", "203.0.113.9"),
    ("x-real-ip", "203.0.113.9"),
    ("Via", "1.1 proxy"),
    ("Host", "bot.example.com"),
    ("Host", "[::1"),
]


@pytest.mark.parametrize(("header", "value"), PROXIED)
async def test_metrics_without_a_token_are_refused_through_a_proxy(header, value):
    assert (await ask(a_server(), "/metrics", **{header: value}))[0] == 403


def test_metrics_without_a_token_are_refused_over_http_1_0():
    request = make_mocked_request(
        "GET", "/metrics", {"Host": "127.0.0.1"}, version=HttpVersion10
    ).clone(remote="127.0.0.1")
    assert not is_local(request)
