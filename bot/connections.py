"""Limits on the number of connections, their idle time, and the logging of their errors.

aiohttp has no such limits. Anyone who can reach the port could exhaust the process's file
descriptors, or fill the disk with tracebacks for requests that aren't HTTP.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.web_protocol import _ErrInfo

log = structlog.get_logger(__name__)

# From the first byte to the complete request line and headers.
FIRST_REQUEST_SECONDS = 10.0
# Between two requests on a connection. Load balancers keep theirs for 60 s.
IDLE_SECONDS = 75.0
# The rest of an unwanted body is read for this long, without decompressing it.
DRAIN_SECONDS = 1.0
MOST_CONNECTIONS = 500
# Files reserved for the database, the services and Slack.
RESERVED_FILES = 100
MOST_FILES = 65_536
NO_FILES_PAUSE_SECONDS = 60.0
NO_FILES = "socket.accept() out of system resource"
BAD_REQUEST = 400
TOO_LONG = 431
FAULT = 500

Count = Callable[[str], None]


def _unreadable(status: int) -> web.Response:
    return web.Response(status=status, text="malformed request")


class Connections:
    """The open connections of one listener, oldest first.

    Args:
        most: Beyond this number, the oldest idle connection is closed.
        count: Called with a word for each request that isn't HTTP.
    """

    def __init__(self, most: int, count: Count) -> None:
        self.most = most
        self.count = count
        self._open: dict[Connection, None] = {}
        self.unreadable: Callable[[int], web.Response] = _unreadable
        """Creates the response with a status to a request that isn't valid HTTP."""

    def opened(self, connection: "Connection") -> None:
        """Add a connection, closing an old one if there are too many."""
        if len(self._open) >= self.most:
            self._victim().force_close()
        self._open[connection] = None

    def closed(self, connection: "Connection") -> None:
        """Remove a closed connection."""
        self._open.pop(connection, None)

    def _victim(self) -> "Connection":
        """Return a connection without any request, or else an idle one, or else the oldest."""
        silent = (connection for connection in self._open if not connection.has_asked)
        idle = (connection for connection in self._open if not connection.is_busy)
        victim = next(silent, None) or next(idle, None) or next(iter(self._open))
        self.closed(victim)
        return victim


class Connection(web.RequestHandler):
    """One connection; a client error gets a short 400, and is logged at DEBUG only."""

    def __init__(self, server: web.Server, connections: Connections) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=DRAIN_SECONDS,
            auto_decompress=False,
        )
        self._connections = connections

    @property
    def has_asked(self) -> bool:
        """True once a complete request has arrived."""
        return self._request_count > 0

    @property
    def is_busy(self) -> bool:
        """True while a request is being handled."""
        return self._request_in_progress

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the time limit for the first request."""
        super().connection_made(transport)
        self._connections.opened(self)
        loop = asyncio.get_running_loop()
        self._first_deadline = loop.call_later(FIRST_REQUEST_SECONDS, self._hang_up_on_the_silent)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the connection and the data received on it."""
        self._first_deadline.cancel()
        self._connections.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received data."""
        super().data_received(data)
        self._forget_tracebacks()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the response; parse the data that followed an upgrade request."""
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._forget_tracebacks()

    def _forget_tracebacks(self) -> None:
        """Free malformed data when its connection closes, not at the next garbage collection.

        aiohttp queues the parser's error. Its traceback refers to the frame with the received
        bytes and the queue: a cycle of up to 256 KiB per connection.
        """
        for message, _ in self._messages:
            if isinstance(message, _ErrInfo):
                message.exc.__traceback__ = message.exc.__context__ = None

    def _hang_up_on_the_silent(self) -> None:
        if not self.has_asked:
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = FAULT,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Respond to a request that isn't HTTP, without repeating any of its data."""
        if status >= FAULT:
            return super().handle_error(request, status, exc, message)
        self._malformed(exc)
        if request.writer.output_size > 0:
            raise ConnectionError("a response has already been started")
        is_long = isinstance(exc, LineTooLong)
        answer = self._connections.unreadable(TOO_LONG if is_long else status)
        answer.headers["Server"] = "Gatehouse"
        answer.force_close()
        return answer

    def log_exception(self, *args: Any, **kw: Any) -> None:  # noqa: ANN401 - as aiohttp has it
        """Log our own errors; client errors are only counted."""
        error = kw.get("exc_info")
        if isinstance(error, HttpProcessingError | web.RequestPayloadError | ConnectionError):
            self._malformed(error)
        else:
            super().log_exception(*args, **kw)

    def _malformed(self, error: BaseException | None) -> None:
        self._connections.count("malformed")
        log.debug("http.malformed", error=type(error).__name__)


class Site(web.BaseSite):
    """Listens on an address, with limited connections."""

    def __init__(
        self, runner: web.BaseRunner, host: str, port: int, connections: Connections
    ) -> None:
        super().__init__(runner)
        self._host, self._port = host, port
        self._connections = connections

    @property
    def name(self) -> str:
        """The address."""
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        """Start listening.

        Raises:
            OSError: The address is in use, or doesn't belong to this machine.
        """
        await super().start()
        server = self._runner.server
        if server is None:
            raise RuntimeError("the runner has not been set up")
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(server, self._connections),
            self._host,
            self._port,
            backlog=self._backlog,
        )


def connections_for(files: int, count: Count) -> Connections:
    """Return the connection limits for a process that may open this many files."""
    return Connections(max(16, min(MOST_CONNECTIONS, files - RESERVED_FILES)), count)


def raise_file_limit() -> int:
    """Raise the limit on open files to the system's maximum; return it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def tell_of_no_files_once_in_a_while(loop: asyncio.AbstractEventLoop) -> None:
    """Log once a minute that no file descriptor is left; asyncio would log it in a tight loop."""
    next_at = 0.0

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal next_at
        if context.get("message") != NO_FILES:
            loop.default_exception_handler(context)
            return
        if loop.time() >= next_at:
            next_at = loop.time() + NO_FILES_PAUSE_SECONDS
            log.error(
                "http.no_files_left",
                reason="The open file limit has been reached: new connections have to wait.",
            )

    loop.set_exception_handler(handle)
