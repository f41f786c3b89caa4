"""The HTTP server: Slack's requests, health, readiness and metrics."""

import asyncio
import hmac
import ipaddress
import json
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import parse_qsl

import structlog
from aiohttp import HttpVersion11, web
from cachetools import TTLCache
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_sdk.signature import SignatureVerifier
from yarl import URL

from bot.metrics import Metrics, Refusal
from bot.ops.clock import Clock
from bot.single_flight import SingleFlight

log = structlog.get_logger(__name__)

MOST_BYTES = 1024 * 1024
OPENMETRICS = "application/openmetrics-text"
OPENMETRICS_TYPE = f"{OPENMETRICS}; version=1.0.0; charset=utf-8"
MOST_FIELDS = 100
# The fields by which Bolt finds a listener; all must be strings.
LOOKED_UP = ("command", "callback_id", "action_id", "response_url")
BODY_SECONDS = 5.0
# Like Slack's own verification: five minutes either way, so that adjusting a clock doesn't lock
# Slack out. Signatures are remembered for longer than they are accepted.
STALE_SECONDS = 300
AHEAD_SECONDS = 300
# Answers are remembered for as long as their signatures are valid.
REMEMBER_SECONDS = STALE_SECONDS + AHEAD_SECONDS + 5
REMEMBERED = 50_000
# Refused requests are logged together, at this interval.
LOG_SECONDS = 60.0
# Seconds since 1970; no longer, as Python declines to read numbers of thousands of digits.
TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)
# Headers set by proxies, behind which every client looks local; likewise the prefix below.
FORWARDED = frozenset(
    {
        "forwarded",
        "via",
        "x-real-ip",
        "x-client-ip",
        "x-original-host",
        "true-client-ip",
        "cdn-loop",
    }
)
FORWARDED_PREFIXES = ("x-forwarded", "x-envoy-", "cf-", "cdn-")
PLAIN = frozenset({"", "identity"})
# Fields unique to each click, command and event.
ONCE = re.compile(r"trigger_id|event_id")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Ready = Callable[[], Awaitable[str | None]]
Besides = Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Answered:
    """Bolt's answer, kept for repeats of the same request."""

    status: int
    body: str
    kind: str


ACKNOWLEDGED = Answered(200, "", "text/plain")


class Scrape(Protocol):
    """Renders the metrics page."""

    def __call__(self, *, is_openmetrics: bool) -> Awaitable[bytes]:
        """Return the page in the format of Prometheus or of OpenMetrics."""
        ...


class BrokenError(Exception):
    """An internal fault: logged, counted and answered with 500."""


class SlackEndpoint:
    """`POST /slack/events`: requests signed by Slack go to Bolt, all others get a 401.

    A request repeated with the same signature gets the same answer and has no effect: a proxy sent
    it twice, or someone intercepted it.

    Args:
        app: Bolt.
        signing_secret: None in Socket Mode, where every request is refused.
        metrics: Counts faults.
        clock: For how long answers are remembered.
    """

    def __init__(
        self,
        app: AsyncApp,
        signing_secret: str | None,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._app = app
        self._clock = clock
        self._unlogged: Counter[str] = Counter()
        self._log_at = clock.monotonic()
        self._verifier = SignatureVerifier(signing_secret) if signing_secret else None
        self._metrics = metrics
        self._answers: SingleFlight[str, Answered] = SingleFlight(
            TTLCache(REMEMBERED, REMEMBER_SECONDS, timer=clock.monotonic)
        )

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request from Slack."""
        try:
            body = (await _body(request)).decode("utf-8")
        except (UnicodeDecodeError, web.RequestPayloadError):
            return self._refused(Refusal.MALFORMED, "unreadable")
        except TimeoutError:
            return web.Response(status=408, text="too slow")
        except ConnectionError:
            # Slack gave up while we couldn't read; nobody sees this answer.
            return web.Response(status=400, text="gone")
        refusal = self._refusal(request, body)
        if refusal is not None:
            return self._refused(refusal, "unsigned or malformed")
        bolt_request = _bolt_request(request, body)
        if bolt_request is None:
            return self._refused(Refusal.MALFORMED, "malformed")
        return await self._answer(request, body, bolt_request)

    def _refused(self, refusal: Refusal, text: str) -> web.Response:
        """Answer 401. Anyone can send such a request, so it's only counted and logged."""
        self._metrics.count_refused(refusal)
        self._unlogged[refusal] += 1
        if self._clock.monotonic() >= self._log_at:
            log.warning("slack.refused", requests=dict(self._unlogged))
            self._unlogged.clear()
            self._log_at = self._clock.monotonic() + LOG_SECONDS
        return web.Response(status=401, text=text)

    async def _answer(
        self, request: web.Request, body: str, bolt_request: AsyncBoltRequest
    ) -> web.Response:
        async def dispatch(_signature: str) -> Answered:
            return await self._dispatch(bolt_request)

        signature = request.headers["X-Slack-Signature"]
        try:
            if ONCE.search(body):
                answered = await self._answers.get(signature, dispatch)
            else:
                answered = await self._dispatch(bolt_request)
        except BrokenError:
            self._metrics.count_command("slack.request", "broken")
            return web.Response(status=500, text="broken")
        return web.Response(status=answered.status, text=answered.body, content_type=answered.kind)

    async def _dispatch(self, request: AsyncBoltRequest) -> Answered:
        try:
            answer = await self._app.async_dispatch(request)
        except Exception as error:
            log.exception("slack.broken")
            raise BrokenError from error
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            # Bolt has logged what a listener raised before it could acknowledge.
            raise BrokenError
        kind = answer.headers["content-type"][0].partition(";")[0]
        answered = Answered(answer.status, answer.body, kind)
        return ACKNOWLEDGED if answered == ACKNOWLEDGED else answered

    def _refusal(self, request: web.Request, body: str) -> Refusal | None:
        timestamp = _only(request, "X-Slack-Request-Timestamp")
        signature = _only(request, "X-Slack-Signature")
        if self._verifier is None or not TIMESTAMP.fullmatch(timestamp) or not signature:
            return Refusal.UNSIGNED
        age = time.time() - int(timestamp)
        if age < -AHEAD_SECONDS or age > STALE_SECONDS:
            return Refusal.STALE
        if not signature.isascii() or not self._verifier.is_valid(body, timestamp, signature):
            return Refusal.WRONG_SIGNATURE
        return None


def _only(request: web.Request, name: str) -> str:
    """Return a header; "" if it is missing or repeated.

    With two signatures, one could be verified while replays are tracked by the other.
    """
    values = request.headers.getall(name, [])
    return values[0] if len(values) == 1 else ""


async def _body(request: web.Request) -> bytes:
    """Read the body, with a time limit unless it arrived with the headers.

    Raises:
        TimeoutError: The body arrives too slowly.
    """
    if request.content.is_eof():
        return await request.read()
    async with asyncio.timeout(BODY_SECONDS):
        return await request.read()


def _bolt_request(request: web.Request, body: str) -> AsyncBoltRequest | None:
    """Return the request for Bolt, or None if it has a form that Slack never sends."""
    payload = _payload(request, body)
    if payload is None:
        return None
    headers = {name: [value] for name, value in request.headers.items()}
    try:
        # In HTTP mode Bolt parses the body again, and finds nothing in a command whose text
        # contains the word "payload".
        return AsyncBoltRequest(body=payload, headers=headers, mode="socket_mode")  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001 - Bolt reads fields before it looks for them
        log.warning("slack.malformed", error=type(error).__name__)
        return None


def _payload(request: web.Request, body: str) -> dict[str, Any] | None:
    """Parse the payload, form-encoded or JSON; None if it is neither or lacks a part."""
    try:
        if request.content_type == "application/json":
            return _whole(_from_json(body))
        form = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=MOST_FIELDS))
        if "payload" in form:
            return _whole(_from_json(form["payload"]))
    except (ValueError, RecursionError):
        return None
    return form if "command" in form or "ssl_check" in form else None


def _whole(payload: Any) -> dict[str, Any] | None:  # noqa: ANN401 - whatever JSON says
    return payload if _is_whole(payload) else None


def _from_json(text: str) -> object:
    """Parse JSON, refusing `NaN` and `Infinity`, which aren't valid JSON."""
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> object:
    raise ValueError(name)


def _is_whole(payload: object) -> bool:
    """Return True if the payload has the fields that Bolt reads without checking."""
    if not isinstance(payload, dict) or not isinstance(payload.get("type"), str):
        return False
    view = payload.get("view") or {}
    if not isinstance(view, dict) or not isinstance(view.get("state"), dict | None):
        return False
    if not all(isinstance(payload.get(name, ""), str) for name in LOOKED_UP):
        return False
    needed = {
        "block_actions": _has_named_action(payload.get("actions")),
        "view_submission": _is_named(view),
        "view_closed": _is_named(view),
        "block_suggestion": isinstance(payload.get("action_id"), str),
        "event_callback": isinstance(payload.get("event"), dict)
        and isinstance(payload["event"].get("type", ""), str),
        "shortcut": isinstance(payload.get("callback_id"), str),
        "message_action": isinstance(payload.get("callback_id"), str),
    }
    return needed.get(payload["type"], True)


def _has_named_action(actions: object) -> bool:
    if not isinstance(actions, list) or not actions or not isinstance(actions[0], dict):
        return False
    return isinstance(actions[0].get("action_id"), str)


def _is_named(view: Mapping[str, Any]) -> bool:
    return isinstance(view.get("type"), str) and isinstance(view.get("callback_id"), str)


@web.middleware
async def _plain_bodies_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse compressed bodies: Slack sends none, and small ones could fill the memory."""
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in PLAIN:
        return web.Response(status=415, text="compressed bodies are not taken")
    return await handler(request)


async def _without_version(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "Gatehouse"


def make_server(
    slack: SlackEndpoint | None,
    ready: Ready,
    scrape: Scrape,
    metrics_token: str | None,
    besides: Besides = list,
) -> web.Application:
    """Return the aiohttp application.

    Args:
        slack: None in Socket Mode, which has no HTTP endpoint for Slack.
        ready: Returns None, or one word for what is missing.
        scrape: Renders the metrics.
        metrics_token: The bearer token for `/metrics`; None to answer this machine only.
        besides: Returns faults that don't affect readiness.
    """

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_request: web.Request) -> web.Response:
        missing = await ready()
        if missing is not None:
            return web.Response(text=missing, status=503)
        broken = besides()
        return web.Response(text=f"ready, except {', '.join(broken)}" if broken else "ready")

    async def metrics(request: web.Request) -> web.Response:
        refusal = _metrics_refusal(request, metrics_token)
        if refusal is not None:
            return refusal
        is_openmetrics = OPENMETRICS in request.headers.get("Accept", "")
        page = await scrape(is_openmetrics=is_openmetrics)
        kind = OPENMETRICS_TYPE if is_openmetrics else "text/plain; version=0.0.4; charset=utf-8"
        return web.Response(body=page, headers={"Content-Type": kind})

    server = web.Application(client_max_size=MOST_BYTES, middlewares=[_plain_bodies_only])
    server.on_response_prepare.append(_without_version)
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
    if _is_loopback(request.remote) and not _is_proxied(request):
        return None
    return web.Response(status=403, text="set METRICS_TOKEN to read metrics from elsewhere")


def _is_proxied(request: web.Request) -> bool:
    """Return True if a proxy or tunnel on this machine may have forwarded the request.

    They add forwarding headers, pass on the original host name, or speak HTTP/1.0 (nginx).
    """
    names = [name.lower() for name in request.headers]
    is_forwarded = any(name in FORWARDED or name.startswith(FORWARDED_PREFIXES) for name in names)
    try:
        host = URL(f"http://{request.headers.get('Host', '')}").host or ""
    except ValueError:
        return True
    is_old = request.version < HttpVersion11
    return is_forwarded or is_old or not (host == "localhost" or _is_loopback(host))


def _is_loopback(address: str | None) -> bool:
    try:
        return ipaddress.ip_address((address or "").removeprefix("::ffff:")).is_loopback
    except ValueError:
        return False
