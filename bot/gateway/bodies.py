"""Bodies that pass through the gateway, limited in size and isolated from other clients.

A request's body is read completely before a call is granted, and an answer's body before it is
passed on. A client that sends half a body or never reads the answer therefore occupies neither a
slot nor a running call. Large bodies are kept in a temporary file.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import suppress
from http import HTTPStatus

from aiohttp import ClientError, web

from bot.gateway.rules import GatewayRefusal, malformed

MOST_BYTES = 10 * 1024 * 1024
IN_MEMORY_BYTES = 256 * 1024
PIECE_BYTES = 64 * 1024
BODY_SECONDS = 30.0
SHORTEST_SECRET = 4


class Spool:
    """A temporary store for a body's bytes. A large body moves to a file."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115
        self.size = 0

    def write(self, piece: bytes) -> None:
        """Add bytes to the end."""
        self._file.write(piece)
        self.size += len(piece)

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in chunks, from the beginning."""
        self._file.seek(0)
        while piece := self._file.read(PIECE_BYTES):
            yield piece

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the content in chunks, for an asynchronous HTTP client."""
        for piece in self.pieces():
            yield piece

    def close(self) -> None:
        """Delete the content, and its file if there is one."""
        self._file.close()


def too_large() -> GatewayRefusal:
    """Return the response that refuses a body above the size limit."""
    return GatewayRefusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "too_large",
        f"The body is larger than {MOST_BYTES >> 20} MiB.",
    )


async def read_body(request: web.BaseRequest, spool: Spool) -> None:
    """Read the whole body into a spool, after sending `100 Continue` if the client expects it."""
    expected = request.headers.get("Expect", "").strip().casefold()
    if expected not in {"", "100-continue"}:
        sentence = "Only Expect: 100-continue is supported."
        raise GatewayRefusal(HTTPStatus.EXPECTATION_FAILED, "malformed", sentence)
    if expected:
        with suppress(ConnectionError, ClientError):
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            # `100 Continue` isn't part of the answer, which hasn't started yet.
            request.writer.output_size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.content.iter_any():
                if spool.size + len(piece) > MOST_BYTES:
                    raise too_large()
                spool.write(piece)
    except TimeoutError:
        sentence = f"The body didn't arrive within {BODY_SECONDS:g} seconds."
        raise GatewayRefusal(HTTPStatus.REQUEST_TIMEOUT, "too_slow", sentence) from None
    except (web.RequestPayloadError, ClientError, ConnectionError, ValueError):
        raise malformed("The body ended early.") from None


class Mask:
    """Replaces secrets in a stream with asterisks of the same length."""

    def __init__(self, secrets: Collection[str]) -> None:
        forms = {secret.encode() for secret in secrets if len(secret) >= SHORTEST_SECRET}
        self._secrets = sorted(forms, key=len, reverse=True)
        self._kept_back = max((len(secret) for secret in self._secrets), default=1) - 1
        self._tail = b""

    def clean(self, piece: bytes) -> bytes:
        """Return the data that can be sent, and keep back the end, where a secret may begin."""
        text = self._hidden(self._tail + piece)
        end = max(0, len(text) - self._kept_back)
        self._tail = text[end:]
        return text[:end]

    def rest(self) -> bytes:
        """Return the data that was kept back, once the stream has ended."""
        tail, self._tail = self._tail, b""
        return tail

    def text(self, value: str) -> str:
        """Mask a complete text, such as a header value."""
        cleaned = self._hidden(value.encode("utf-8", "surrogateescape"))
        return cleaned.decode("utf-8", "surrogateescape")

    def _hidden(self, text: bytes) -> bytes:
        for secret in self._secrets:
            text = text.replace(secret, b"*" * len(secret))
        return text


class PassedAnswer(web.StreamResponse):
    """A response with only the service's headers; aiohttp adds no content type."""

    async def _prepare_headers(self) -> None:
        has_type = "Content-Type" in self.headers
        await super()._prepare_headers()
        if not has_type:
            self.headers.popall("Content-Type", None)
