"""A minimal load balancer that distributes Slack's requests among the bot's processes."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count

import aiohttp
from aiohttp import web

PATIENCE_SECONDS = 15.5


class Balancer:
    """Forwards requests to the backends in turn, but skips any backend that refuses connections.

    If a backend dies during a request, the balancer returns status 502. The request is not sent to
    another backend, because it may already have taken effect.
    """

    def __init__(
        self, session: aiohttp.ClientSession, backends: Callable[[], Sequence[str]]
    ) -> None:
        self.url = ""
        self._session = session
        self._backends = backends
        self._turn = count()

    async def handle(self, request: web.Request) -> web.Response:
        """Forward one request."""
        body = await request.read()
        backends = list(self._backends())
        first = next(self._turn)
        for number in range(len(backends)):
            backend = backends[(first + number) % len(backends)]
            try:
                return await self._forward(request, backend, body)
            except aiohttp.ClientConnectorError:
                continue
            except (aiohttp.ClientError, TimeoutError):
                return web.Response(status=502, text="bad gateway")
        return web.Response(status=503, text="no backend")

    async def _forward(self, request: web.Request, backend: str, body: bytes) -> web.Response:
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
        async with self._session.post(
            backend + request.path_qs, data=body, headers=headers, timeout=timeout
        ) as got:
            kind = {"Content-Type": got.headers.get("Content-Type", "text/plain")}
            return web.Response(status=got.status, body=await got.read(), headers=kind)


@asynccontextmanager
async def running_balancer(backends: Callable[[], Sequence[str]]) -> AsyncIterator[Balancer]:
    """Run a load balancer on 127.0.0.1, and yield it."""
    # With keep-alive, a process killed while idle would look as if it died during a request.
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        balancer = Balancer(session, backends)
        app = web.Application(client_max_size=2**22)
        app.router.add_post("/{path:.*}", balancer.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        balancer.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield balancer
        finally:
            await runner.cleanup()
