"""Bodies that pass through the gateway, limited in size and isolated from other clients.

A request's body is read completely before a call is granted, and an answer's body before it is
passed on. A client that sends half a body or never reads the answer therefore occupies neither a
slot nor a running call. Large bodies are kept in a temporary file.
"""

import asyncio
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import IO

from aiohttp import ClientError, web

from bot.gateway.rules import GatewayRefusal, malformed

MOST_BYTES = 10 * 1024 * 1024
IN_MEMORY_BYTES = 256 * 1024
PIECE_BYTES = 64 * 1024
BODY_SECONDS = 30.0
SHORTEST_SECRET = 4


def open_body() -> IO[bytes]:
    """Open a temporary store for a body, which moves to a file if it's large."""
    return tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)


def too_large() -> GatewayRefusal:
    """Return the response that refuses a body above the size limit."""
    return GatewayRefusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "too_large",
        f"The body is larger than {MOST_BYTES >> 20} MiB.",
    )


async def read_body(request: web.BaseRequest, body: IO[bytes]) -> None:
    """Store the whole body, after sending `100 Continue` if the client expects it."""
    if request.headers.get("Expect", "").strip().casefold() == "100-continue":
        with suppress(ConnectionError, ClientError):
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            # `100 Continue` isn't part of the answer, which hasn't started yet.
            request.writer.output_size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.content.iter_any():
                if body.tell() + len(piece) > MOST_BYTES:
                    raise too_large()
                body.write(piece)
    except TimeoutError:
        sentence = f"The body didn't arrive within {BODY_SECONDS:g} seconds."
        raise GatewayRefusal(HTTPStatus.REQUEST_TIMEOUT, "too_slow", sentence) from None
    except (web.RequestPayloadError, ClientError, ConnectionError, ValueError):
        raise malformed("The body ended early.") from None


def masked(data: bytes, secrets: Iterable[str]) -> bytes:
    """Replace secrets with asterisks of the same length."""
    for secret in sorted({secret.encode() for secret in secrets}, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            data = data.replace(secret, b"*" * len(secret))
    return data


class PassedAnswer(web.StreamResponse):
    """A response with only the service's headers; aiohttp adds no content type."""

    async def _prepare_headers(self) -> None:
        has_type = "Content-Type" in self.headers
        await super()._prepare_headers()
        if not has_type:
            self.headers.popall("Content-Type", None)
