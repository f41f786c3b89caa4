"""`POST /slack/events`: passes requests signed by Slack to Bolt and refuses all others.

Bolt verifies signatures too, but only after parsing the body, and would respond to malformed
requests with 500.
"""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial, reduce
from operator import getitem
from typing import Any
from urllib.parse import parse_qsl

import structlog
from aiohttp import web
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.request import payload_utils
from slack_sdk.signature import SignatureVerifier

from bot.metrics import Metrics, Refusal
from bot.ops.clock import Clock
from bot.server import MOST_BYTES, SIGNATURE, TOO_LONG, malformed
from handlers.bolt import slack_request

log = structlog.get_logger(__name__)

MOST_FIELDS = 100
COMMAND_FIELDS = frozenset({"command", "ssl_check"})
BODY_SECONDS = 5.0
# Slack rarely sends larger bodies. Only a few of these are read at the same time, because anyone
# who can reach the port can send them.
LARGE_BYTES = 64 * 1024
MOST_LARGE_AT_ONCE = 16
# Five minutes in either direction, as in Slack's own libraries, so that Slack's requests are still
# accepted after a clock adjustment.
VALID_SECONDS = 300
# Where each type of payload has the name by which Bolt finds its listener.
NAME_AT: Mapping[str, tuple[Any, ...]] = {
    "block_actions": ("actions", 0, "action_id"),
    "block_suggestion": ("action_id",),
    "view_submission": ("view", "callback_id"),
    "event_callback": ("event", "type"),
    "shortcut": ("callback_id",),
    "message_action": ("callback_id",),
}
# What Bolt reads of each payload to call a listener.
BOLT_READS = (
    payload_utils.to_options,
    payload_utils.to_shortcut,
    payload_utils.to_action,
    payload_utils.to_view,
    payload_utils.to_event,
    payload_utils.to_message,
    payload_utils.to_step,
)
# The interval at which the counts of refused requests are logged.
LOG_SECONDS = 60.0
# Raises ValueError for `NaN` and `Infinity`, because they aren't valid JSON.
_json = partial(json.loads, parse_constant=int)
# Seconds since 1970. The length is limited, because Python refuses to parse thousands of digits.
TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)


class Refusals:
    """Counts refused requests, and logs the totals at most once a minute."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._unlogged: Counter[str] = Counter()
        self._log_at = clock.monotonic()

    def count(self, refusal: Refusal) -> None:
        """Count a refused request."""
        self._metrics.refused.labels(refusal).inc()
        self._unlogged[refusal] += 1
        if self._clock.monotonic() >= self._log_at:
            log.warning("slack.refused", requests=dict(self._unlogged))
            self._unlogged.clear()
            self._log_at = self._clock.monotonic() + LOG_SECONDS

    def misdirected(self) -> None:
        """Count a request of Slack's for another path."""
        self.count(Refusal.WRONG_PATH)

    def unreadable(self, status: int) -> web.Response:
        """Return the response to a request that isn't valid HTTP. Count too long headers."""
        if status == TOO_LONG:
            self.count(Refusal.LONG_HEADER)
        return malformed(status)


class SlackEndpoint:
    """Passes signed requests to Bolt. Without a signing secret, refuses all requests."""

    def __init__(self, app: AsyncApp, signing_secret: str | None, refusals: Refusals) -> None:
        self._app = app
        self._refusals = refusals
        self._verifier = SignatureVerifier(signing_secret) if signing_secret else None
        self._reading_large = asyncio.Semaphore(MOST_LARGE_AT_ONCE)

    async def handle(self, request: web.Request) -> web.Response:
        """Return Bolt's response to a request, or an error response if the request is invalid."""
        try:
            # If the body arrived with the headers, no time limit is needed.
            async with asyncio.timeout(None if request.content.is_eof() else BODY_SECONDS):
                body = (await self._read(request)).decode("utf-8")
        except (UnicodeDecodeError, web.RequestPayloadError):
            return self._refused(Refusal.MALFORMED, "unreadable")
        except TimeoutError:
            return web.Response(status=408, text="too slow")
        except (ConnectionError, RuntimeError):
            # Slack timed out before the request was read, so nobody sees this response. aiohttp
            # raises RuntimeError if the connection was closed before the first read.
            return web.Response(status=400, text="gone")
        refusal = self._refusal(request, body)
        parsed = None if refusal else _parsed(request, body)
        if parsed is None:
            return self._refused(refusal or Refusal.MALFORMED, "unsigned or malformed")
        answer = await self._app.async_dispatch(parsed)
        kind = answer.headers["content-type"][0].partition(";")[0]
        return web.Response(status=answer.status, text=answer.body, content_type=kind)

    async def _read(self, request: web.Request) -> bytes:
        length = request.content_length or 0
        if length > MOST_BYTES:
            raise web.HTTPRequestEntityTooLarge(MOST_BYTES, length)
        start = b""
        # A client that announces a large body but doesn't send it keeps nobody else out.
        while len(start) <= LARGE_BYTES and not request.content.at_eof():
            start += await request.content.readany()
        if request.content.at_eof():
            return start
        async with self._reading_large:
            return start + await request.read()

    def _refused(self, refusal: Refusal, text: str) -> web.Response:
        self._refusals.count(refusal)
        return web.Response(status=401, text=text)

    def _refusal(self, request: web.Request, body: str) -> Refusal | None:
        timestamp = _only(request, "X-Slack-Request-Timestamp")
        signature = _only(request, SIGNATURE)
        if self._verifier is None or not TIMESTAMP.fullmatch(timestamp) or not signature:
            return Refusal.UNSIGNED
        age = time.time() - int(timestamp)
        if abs(age) > VALID_SECONDS:
            return Refusal.STALE
        if not signature.isascii() or not self._verifier.is_valid(body, timestamp, signature):
            return Refusal.WRONG_SIGNATURE
        return None


def _only(request: web.Request, name: str) -> str:
    values = request.headers.getall(name, [])
    return values[0] if len(values) == 1 else ""


def _parsed(request: web.Request, body: str) -> AsyncBoltRequest | None:
    """Return the request in Bolt's format, or None if Slack would never send such a request."""
    is_command = False
    try:
        # Slack signs the body, but not the Content-Type.
        if body.startswith("{"):
            payload = _json(body)
        else:
            form = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=MOST_FIELDS))
            is_command = "payload" not in form and not form.keys().isdisjoint(COMMAND_FIELDS)
            payload = form if is_command else _json(form["payload"])
        if not is_command:
            name = reduce(getitem, NAME_AT.get(payload["type"], ("type",)), payload)
            view, event = payload.get("view"), payload.get("event")
            is_readable = isinstance(view, dict | None) and isinstance(event, dict | None)
            # With a field `command`, Bolt would take the payload for a slash command.
            if "command" in payload or not is_readable or not isinstance(name, str):
                return None
        parsed = slack_request(payload, {**request.headers}, body)
        for read in BOLT_READS:
            read(parsed.body)
    except Exception as error:  # noqa: BLE001 - Bolt reads fields without checking that they exist
        log.warning("slack.malformed", error=type(error).__name__)
        return None
    return parsed
