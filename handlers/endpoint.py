"""`POST /slack/events`: passes requests signed by Slack to Bolt and refuses all others.

No listeners are registered with Bolt. Instead, middleware calls `answering.receive`, which finds
Gatehouse's own listeners (docs/decisions/0006).
"""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from urllib.parse import parse_qsl

import structlog
from aiohttp import web
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.middleware.async_middleware import AsyncMiddleware
from slack_bolt.response import BoltResponse
from slack_sdk.signature import SignatureVerifier

from bot.app import Gatehouse
from bot.metrics import Metrics, Refusal
from bot.ops.clock import Clock
from bot.ops.current_delivery import following
from bot.ops.logs import bolt_logger
from handlers.answering import receive
from handlers.listeners import LISTENERS, read, surface_of

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
# The interval at which the counts of refused requests are logged.
LOG_SECONDS = 60.0
# Raises ValueError for `NaN` and `Infinity`, because they aren't valid JSON.
_json = partial(json.loads, parse_constant=int)
# Seconds since 1970. The length is limited, because Python refuses to parse thousands of digits.
TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)


class GatehouseApp(AsyncApp):
    """A Bolt app that handles all requests in middleware and measures acknowledgement times.

    Bolt responds to Slack's URL and SSL checks, ignores events caused by the bot, and runs Socket
    Mode. It doesn't call Slack to verify the token, because the token was checked at startup.
    """

    def __init__(self, bot: Gatehouse) -> None:
        async def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
            return AuthorizeResult(
                enterprise_id=enterprise_id,
                team_id=team_id,
                bot_token=bot.settings.slack_bot_token.get_secret_value(),
                bot_user_id=bot.people.bot_user_id,
            )

        super().__init__(
            # Without a name, Bolt searches all loaded modules for the file that created the app.
            name="gatehouse",
            client=bot.web,
            authorize=authorize,
            attaching_function_token_enabled=False,
            # Bolt's loggers use this logger's level. At lower levels, Bolt warns about tokens that
            # it should ignore, and logs the bodies of forged requests.
            logger=bolt_logger(),
            # `SlackEndpoint` verifies signatures. Bolt would respond to malformed ones with 500.
            request_verification_enabled=False,
            signing_secret="verified by SlackEndpoint",  # noqa: S106 - not a secret
        )
        self._bot = bot
        self.use(_Receiver(bot))
        bot.metrics.expect_commands(
            {"slack.request", *(listener.name for listener in LISTENERS.values())}
        )

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        """Return Bolt's response to a request from Slack, and record how long it took."""
        started = self._bot.clock.monotonic()
        # Check only payloads with a trigger for repeats, because events have IDs. In Socket Mode,
        # payloads have no signature, but repeats have the same trigger.
        trigger = str(req.body.get("trigger_id", ""))
        signatures = req.headers.get("x-slack-signature", [trigger])
        with following(signatures[0] if trigger else ""):
            answer = await super().async_dispatch(req)
        self._bot.metrics.ack_seconds.observe(self._bot.clock.monotonic() - started)
        return answer


class _Receiver(AsyncMiddleware):
    """Passes requests to `receive`.

    This is a class because, for a function, Bolt would read the arguments from fields that might be
    missing.
    """

    def __init__(self, bot: Gatehouse) -> None:
        self._bot = bot

    async def async_process(
        self,
        *,
        req: AsyncBoltRequest,
        resp: BoltResponse,  # noqa: ARG002 - Bolt's signature
        next: Callable[[], Awaitable[BoltResponse]],  # noqa: A002, ARG002 - Bolt's signature
    ) -> BoltResponse:
        return await receive(self._bot, req.context.ack, req.body)


class SlackEndpoint:
    """Passes signed requests to Bolt. Without a signing secret, refuses all requests."""

    def __init__(
        self, app: AsyncApp, signing_secret: str | None, metrics: Metrics, clock: Clock
    ) -> None:
        self._app = app
        self._clock = clock
        self._unlogged: Counter[str] = Counter()
        self._log_at = clock.monotonic()
        self._verifier = SignatureVerifier(signing_secret) if signing_secret else None
        self._metrics = metrics
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
        except ConnectionError:
            # Slack timed out before the request was read, so nobody sees this response.
            return web.Response(status=400, text="gone")
        refusal = self._refusal(request, body)
        slack_request = None if refusal else _bolt_request(request, body)
        if slack_request is None:
            return self._refused(refusal or Refusal.MALFORMED, "unsigned or malformed")
        try:
            answer = await self._app.async_dispatch(slack_request)
        except Exception:
            log.exception("slack.broken")
            answer = BoltResponse(status=HTTPStatus.INTERNAL_SERVER_ERROR)
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            # Bolt has already logged the exception that a listener raised before acknowledging.
            self._metrics.count_command("slack.request", "broken")
            return web.Response(status=500, text="broken")
        kind = answer.headers["content-type"][0].partition(";")[0]
        return web.Response(status=answer.status, text=answer.body, content_type=kind)

    async def _read(self, request: web.Request) -> bytes:
        length = request.content_length
        if length is not None and length <= LARGE_BYTES:
            return await request.read()
        async with self._reading_large:
            return await request.read()

    def _refused(self, refusal: Refusal, text: str) -> web.Response:
        """Count a refused request, log the totals at most once a minute, and respond with 401."""
        self._metrics.refused.labels(refusal).inc()
        self._unlogged[refusal] += 1
        if self._clock.monotonic() >= self._log_at:
            log.warning("slack.refused", requests=dict(self._unlogged))
            self._unlogged.clear()
            self._log_at = self._clock.monotonic() + LOG_SECONDS
        return web.Response(status=401, text=text)

    def _refusal(self, request: web.Request, body: str) -> Refusal | None:
        timestamp = _only(request, "X-Slack-Request-Timestamp")
        signature = _only(request, "X-Slack-Signature")
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


def _bolt_request(request: web.Request, body: str) -> AsyncBoltRequest | None:
    """Return the request in Bolt's format, or None if Slack would never send such a request."""
    is_command = False
    try:
        if request.content_type == "application/json":
            payload = _json(body)
        else:
            form = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=MOST_FIELDS))
            is_command = "payload" not in form and not form.keys().isdisjoint(COMMAND_FIELDS)
            payload = form if is_command else _json(form["payload"])
    except (KeyError, ValueError, RecursionError):
        return None
    if not isinstance(payload, dict):
        return None
    # Bolt reads the content of each field that is present, and fails if a field is null.
    given = {name: value for name, value in payload.items() if value is not None}
    surface, parts = surface_of(given), (given.get(name, {}) for name in ("view", "event"))
    is_whole = isinstance(given.get("type"), str) and all(isinstance(part, dict) for part in parts)
    is_named = "event" in given if surface == "event" else surface is None or read(given).name
    if not (is_command or (is_whole and is_named)):
        return None
    headers = {name: [value] for name, value in request.headers.items()}
    try:
        # In HTTP mode, Bolt would parse the body again, and would find nothing in a command if its
        # text contains the word "payload".
        return AsyncBoltRequest(body=given, headers=headers, mode="socket_mode")  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001 - Bolt reads fields without checking that they exist
        log.warning("slack.malformed", error=type(error).__name__)
        return None
