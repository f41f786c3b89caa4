"""Forwards clients' calls to the inventory service, using the data center's credential.

A request's body is read completely before the call is granted, and the service's response is read
completely before it's passed on. A client that stops sending its body or never reads the response
therefore doesn't occupy a slot. Large bodies are kept in temporary files.
"""

import asyncio
import hashlib
import html
import io
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from http import HTTPStatus
from typing import IO, cast
from urllib.parse import quote_plus

import aiohttp
from aiohttp import web
from aiohttp.http_writer import StreamWriter
from yarl import URL

from bot.gateway.answers import message, whole_seconds
from bot.gateway.rules import passed_headers
from bot.gateway.turns import ClientGone, Turns
from bot.ops.redaction import Redactor
from bot.organizations.client import DataCenterAccess
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.quota import BlockCode, pause_seconds
from bot.services.calls import (
    TOTAL_SECONDS,
    Observed,
    Observer,
    ReportedLimits,
    ServiceCall,
    Write,
)
from bot.services.credentials import Credential, Signed
from bot.services.errors import (
    CredentialsRefused,
    RateLimited,
    Redirected,
    ResponseUnreadable,
    ServiceError,
    ServiceRefused,
    ServiceUnreachable,
    failure_of_status,
)
from bot.services.http import (
    CONNECT_SECONDS,
    Permit,
    body_of,
    limited,
    once,
)

IN_MEMORY_BYTES = 256 * 1024
PIECE_BYTES = 64 * 1024
# The time limit for reading the body of a 429, which has already been recorded.
REFUSAL_SECONDS = 3.0
# Disconnect a client that reads no data for this long.
STANDSTILL_SECONDS = 30.0
_READS = ("GET", "HEAD", "OPTIONS")
_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_OURS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@dataclass(frozen=True)
class GatewayCall:
    """A client's request, ready to be forwarded to `url` in the inventory service."""

    client: str
    key: OrganizationKey
    method: str
    url: URL
    headers: Sequence[tuple[str, str]]
    wait_seconds: float

    @property
    def service(self) -> ServiceCall:
        """A description of the call, for error messages."""
        center = self.key.data_center
        label = f"the inventory service ({center})"
        return ServiceCall("inventory", label, "GET", self.url, data_center=center)


@dataclass
class Seen:
    """Information about a request, collected for the log and the metrics."""

    client: str = ""
    data_center: str = ""
    organization: str = ""
    path: str = ""
    outcome: str = "cancelled"
    status: int | None = None
    waited: float = 0.0


@dataclass(eq=False)
class Forwarder:
    """Forwards clients' calls without retrying them or following redirects."""

    session: aiohttp.ClientSession
    access: Mapping[str, DataCenterAccess]
    turns: Turns
    redactor: Redactor
    observer: Observer

    async def forward(
        self, request: web.BaseRequest, call: GatewayCall, body: IO[bytes], seen: Seen
    ) -> web.StreamResponse:
        """Make the call, and pass the service's response to the client."""
        credential = self.access[call.key.data_center].credential
        clock = self.turns.clock
        # Sign before waiting for a turn, because renewing the token may take another call.
        await credential.sign()
        write = None if call.method in _READS else write_of(call, body)
        gone = partial(is_gone, request)
        began = clock.monotonic()
        with open_body() as content:
            turn = self.turns.call(call.key, call.client, call.wait_seconds, gone, write)
            async with turn as permit:
                seen.waited = clock.monotonic() - began
                if is_gone(request):
                    raise ServiceUnreachable("inventory", ClientGone.sentence, sent=False)
                answer = await self._exchange(call, body, permit, seen, content)
            await self.deliver(request, answer, content, seen)
        return answer

    async def _exchange(
        self, call: GatewayCall, body: IO[bytes], permit: Permit, seen: Seen, content: IO[bytes]
    ) -> web.StreamResponse:
        """Send the call, and store the body of the service's response in `content`."""
        service = call.service
        credential = self.access[call.key.data_center].credential
        clock = self.turns.clock
        began = clock.monotonic()
        try:
            async with limited(service, TOTAL_SECONDS):
                signed = await credential.sign()
                params = signed.params.items()
                added = (f"{quote_plus(key)}={quote_plus(value)}" for key, value in params)
                query = "&".join(filter(None, (call.url.raw_query_string, *added)))
                body.seek(0)
                data = body.read()
                async with await self.session.request(
                    call.method,
                    URL(f"{call.url.with_query(None)}{'?' if query else ''}{query}", encoded=True),
                    headers=[*call.headers, *signed.headers.items()],
                    skip_auto_headers=_OURS,
                    data=io.BytesIO(data) if data else None,
                    allow_redirects=False,
                    auto_decompress=False,
                    timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
                    middlewares=(once(permit.may_send),),
                ) as response:
                    seen.status = permit.status = response.status
                    await permit.responded(ReportedLimits.from_headers(response.headers))
                    answer, failure = await self._read(call, permit, response, signed, content)
            # The client handles redirects and 304s itself.
            seen.outcome = "ok" if isinstance(failure, Redirected | None) else failure.outcome
            if isinstance(failure, CredentialsRefused):
                self.turns.guard.tasks.start(renew(credential, signed), "renew a token")
            if isinstance(failure, RateLimited):
                seconds = pause_seconds(BlockCode.known(failure.code), 0)
                answer.headers["Retry-After"] = whole_seconds(max(seconds, failure.retry_after))
        except ServiceError as error:
            seen.outcome = error.outcome
            raise
        finally:
            center = service.data_center
            seconds = clock.monotonic() - began
            observed = Observed("inventory", center, seen.outcome, seen.status, seconds)
            if seen.status == HTTPStatus.FORBIDDEN:
                # A client may lack access to a single resource, so the credential isn't reported.
                observed = Observed("inventory", center, ServiceRefused.outcome, None, seconds)
            self.observer(observed)
        return answer

    async def _read(
        self,
        call: GatewayCall,
        permit: Permit,
        response: aiohttp.ClientResponse,
        signed: Signed,
        content: IO[bytes],
    ) -> tuple[web.StreamResponse, ServiceError | None]:
        """Return the response and any error in it. Record a 429 before reading its body."""
        status = response.status
        told = response.headers
        if status < HTTPStatus.OK:
            # Data after a 101 isn't HTTP, and no client requested another protocol.
            response.close()
            sentence = f"{call.service.subject} tried to switch to another protocol."
            raise ResponseUnreadable("inventory", sentence)
        failure = failure_of_status(call.service, status, told, b"", self.redactor)
        has_body = call.method != "HEAD" and status not in _WITHOUT_BODY
        data = b""
        if isinstance(failure, RateLimited):
            await permit.refused(failure)
            try:
                async with asyncio.timeout(REFUSAL_SECONDS):
                    data = await body_of(call.service, response)
            except (aiohttp.ClientError, OSError, ServiceError):
                return message(status, failure.sentence), failure
            # The body has the code.
            failure = failure_of_status(call.service, status, told, data, self.redactor)
            await permit.refused(cast("RateLimited", failure))
        elif has_body:
            data = await body_of(call.service, response)
        reason = masked_text(response.reason or "", signed.token)
        answer = PassedAnswer(status=status, reason=reason if reason.isprintable() else None)
        for header in passed_headers([*told.items()]):
            name, value = (masked_text(text, signed.token) for text in header)
            answer.headers.add(name, value)
        if has_body:
            answer.content_length = content.write(masked(data, signed.token))
        elif "Content-Length" in told:
            answer.headers["Content-Length"] = told["Content-Length"]
        return answer, failure

    async def deliver(
        self, request: web.BaseRequest, answer: web.StreamResponse, content: IO[bytes], seen: Seen
    ) -> None:
        """Send the response to the client once the call no longer counts as running."""
        content.seek(0)
        try:
            await answer.prepare(request)
            while piece := content.read(PIECE_BYTES):
                async with asyncio.timeout(STANDSTILL_SECONDS):
                    await answer.write(piece)
            async with asyncio.timeout(STANDSTILL_SECONDS):
                await answer.write_eof()
        except (ConnectionError, aiohttp.ClientError, TimeoutError):
            seen.outcome = ClientGone.outcome
            # Break the connection, so that a partial response can't look complete.
            if request.transport is not None:
                request.transport.abort()


def write_of(call: GatewayCall, body: IO[bytes]) -> Write:
    """Return what the audit log records of a write: a digest of its body, but no content."""
    body.seek(0)
    digest = hashlib.sha256(body.read()).hexdigest()
    return Write(call.method, call.url.raw_path, digest, body.tell())


async def renew(credential: Credential, refused: Signed) -> None:
    """Renew a token that the service refused, for the next call."""
    with suppress(ServiceError):
        await credential.renewed(refused)


def is_gone(request: web.BaseRequest) -> bool:
    """Return True if the client has closed its connection."""
    return request.transport is None or request.transport.is_closing()


def open_body() -> IO[bytes]:
    """Open a temporary buffer for a body. Large bodies are moved to files."""
    return tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)


@lru_cache
def pattern_of(token: str) -> re.Pattern[bytes]:
    """Return a pattern for a token in which any sign can be escaped, as in a URL, JSON or HTML."""
    pattern = ""
    for byte in token.encode():
        sign = re.escape(chr(byte))
        if not bytes([byte]).isalnum():
            entity = rf"&(?:\#x0*{byte:x}|\#0*{byte});|{re.escape(html.escape(chr(byte)))}"
            sign = rf"(?i:\\?{sign}|%{byte:02x}|\\u00{byte:02x}|{entity})"
        pattern += sign
    return re.compile(pattern.encode("latin-1"))


def masked(data: bytes, token: str) -> bytes:
    """Replace each byte of the token with an asterisk."""
    return pattern_of(token).sub(lambda match: b"*" * len(match[0]), data)


def masked_text(text: str, token: str) -> str:
    """Mask the token in a header's name or value, which may have bytes that aren't UTF-8."""
    data = masked(text.encode("utf-8", "surrogateescape"), token)
    return data.decode("utf-8", "surrogateescape")


class PassedAnswer(web.StreamResponse):
    """A response with the service's headers as they came, and without those that aiohttp adds."""

    async def _prepare_headers(self) -> None:
        missing = [name for name in ("Content-Type", "Server") if name not in self.headers]
        await super()._prepare_headers()
        for name in missing:
            self.headers.popall(name, None)

    async def _write_headers(self) -> None:
        # aiohttp would leave out bytes that aren't UTF-8.
        version = cast("web.BaseRequest", self._req).version
        lines = [f"HTTP/{version.major}.{version.minor} {self.status} {self.reason}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        head = "\r\n".join([*lines, "", ""])
        writer = cast("StreamWriter", self._payload_writer)
        writer._headers_buf = head.encode("utf-8", "surrogateescape")  # noqa: SLF001
        writer.send_headers()
