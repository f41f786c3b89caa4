"""A TCP proxy that can cut or stall connections to simulate an outage."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

BUCKET_BYTES = 65_536


class TcpProxy:
    """Forwards connections to a server until a test cuts or stalls them.

    `cut` closes connections and refuses new ones, as if the server had crashed. `hang` keeps
    connections open but lets nothing through, as if the network were down. `mend` resumes
    forwarding, and also forwards any data that was held back.
    """

    def __init__(self, host: str, port: int) -> None:
        self.port = 0
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._pipes: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Start listening. If the proxy was open before, listen on the same port again."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Close all connections and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        pipes = list(self._pipes)
        for pipe in pipes:
            pipe.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)

    def hang(self) -> None:
        """Let nothing through."""
        self._flowing.clear()

    async def mend(self) -> None:
        """Resume forwarding."""
        self._flowing.set()
        if self._server is None:
            await self.open()

    async def _serve(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pipes.add(task)
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self._join(near, back)
        finally:
            self._pipes.discard(task)
            back.transport.abort()

    async def _join(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        await self._flowing.wait()
        far, forth = await asyncio.open_connection(*self._target)
        pumps = [
            asyncio.ensure_future(self._pump(near, forth)),
            asyncio.ensure_future(self._pump(far, back)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            forth.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while bucket := await source.read(BUCKET_BYTES):
            await self._flowing.wait()
            sink.write(bucket)
            await sink.drain()


@asynccontextmanager
async def running_proxy(host: str, port: int) -> AsyncIterator[TcpProxy]:
    """Run a proxy in front of a server, and yield the proxy."""
    proxy = TcpProxy(host, port)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.mend()
        await proxy.cut()
