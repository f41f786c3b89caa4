"""The HTTP server for Slack's requests, health, readiness and metrics, with connection limits.

aiohttp doesn't limit the number of connections or their idle time. Without limits, anyone who can
reach the port could exhaust the process's file descriptors, or fill the disk with tracebacks for
invalid HTTP requests.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from aiohttp import HttpVersion11, web
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.web_protocol import _ErrInfo
from yarl import URL

from bot.ops.secrets import is_loopback

MOST_BYTES = 1024 * 1024
SIGNATURE = "X-Slack-Signature"
# Prefixes of headers that proxies add. Behind a proxy, every client looks local.
FORWARDED = (
    "forwarded",
    "via",
    "x-forwarded",
    "x-real-ip",
    "x-client-ip",
    "x-original-host",
    "true-client-ip",
    "x-envoy-",
    "cf-",
    "cdn-",
)
# The time limit from opening a connection to receiving all headers of the first request.
FIRST_REQUEST_SECONDS = 10.0
# The time limit for an idle connection. Load balancers keep idle connections open for 60 s.
IDLE_SECONDS = 75.0
# The time limit for reading the rest of an unwanted request body, which isn't decompressed.
DRAIN_SECONDS = 1.0
# aiohttp stops receiving when a connection has twice as many bytes that nobody has read yet.
UNREAD_BYTES = 16 * 1024
# The maximum number of connections for each of the two listeners. Processes often have only 1,024
# file descriptors, and the database, the services and Slack need some too.
MOST_CONNECTIONS = 400
TOO_LONG = 431
FAULT = 500

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_server(
    slack: Handler | None,
    ready: Callable[[], Awaitable[str | None]],
    scrape: Callable[[], Awaitable[bytes]],
    metrics_token: str | None,
    besides: Callable[[], Sequence[str]] = list,
    misdirected: Callable[[], None] = lambda: None,
) -> web.Application:
    """Return the aiohttp application. In Socket Mode, `slack` is None.

    `ready` returns the name of the part that isn't ready, or None. `besides` returns problems that
    don't affect readiness. Without `metrics_token`, only this machine can read the metrics.
    `misdirected` is called for a request with Slack's signature for another path or method.
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
        if metrics_token is not None:
            given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
            if not hmac.compare_digest(given, f"Bearer {metrics_token}".encode()):
                challenge = {"WWW-Authenticate": "Bearer"}
                return web.Response(status=401, text="METRICS_TOKEN is required", headers=challenge)
        elif not is_local(request):
            return web.Response(status=403, text="set METRICS_TOKEN to allow remote access")
        kind = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=await scrape(), headers=kind)

    server = web.Application(client_max_size=MOST_BYTES)
    server.on_response_prepare.append(partial(_prepare, misdirected))
    server.router.add_get("/healthz", healthz)
    server.router.add_get("/readyz", readyz)
    server.router.add_get("/metrics", metrics)
    if slack is not None:
        server.router.add_post("/slack/events", slack)
    return server


async def _prepare(
    misdirected: Callable[[], None], request: web.Request, response: web.StreamResponse
) -> None:
    response.headers["Server"] = "Gatehouse"
    # aiohttp found no route.
    if request.match_info.http_exception is not None and SIGNATURE in request.headers:
        misdirected()


def is_local(request: web.Request) -> bool:
    """Return True if the request is from this machine and shows no sign of a proxy or tunnel.

    Proxies and tunnels add forwarding headers, pass on the original host name, or (like nginx) use
    HTTP/1.0.
    """
    is_forwarded = any(name.lower().startswith(FORWARDED) for name in request.headers)
    try:
        host = URL(f"http://{request.headers.get('Host', '')}").host or ""
    except ValueError:
        return False
    if is_forwarded or request.version < HttpVersion11:
        return False
    addresses = (request.remote or "", host)
    return all(is_loopback(address.removeprefix("::ffff:")) for address in addresses)


def malformed(status: int) -> web.Response:
    """Return the response to a request that isn't valid HTTP."""
    return web.Response(status=status, text="malformed request")


class Site(web.BaseSite):
    """A listening address that accepts at most `most` connections.

    `unreadable` returns the response to requests that aren't valid HTTP.
    """

    def __init__(
        self,
        runner: web.BaseRunner,
        address: tuple[str, int],
        most: int,
        unreadable: Callable[[int], web.Response] = malformed,
    ) -> None:
        super().__init__(runner)
        self.unreadable = unreadable
        self._address = address
        self._most = most
        self.open: dict[HttpConnection, None] = {}
        """The open connections, oldest first."""

    @property
    def name(self) -> str:
        """A name for aiohttp's messages, which the bot doesn't show."""
        return ""

    async def start(self) -> None:
        """Start listening.

        Raises:
            OSError: The address can't be used.
        """
        await super().start()
        server = self._runner.server
        if server is None:
            raise RuntimeError("the runner has not been set up")
        self._server = await asyncio.get_running_loop().create_server(
            lambda: HttpConnection(server, self), *self._address, backlog=self._backlog
        )

    def opened(self, connection: "HttpConnection") -> None:
        """Add a connection. If the limit is reached, close another connection first."""
        if len(self.open) >= self._most:
            # Prefer to close connections without requests, then idle connections, then the oldest.
            victim = min(self.open, key=lambda known: (known.is_busy, known.has_asked))
            del self.open[victim]
            victim.force_close()
        self.open[connection] = None


class HttpConnection(web.RequestHandler):
    """An HTTP connection that briefly responds to client errors and doesn't log them."""

    def __init__(self, server: web.Server, site: Site) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=DRAIN_SECONDS,
            read_bufsize=UNREAD_BYTES,
            auto_decompress=False,
        )
        self._site = site
        make_request = server.request_factory

        def make_last_if_chunked(message: RawRequestMessage, *parts: Any) -> web.BaseRequest:  # noqa: ANN401 - as in aiohttp
            # aiohttp would take a trailer for a header of the connection's next request, which can
            # be somebody else's behind a proxy.
            if message.chunked:
                message = message._replace(should_close=True)
            return make_request(message, *parts)

        self._request_factory = make_last_if_chunked

    @property
    def has_asked(self) -> bool:
        """True once the headers of a request have arrived."""
        return self._request_count > 0

    @property
    def is_busy(self) -> bool:
        """True while a request is being handled."""
        return self._request_in_progress

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the time limit for the first request."""
        super().connection_made(transport)
        self._site.opened(self)
        self._first_deadline = asyncio.get_running_loop().call_later(
            FIRST_REQUEST_SECONDS, lambda: None if self.has_asked else self.force_close()
        )

    def data_received(self, data: bytes) -> None:
        """Parse the data, unless an earlier part wasn't valid HTTP.

        aiohttp would parse the same invalid data again for each chunk that is read.
        """
        if self._messages and isinstance(self._messages[-1][0], _ErrInfo):
            return
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the connection and the data received on it."""
        self._first_deadline.cancel()
        self._site.open.pop(self, None)
        super().connection_lost(exc)
        # A parser error in this queue would keep the received bytes in memory.
        self._messages.clear()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = FAULT,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Respond to invalid HTTP without repeating any data from the request."""
        if status >= FAULT:
            return super().handle_error(request, status, exc, message)
        if exc is not None:
            exc.__traceback__ = exc.__context__ = None
        if request.writer.output_size > 0:
            raise ConnectionError("a response has already been started")
        is_long = isinstance(exc, LineTooLong)
        answer = self._site.unreadable(TOO_LONG if is_long else status)
        answer.headers["Server"] = "Gatehouse"
        answer.force_close()
        return answer

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send a response, and release the request's body.

        An error's traceback refers to the frames that read the body, which refer to the error.
        Python's garbage collector rarely looks for such cycles, so bodies would fill the memory.
        """
        for error in (resp, request.content.exception()):
            if isinstance(error, BaseException):
                error.__traceback__ = None
        return await super().finish_response(request, resp, start_time)

    def log_exception(self, *args: Any, **kw: Any) -> None:  # noqa: ANN401 - as in aiohttp
        """Log the bot's own errors as usual, but not those of clients."""
        error = kw.get("exc_info")
        if isinstance(error, HttpProcessingError | web.RequestPayloadError | ConnectionError):
            error.__traceback__ = None
        else:
            super().log_exception(*args, **kw)
