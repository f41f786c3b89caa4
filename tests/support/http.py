"""Real local servers, and the parts that clients are made of in tests."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import ClientSession, web

from bot.ops.redaction import Redactor
from bot.services.calls import Answer, Observed, ServiceCall
from bot.services.http import OpenPermit, ServiceHttp, open_session, unlimited

SELF_SIGNED = Path(__file__).with_name("self_signed.pem")


class InstantClock:
    """Sleeps at once, and remembers for how long."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.elapsed = 0.0

    def now(self) -> datetime:
        return datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.elapsed += seconds


class Bench:
    """A `ServiceHttp` with what can be seen from outside of it."""

    def __init__(self, session: ClientSession, total_seconds: float) -> None:
        self.clock = InstantClock()
        self.observed: list[Observed] = []
        self.redactor = Redactor()
        self.http = ServiceHttp(
            session,
            self.redactor,
            self.observed.append,
            self.clock,
            total_seconds=total_seconds,
        )

    async def request(self, call: ServiceCall, permits: OpenPermit = unlimited) -> Answer:
        """Make a call whose every answer is good."""
        return await self.http.request(call, lambda answer: answer, permits)


@asynccontextmanager
async def open_bench(total_seconds: float = 10.0) -> AsyncIterator[Bench]:
    async with open_session() as session:
        yield Bench(session, total_seconds)


@asynccontextmanager
async def web_server(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], *, tls: bool = False
) -> AsyncIterator[str]:
    """Yields the address of a server that answers everything with `handler`."""
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
    """Writes bytes of its own choice: after a request is read, `answers[n]`, then it hangs up.

    The last answer is repeated. An answer may be `None`: hang up at once.
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
