"""Bodies on their way through the gateway: bounded, and never at the expense of anybody else.

A request's body is read whole before a call is granted, and an answer's is taken from the service
as fast as it comes. So a client that sends half a body or never reads holds neither a slot nor a
place among the calls that run. What does not fit into a little memory is kept in a temporary file.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import suppress
from http import HTTPStatus

from aiohttp import ClientError, web

from bot.model.gateway import GatewayRefusal, malformed
from bot.model.gateway_requests import BodyScan

MOST_BYTES = 10 * 1024 * 1024
IN_MEMORY_BYTES = 256 * 1024
PIECE_BYTES = 64 * 1024
BODY_SECONDS = 30.0
# So long in all an answer waits for its client while the service is at it.
PATIENCE_SECONDS = 0.25
# A client that takes nothing for so long is hung up on.
STANDSTILL_SECONDS = 30.0
SHORTEST_SECRET = 4


class Spool:
    """Bytes that are kept for a moment."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115
        self.size = 0

    def write(self, piece: bytes) -> None:
        """Keep some more."""
        self._file.write(piece)
        self.size += len(piece)

    def pieces(self) -> Iterator[bytes]:
        """All that was kept, from the beginning."""
        self._file.seek(0)
        while piece := self._file.read(PIECE_BYTES):
            yield piece

    async def stream(self) -> AsyncIterator[bytes]:
        """The same, for whom takes it piece by piece."""
        for piece in self.pieces():
            yield piece

    def close(self) -> None:
        """Forget all of it."""
        self._file.close()


def too_large() -> GatewayRefusal:
    """The request's body is larger than what is passed on."""
    return GatewayRefusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "too_large",
        f"The body is larger than {MOST_BYTES >> 20} MiB.",
    )


async def ask_for_body(request: web.BaseRequest) -> None:
    """Tell a client that asks first (`Expect: 100-continue`) to send its body.

    Raises:
        GatewayRefusal: It expects something else.
    """
    expected = request.headers.get("Expect")
    if expected is None:
        return
    if expected.strip().casefold() != "100-continue":
        sentence = "Only Expect: 100-continue is understood."
        raise GatewayRefusal(HTTPStatus.EXPECTATION_FAILED, "malformed", sentence)
    with suppress(ConnectionError, ClientError):
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # It is no part of the answer, which has not begun.
        request.writer.output_size = 0


async def read_body(request: web.BaseRequest, spool: Spool) -> None:
    """Read the whole body into a spool.

    Raises:
        GatewayRefusal: It is too large, does not come in time, or names what belongs elsewhere.
    """
    scan = BodyScan()
    await ask_for_body(request)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.content.iter_any():
                if spool.size + len(piece) > MOST_BYTES:
                    raise too_large()
                scan.look(piece)
                spool.write(piece)
    except TimeoutError:
        sentence = f"The body did not arrive within {BODY_SECONDS:g} seconds."
        raise GatewayRefusal(HTTPStatus.REQUEST_TIMEOUT, "too_slow", sentence) from None
    except (web.RequestPayloadError, ClientError, ConnectionError, ValueError):
        raise malformed("The body ended early.") from None


class Mask:
    """Takes secrets out of what passes, piece by piece; each is replaced by as many stars.

    So the length stays what the headers said.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        forms = {one.encode() for one in secrets if len(one) >= SHORTEST_SECRET}
        self._secrets = sorted(forms, key=len, reverse=True)
        self._kept_back = max((len(one) for one in self._secrets), default=1) - 1
        self._tail = b""

    def clean(self, piece: bytes) -> bytes:
        """What may go on now; the end of a piece waits, as a secret may begin there."""
        text = self._hidden(self._tail + piece)
        end = max(0, len(text) - self._kept_back)
        self._tail = text[end:]
        return text[:end]

    def sees(self, piece: bytes) -> bool:
        """Whether a secret ends in this piece; for what cannot be changed on its way."""
        text = self._tail + piece
        self._tail = text[max(0, len(text) - self._kept_back) :]
        return any(secret in text for secret in self._secrets)

    def rest(self) -> bytes:
        """What was kept back."""
        tail, self._tail = self._tail, b""
        return tail

    def text(self, value: str) -> str:
        """A whole text, such as a header's value."""
        cleaned = self._hidden(value.encode("utf-8", "surrogateescape"))
        return cleaned.decode("utf-8", "surrogateescape")

    def _hidden(self, text: bytes) -> bytes:
        for secret in self._secrets:
            text = text.replace(secret, b"*" * len(secret))
        return text


class Delivery:
    """Writes an answer to its client: at once while it keeps up, from a spool when it lags."""

    def __init__(self, request: web.BaseRequest, answer: web.StreamResponse) -> None:
        self.answer = answer
        self._request = request
        self._spool: Spool | None = None
        self._patience = PATIENCE_SECONDS
        self.is_gone = False

    async def begin(self) -> None:
        """Send the headers."""
        try:
            await self.answer.prepare(self._request)
        except (ConnectionError, ClientError):
            self.is_gone = True

    async def put(self, piece: bytes) -> None:
        """Take a piece of the body; returns soon, whatever the client does."""
        if self.is_gone or not piece:
            return
        if self._spool is not None:
            self._spool.write(piece)
            return
        began = asyncio.get_running_loop().time()
        if not await self._written(piece, self._patience):
            # The piece itself stands in the connection's buffer; the next ones do not.
            self._spool = Spool()
        self._patience -= asyncio.get_running_loop().time() - began
        if self._patience <= 0 and self._spool is None:
            self._spool = Spool()

    async def end(self) -> None:
        """Send what is left, at the client's pace."""
        try:
            for piece in self._spool.pieces() if self._spool else ():
                if not await self._written(piece, STANDSTILL_SECONDS):
                    self.abort()
                    return
            async with asyncio.timeout(STANDSTILL_SECONDS):
                await self.answer.write_eof()
        except (ConnectionError, ClientError, TimeoutError):
            self.abort()
        finally:
            self.forget()

    async def _written(self, piece: bytes, seconds: float) -> bool:
        """Whether the client took it in time, or has gone."""
        if self.is_gone:
            return True
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await self.answer.write(piece)
        except TimeoutError:
            return False
        except (ConnectionError, ClientError):
            self.is_gone = True
        return True

    def abort(self) -> None:
        """Hang up, so that nobody takes a part of an answer for the whole."""
        self.is_gone = True
        if self._request.transport is not None:
            self._request.transport.abort()
        self.forget()

    def forget(self) -> None:
        """Give the spool back."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None
