"""The HTTP server: Slack's requests, health, readiness and metrics."""

import asyncio
import hmac
import ipaddress
import json
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.signature import SignatureVerifier

from bot.clock import Clock
from bot.metrics import Metrics

log = structlog.get_logger(__name__)

MOST_BYTES = 1024 * 1024
BODY_SECONDS = 5.0
# Seconds since 1970; no longer, as Python declines to read numbers of thousands of digits.
TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)
# Set by proxies, which make everybody look like this machine.
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-IP")
Ready = Callable[[], Awaitable[str | None]]
Scrape = Callable[[], Awaitable[bytes]]


class MeasuredApp(AsyncApp):
    """Bolt, which tells how long every acknowledgement took, over HTTP and in Socket Mode alike."""

    def __init__(self, metrics: Metrics, clock: Clock, **settings: Any) -> None:  # noqa: ANN401 - Bolt's
        super().__init__(**settings)
        self._ack_seconds = metrics.ack_seconds
        self._monotonic = clock.monotonic

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        """Return Bolt's answer to one request of Slack's."""
        started = self._monotonic()
        answer = await super().async_dispatch(req)
        self._ack_seconds.observe(self._monotonic() - started)
        return answer


class SlackEndpoint:
    """`POST /slack/events`: what Slack signed goes to Bolt, everything else is 401."""

    def __init__(self, app: AsyncApp, signing_secret: str | None) -> None:
        self._app = app
        self._verifier = SignatureVerifier(signing_secret) if signing_secret else None

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request of Slack's."""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = (await request.read()).decode("utf-8")
        except (UnicodeDecodeError, web.RequestPayloadError):
            return web.Response(status=401, text="unreadable")
        except TimeoutError:
            return web.Response(status=408, text="too slow")
        except ConnectionError:
            # Slack gave up while we could not listen; nobody reads this.
            return web.Response(status=400, text="gone")
        if not self._is_signed(request, body) or not _is_readable(request, body):
            return web.Response(status=401, text="unsigned or malformed")
        return await self._dispatch(request, body)

    async def _dispatch(self, request: web.Request, body: str) -> web.Response:
        """Bolt's answer; 401 to what is of a form that Slack never sends, where Bolt breaks."""
        headers = {name: [value] for name, value in request.headers.items()}
        try:
            answer = await self._app.async_dispatch(
                AsyncBoltRequest(body=body, query=request.query_string, headers=headers)  # type: ignore[arg-type]
            )
        except Exception as error:  # noqa: BLE001 - Bolt reads fields before it looks for them
            log.warning("slack.malformed", error=type(error).__name__)
            return web.Response(status=401, text="malformed")
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            # Bolt has logged what a listener raised before it could acknowledge.
            return web.Response(status=401, text="malformed")
        return await to_aiohttp_response(answer)

    def _is_signed(self, request: web.Request, body: str) -> bool:
        timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        if self._verifier is None or not TIMESTAMP.fullmatch(timestamp):
            return False
        if not signature.isascii():
            return False
        return self._verifier.is_valid(body, timestamp, signature)


def _is_readable(request: web.Request, body: str) -> bool:
    """Whether the body is of one of the two forms that Slack sends, so that Bolt can read it."""
    try:
        if request.content_type == "application/json":
            return _is_whole(json.loads(body))
        form = parse_qs(body, keep_blank_values=True)
        if "payload" in form:
            return _is_whole(json.loads(form["payload"][0]))
    except (ValueError, RecursionError):
        return False
    return "command" in form or "ssl_check" in form


def _is_whole(payload: object) -> bool:
    """Whether a payload has what Slack always sends with its type, and Bolt reads unseen."""
    if not isinstance(payload, dict) or not isinstance(payload.get("type"), str):
        return False
    match payload["type"]:
        case "block_actions":
            actions = payload.get("actions")
            return isinstance(actions, list) and bool(actions) and isinstance(actions[0], dict)
        case "view_submission" | "view_closed":
            view = payload.get("view")
            return isinstance(view, dict) and isinstance(view.get("callback_id"), str)
        case "block_suggestion":
            return isinstance(payload.get("action_id"), str)
        case "event_callback":
            return isinstance(payload.get("event"), dict)
    return True


def make_server(
    slack: SlackEndpoint | None, ready: Ready, scrape: Scrape, metrics_token: str | None
) -> web.Application:
    """Return the aiohttp application.

    Args:
        slack: None in Socket Mode, where nothing comes in over HTTP.
        ready: Returns None, or the one word that says what is missing.
        scrape: Returns the metrics.
        metrics_token: What `/metrics` wants as a bearer; None to answer this machine only.
    """

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_request: web.Request) -> web.Response:
        missing = await ready()
        return web.Response(text=missing or "ready", status=503 if missing else 200)

    async def metrics(request: web.Request) -> web.Response:
        refusal = _metrics_refusal(request, metrics_token)
        if refusal is not None:
            return refusal
        kind = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=await scrape(), headers=kind)

    server = web.Application(client_max_size=MOST_BYTES)
    server.router.add_get("/healthz", healthz)
    server.router.add_get("/readyz", readyz)
    server.router.add_get("/metrics", metrics)
    if slack is not None:
        server.router.add_post("/slack/events", slack.handle)
    return server


def _metrics_refusal(request: web.Request, token: str | None) -> web.Response | None:
    if token is not None:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if hmac.compare_digest(given, f"Bearer {token}".encode()):
            return None
        challenge = {"WWW-Authenticate": "Bearer"}
        return web.Response(status=401, text="METRICS_TOKEN is wanted", headers=challenge)
    is_proxied = any(name in request.headers for name in FORWARDED)
    if _is_loopback(request.remote) and not is_proxied:
        return None
    return web.Response(status=403, text="set METRICS_TOKEN to read metrics from elsewhere")


def _is_loopback(address: str | None) -> bool:
    try:
        return ipaddress.ip_address((address or "").removeprefix("::ffff:")).is_loopback
    except ValueError:
        return False
