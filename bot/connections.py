"""Connections: how many there may be, how long each may be silent, and what is logged of them.

aiohttp bounds none of this by itself. Whoever reaches the port could hold every file of the
process, or fill the disk with tracebacks of requests that are no HTTP.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

log = structlog.get_logger(__name__)

# From the first byte to a whole request line with headers.
FIRST_REQUEST_SECONDS = 10.0
# Between two requests of one connection. Load balancers keep theirs for 60 s.
IDLE_SECONDS = 75.0
# What is left of a body that was not wanted is read for so long, and not decompressed.
DRAIN_SECONDS = 1.0
MOST_CONNECTIONS = 500
# Files that are left to the database, to the services and to Slack.
RESERVED_FILES = 100
MOST_FILES = 65_536
NO_FILES_PAUSE_SECONDS = 60.0
NO_FILES = "socket.accept() out of system resource"
BAD_REQUEST = 400
FAULT = 500

Count = Callable[[str], None]


class Connections:
    """The open connections of one listener, oldest first.

    Args:
        most: With more than this many, the oldest that is not being answered is closed.
        count: Told a word for each request that is no HTTP.
    """

    def __init__(self, most: int, count: Count) -> None:
        self._most = most
        self.count = count
        self._open: dict[Connection, None] = {}

    def opened(self, connection: "Connection") -> None:
        """Make room for a new connection, if need be at the cost of an old one."""
        if len(self._open) >= self._most:
            self._victim().force_close()
        self._open[connection] = None

    def closed(self, connection: "Connection") -> None:
        """Forget a connection that is no more."""
        self._open.pop(connection, None)

    def _victim(self) -> "Connection":
        """Who never asked goes first, then who asks nothing now, then the oldest."""
        silent = (one for one in self._open if not one.has_asked)
        idle = (one for one in self._open if not one.is_busy)
        victim = next(silent, None) or next(idle, None) or next(iter(self._open))
        self.closed(victim)
        return victim


class Connection(web.RequestHandler):
    """One connection; errors of who sends are a short 400, and a line of log at DEBUG only."""

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
        """Whether a whole request ever came."""
        return self._request_count > 0

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self._request_in_progress

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; who sends no request in time is hung up on."""
        super().connection_made(transport)
        self._connections.opened(self)
        loop = asyncio.get_running_loop()
        loop.call_later(FIRST_REQUEST_SECONDS, self._hang_up_on_the_silent)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End."""
        self._connections.closed(self)
        super().connection_lost(exc)

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
        """Answer what is no HTTP without repeating any of it."""
        if status >= FAULT:
            return super().handle_error(request, status, exc, message)
        self._malformed(exc)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is on its way already")
        answer = web.Response(
            status=status, text="malformed request", headers={"Server": "Gatehouse"}
        )
        answer.force_close()
        return answer

    def log_exception(self, *args: Any, **kw: Any) -> None:  # noqa: ANN401 - as aiohttp has it
        """Log a fault of ours; what senders do wrong is counted."""
        error = kw.get("exc_info")
        if isinstance(error, HttpProcessingError | web.RequestPayloadError | ConnectionError):
            self._malformed(error)
        else:
            super().log_exception(*args, **kw)

    def _malformed(self, error: BaseException | None) -> None:
        self._connections.count("malformed")
        log.debug("http.malformed", error=type(error).__name__)


class Site(web.BaseSite):
    """Listens on an address, with bounded connections."""

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
        """Begin to listen.

        Raises:
            OSError: The address is taken, or is none of this machine.
        """
        await super().start()
        server = self._runner.server
        if server is None:
            raise RuntimeError("the runner is not set up")
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(server, self._connections),
            self._host,
            self._port,
            backlog=self._backlog,
        )


def connections_for(files: int, count: Count) -> Connections:
    """Return the bounds for a process that may open so many files."""
    return Connections(max(16, min(MOST_CONNECTIONS, files - RESERVED_FILES)), count)


def raise_file_limit() -> int:
    """Take as many open files as the system lets this process have; return how many."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def tell_of_no_files_once_in_a_while(loop: asyncio.AbstractEventLoop) -> None:
    """Log that no file is left once a minute: asyncio says so thousands of times a second."""
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
                reason="The limit of open files is reached: new connections wait.",
            )

    loop.set_exception_handler(handle)
