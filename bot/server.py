"""The HTTP server: Slack's requests, health, readiness and metrics."""

import asyncio
import hmac
import ipaddress
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import structlog
from aiohttp import HttpVersion11, web
from cachetools import TTLCache
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_sdk.signature import SignatureVerifier
from yarl import URL

from bot.background.single_flight import SingleFlight
from bot.dataclass import dataclass
from bot.model.health import Refusal
from bot.ops.clock import Clock
from bot.ops.metrics import Metrics
from bot.workflows.health import Health

log = structlog.get_logger(__name__)

MOST_BYTES = 1024 * 1024
PIECE_BYTES = 64 * 1024
MOST_FIELDS = 100
# What Bolt looks a listener up by: a text wherever it stands.
LOOKED_UP = ("command", "callback_id", "action_id", "response_url")
BODY_SECONDS = 5.0
# As Slack's own verification: five minutes either way, so that a clock that is set does not make
# the bot deaf. What was signed is remembered for longer than it is taken.
STALE_SECONDS = 300
AHEAD_SECONDS = 300
# A signature is good for as long as its timestamp; so long its answer is remembered.
REMEMBER_SECONDS = STALE_SECONDS + AHEAD_SECONDS + 5
REMEMBERED = 50_000
# Seconds since 1970; no longer, as Python declines to read numbers of thousands of digits.
TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)
# Set by proxies, which make everybody look like this machine; so does what begins with the next.
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
# What each click, command and event has for itself alone.
ONCE = re.compile(r"trigger_id|event_id")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Ready = Callable[[], Awaitable[str | None]]
Scrape = Callable[[], Awaitable[bytes]]
Besides = Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Answered:
    """What Bolt answered, as it is given again to the same request."""

    status: int
    body: str
    kind: str


ACKNOWLEDGED = Answered(200, "", "text/plain")


class BrokenError(Exception):
    """A fault of ours: it is logged, counted and a 500."""


class SlackEndpoint:
    """`POST /slack/events`: what Slack signed goes to Bolt, everything else is 401.

    A request that comes again with the same signature is given the same answer, and does nothing:
    a proxy sent it twice, or somebody who read it on its way.

    Args:
        app: Bolt.
        signing_secret: None in Socket Mode, where all is refused.
        metrics: Counts faults.
        clock: For the age of what is signed.
        health: Told of every request, and why it was refused.
    """

    def __init__(
        self,
        app: AsyncApp,
        signing_secret: str | None,
        metrics: Metrics,
        clock: Clock,
        health: Health,
    ) -> None:
        self._app = app
        self._health = health
        self._verifier = SignatureVerifier(signing_secret) if signing_secret else None
        self._metrics = metrics
        self._answers: SingleFlight[str, Answered] = SingleFlight(
            TTLCache(REMEMBERED, REMEMBER_SECONDS, timer=clock.monotonic)
        )

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request of Slack's."""
        try:
            body = (await _body(request)).decode("utf-8")
        except (UnicodeDecodeError, web.RequestPayloadError):
            return self._refused(Refusal.MALFORMED, "", "unreadable")
        except TimeoutError:
            return web.Response(status=408, text="too slow")
        except ConnectionError:
            # Slack gave up while we could not listen; nobody reads this.
            return web.Response(status=400, text="gone")
        refusal = self._refusal(request, body)
        if refusal is not None:
            return self._refused(refusal, body, "unsigned or malformed")
        bolt_request = _bolt_request(request, body)
        if bolt_request is None:
            return self._refused(Refusal.MALFORMED, body, "malformed")
        self._health.note_request(None, body)
        return await self._answer(request, body, bolt_request)

    def _refused(self, refusal: Refusal, body: str, text: str) -> web.Response:
        self._metrics.count_refused(refusal)
        self._health.note_request(refusal, body)
        return web.Response(status=401, text=text)

    async def _answer(
        self, request: web.Request, body: str, bolt_request: AsyncBoltRequest
    ) -> web.Response:
        """Answer what Slack sent, acting on it once."""

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
        """Why it is not Slack's, or None when it is."""
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
    """Return a header; "" where it is not there, or more than once.

    Of two signatures one could be verified, and the replay be known by the other.
    """
    values = request.headers.getall(name, [])
    return values[0] if len(values) == 1 else ""


async def _body(request: web.Request) -> bytes:
    """Read the body; most have come together with their headers, and need no time limit.

    Raises:
        TimeoutError: It comes too slowly.
    """
    if request.content.is_eof():
        return await request.read()
    async with asyncio.timeout(BODY_SECONDS):
        return await request.read()


def _bolt_request(request: web.Request, body: str) -> AsyncBoltRequest | None:
    """Return the request for Bolt, or None where it is of a form that Slack never sends."""
    payload = _payload(request, body)
    if payload is None:
        return None
    headers = {name: [value] for name, value in request.headers.items()}
    try:
        # In the other mode Bolt reads the body once more, and finds nothing in a command whose
        # text has the word "payload".
        return AsyncBoltRequest(body=payload, headers=headers, mode="socket_mode")  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001 - Bolt reads fields before it looks for them
        log.warning("slack.malformed", error=type(error).__name__)
        return None


def _payload(request: web.Request, body: str) -> dict[str, Any] | None:
    """What Slack sent, in one of its two forms; None when it is of neither, or lacks a part."""
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
    """Read JSON, and no `NaN` or `Infinity`, which are none."""
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> object:
    raise ValueError(name)


def _is_whole(payload: object) -> bool:
    """Whether a payload has what Slack always sends with its type, and Bolt reads unseen."""
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
    """Whether something was done that Bolt can look up."""
    if not isinstance(actions, list) or not actions or not isinstance(actions[0], dict):
        return False
    return isinstance(actions[0].get("action_id"), str)


def _is_named(view: Mapping[str, Any]) -> bool:
    """Whether a view has the names that Bolt looks it up by once it is sent or closed."""
    return isinstance(view.get("type"), str) and isinstance(view.get("callback_id"), str)


@web.middleware
async def _plain_bodies_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Slack never compresses; what is small on its way and large in memory is not let in."""
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in PLAIN:
        return web.Response(status=415, text="compressed bodies are not taken")
    return await handler(request)


async def _without_version(_request: web.Request, response: web.StreamResponse) -> None:
    """Do not tell everybody which versions run here."""
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
        slack: None in Socket Mode, where nothing comes in over HTTP.
        ready: Returns None, or the one word that says what is missing.
        scrape: Returns the metrics.
        metrics_token: What `/metrics` wants as a bearer; None to answer this machine only.
        besides: Returns what is broken and no reason to be unready.
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
        page = await scrape()
        kind = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        # In pieces: to hand over megabytes at once would keep others waiting.
        pieces = _in_pieces(page) if len(page) > PIECE_BYTES else page
        return web.Response(body=pieces, headers={**kind, "Content-Length": str(len(page))})

    server = web.Application(client_max_size=MOST_BYTES, middlewares=[_plain_bodies_only])
    server.on_response_prepare.append(_without_version)
    server.router.add_get("/healthz", healthz)
    server.router.add_get("/readyz", readyz)
    server.router.add_get("/metrics", metrics)
    if slack is not None:
        server.router.add_post("/slack/events", slack.handle)
    return server


async def _in_pieces(page: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(page), PIECE_BYTES):
        yield page[start : start + PIECE_BYTES]


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
    """Whether somebody else may have sent it: proxies and tunnels run on this machine too.

    They name who they speak for, or pass on the name by which they were called, or speak HTTP/1.0
    (nginx, unless it is told otherwise).
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
