"""A response_url that accepts and counts all posts. Without validation, it costs almost nothing."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"


class Sink:
    """The number of posts, the last body, and the time of the last post (`perf_counter`)."""

    def __init__(self) -> None:
        self.url = ""
        self.count = 0
        self.last = b""
        self.arrived_at = 0.0
        self._arrival = asyncio.Event()

    def take(self, body: bytes) -> None:
        """Count one post."""
        self.count += 1
        self.last = body
        self.arrived_at = time.perf_counter()
        self._arrival.set()

    async def until(self, count: int, seconds: float = 30.0) -> None:
        """Return when `count` posts have come, or raise TimeoutError."""
        async with asyncio.timeout(seconds):
            while self.count < count:
                self._arrival.clear()
                await self._arrival.wait()


class _Post(asyncio.Protocol):
    """Reads HTTP/1.1 posts with a Content-Length one by one, and answers each."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (post := self._complete()) is not None:
            self._take(post)
            assert self._transport is not None
            self._transport.write(ANSWER)

    def _complete(self) -> bytes | None:
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return None
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if len(rest) < length:
            return None
        self._buffer = rest[length:]
        return rest[:length]


@asynccontextmanager
async def running_sink() -> AsyncIterator[Sink]:
    """Yield a sink that listens on loopback."""
    sink = Sink()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Post(sink.take), "127.0.0.1", 0)
    sink.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/response"
    try:
        yield sink
    finally:
        server.close()
