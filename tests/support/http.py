"""Provides local web servers, fake responses, and helpers for tests of the HTTP client."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from aiohttp import ClientResponse, ClientSession, StreamReader, hdrs, web
from aioresponses import aioresponses

from bot.ops.redaction import Redactor
from bot.organizations.rules import OrganizationKey
from bot.services.calls import CallCause, Observed, ReportedLimits, ServiceCall
from bot.services.errors import RateLimited
from bot.services.http import OpenPermit, Permit, ServiceHttp, open_session, unlimited
from tests.support.clock import JumpingClock

SELF_SIGNED = Path(__file__).with_name("self_signed.pem")


class Bench:
    """Sets up a `ServiceHttp` that uses a fake clock."""

    def __init__(self, session: ClientSession, total_seconds: float) -> None:
        self.clock = JumpingClock()
        self.observed: list[Observed] = []
        self.redactor = Redactor()
        self.http = ServiceHttp(
            session,
            self.redactor,
            self.observed.append,
            self.clock,
            total_seconds=total_seconds,
        )

    async def request(self, call: ServiceCall, permits: OpenPermit = unlimited) -> bytes:
        """Make a call, and return the raw response body."""
        return await self.http.request(call, lambda body: body, permits)


@asynccontextmanager
async def open_bench(total_seconds: float = 10.0) -> AsyncIterator[Bench]:
    async with open_session() as session:
        yield Bench(session, total_seconds)


@asynccontextmanager
async def web_server(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], *, tls: bool = False
) -> AsyncIterator[str]:
    """Run a web server that handles every request with `handler`, and yield its address."""
    context = None
    if tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(SELF_SIGNED)
    runner = web.ServerRunner(web.Server(handler, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"http{'s' if tls else ''}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


class RawServer:
    """Answers each request with the next item of `answers`, and closes the connection.

    If there are more requests than answers, the last answer is repeated. If an answer is `None`,
    the connection is closed without a response.
    """

    def __init__(self, *answers: bytes | None, hang: bool = False) -> None:
        self.answers = answers
        self.hang = hang
        self.requests: list[bytes] = []
        self.url = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        with suppress(ConnectionError):
            if answer is not None:
                writer.write(answer)
                await writer.drain()
            if self.hang:
                await reader.read()
            writer.close()
            await writer.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        await self._serve(reader, writer)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["RawServer"]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            await asyncio.gather(*self._tasks)


class _NothingSent:
    """Stands in for the writer of a request that was never sent."""

    output_size = 0


class CompatibleResponse(ClientResponse):
    """Adds the stream writer that aiohttp requires but aioresponses 0.7.9 does not provide."""

    content: StreamReader

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, stream_writer=_NothingSent(), **kwargs)


class FakeServices(aioresponses):
    """Works like `aioresponses`, but returns a `CompatibleResponse` by default."""

    def add(self, url: Any, method: str = hdrs.METH_GET, **kwargs: Any) -> None:
        kwargs.setdefault("response_class", CompatibleResponse)
        super().add(url, method, **kwargs)


class FakeGuard(Permit):
    """A fake guard that permits every call.

    `events` records everything that happens, in order. For each call, `events` gets the
    organization's key, "responded", any reported limits, the code of any refusal, and "passed".
    """

    def __init__(self) -> None:
        self.events: list[object] = []
        self.causes: list[CallCause] = []

    @asynccontextmanager
    async def call(self, key: OrganizationKey, cause: CallCause) -> AsyncIterator[Permit]:
        self.events.append(key)
        self.causes.append(cause)
        yield self
        self.events.append("passed")

    def may_send(self) -> bool:
        return True

    async def responded(self, limits: ReportedLimits | None = None) -> None:
        self.events += ["responded", *([limits] if limits else [])]

    async def refused(self, error: RateLimited) -> None:
        self.events.append(error.code)
