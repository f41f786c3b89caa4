"""Simulates the service behind the gateway, with responses that each test can choose."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = Callable[[web.BaseRequest, bytes], Awaitable[web.StreamResponse]]


@dataclass
class Got:
    """A request that the service received."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def text(self) -> str:
        """The path, headers and body as text, so that tests can search for forbidden words."""
        return repr((self.target, self.headers, self.body))

    def header(self, name: str) -> list[str]:
        return [value for one, value in self.headers if one.casefold() == name.casefold()]


@dataclass
class Upstream:
    """Simulates a service that records the requests it receives.

    `answer` creates each response, `got` contains the received requests, and `running` is the
    number of calls in progress.
    """

    url: str = ""
    got: list[Got] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    answer: Answer | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def responds(self, **fields: Any) -> None:
        async def answer(_request: web.BaseRequest, _body: bytes) -> web.Response:
            return web.Response(**fields)

        self.answer = answer

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            body = await request.content.read()
            headers = [(name.decode(), value.decode()) for name, value in request.raw_headers]
            self.got.append(Got(request.method, request.raw_path, headers, body))
            self.arrived.set()
            if self.answer is None:
                return web.json_response({"code": 0, "message": "success"})
            return await self.answer(request, body)
        finally:
            self.running -= 1


@asynccontextmanager
async def running_upstream() -> AsyncIterator[Upstream]:
    """Run the service on a loopback port until the `with` block ends."""
    upstream = Upstream()
    server = web.Server(upstream.handle, access_log=None, auto_decompress=False)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield upstream
    finally:
        await runner.cleanup()
