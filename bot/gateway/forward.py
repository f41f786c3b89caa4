"""Forwards clients' calls to the inventory service, using the data center's credential.

A request's body is read completely before the call is granted, and the service's response is read
completely before it's passed on. A client that stops sending its body or never reads the response
therefore doesn't occupy a slot. How much of this is held in memory is limited.
"""

import asyncio
import hashlib
import html
import io
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from http import HTTPStatus
from typing import cast
from urllib.parse import unquote_plus, urlencode

import aiohttp
from aiohttp import web
from yarl import URL

from bot.gateway.answers import message, whole_seconds
from bot.gateway.rules import GatewayRefusal, passed_headers
from bot.gateway.turns import ClientGone, Turns
from bot.ops.redaction import Redactor
from bot.organizations.client import DataCenterAccess
from bot.organizations.rules import OrganizationKey
from bot.quotas.incidents import code_of
from bot.quotas.rules.quota import pause_seconds
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
    LARGE_BYTES,
    MOST_BYTES,
    Permit,
    body_of,
    is_packed,
    limited,
    sending,
    unpacked,
)

# The large responses that a process holds. Beyond this, it doesn't read the next one yet.
MOST_HELD_BYTES = 128 * 1024 * 1024
ROOM_SECONDS = 5.0
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
        name = self.key.service
        is_api = self.key.is_api
        label = name if is_api else f"the inventory service ({name})"
        return ServiceCall(
            "api" if is_api else "inventory", label, self.method, self.url, data_center=name
        )


@dataclass(eq=False)
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

    def __post_init__(self) -> None:
        # The bytes of each large response that is being read or delivered.
        self._held = dict[Seen, int]()
        self._let_go = asyncio.Event()

    async def forward(
        self, request: web.BaseRequest, call: GatewayCall, body: bytes, seen: Seen
    ) -> web.StreamResponse:
        """Make the call, and pass the service's response to the client."""
        credential = self.access[call.key.service].credential
        clock = self.turns.clock
        # Sign before waiting for a turn, because renewing the token may take another call.
        await credential.sign()
        write = None
        if call.method not in _READS:
            digest = hashlib.sha256(body).hexdigest()
            write = Write(call.method, call.url.raw_path, digest, len(body))
        gone = partial(is_gone, request)
        began = clock.monotonic()
        try:
            turn = self.turns.call(call.key, call.client, call.wait_seconds, gone, write)
            async with turn as permit:
                seen.waited = clock.monotonic() - began
                if gone():
                    service = call.service.service
                    raise ServiceUnreachable(service, ClientGone.sentence, sent=False)
                answer, content = await self._exchange(call, body, permit, seen)
            await self.deliver(request, answer, content, seen)
        finally:
            self._held.pop(seen, None)
            self._let_go.set()
        return answer

    async def _exchange(
        self, call: GatewayCall, body: bytes, permit: Permit, seen: Seen
    ) -> tuple[web.StreamResponse, bytes]:
        """Send the call. Return the response and its body."""
        service = call.service
        credential = self.access[call.key.service].credential
        try:
            # A late token leaves the call less time, because its place is counted from now on.
            async with limited(service, TOTAL_SECONDS):
                signed = await credential.sign()
                passed = "&".join(
                    part
                    for part in call.url.raw_query_string.split("&")
                    if unquote_plus(part.partition("=")[0]) not in signed.params
                )
                query = "&".join(filter(None, (passed, urlencode(signed.params))))
                url = URL(f"{call.url.with_query(None)}{'?' if query else ''}{query}", encoded=True)
                ours = {name.casefold() for name in signed.headers}
                kept = [header for header in call.headers if header[0].casefold() not in ours]
                async with sending(
                    self.session,
                    replace(service, url=url),
                    permit,
                    headers=[*kept, *signed.headers.items()],
                    skip_auto_headers=_OURS,
                    data=io.BytesIO(body) if body else None,
                ) as response:
                    seen.status = permit.status = response.status
                    # The headers of other APIs have other meanings.
                    is_told = not call.key.is_api
                    told = ReportedLimits.from_headers(response.headers) if is_told else None
                    await permit.responded(told)
                    answer, content, failure = await self._read(
                        service, permit, response, signed, seen
                    )
            # The client handles redirects and 304s itself.
            seen.outcome = "ok" if isinstance(failure, Redirected | None) else failure.outcome
            if isinstance(failure, CredentialsRefused):
                self.turns.guard.tasks.start(renew(credential, signed), "renew a token")
            if isinstance(failure, RateLimited):
                seconds = pause_seconds(code_of(call.key, failure), 0, failure.retry_after)
                answer.headers["Retry-After"] = whole_seconds(max(seconds, failure.retry_after))
        except ServiceError as error:
            seen.outcome = error.outcome
            raise
        finally:
            # A client may lack access to a single resource, so the credential isn't reported.
            is_forbidden = seen.status == HTTPStatus.FORBIDDEN
            outcome = ServiceRefused.outcome if is_forbidden else seen.outcome
            status = None if is_forbidden else seen.status
            self.observer(Observed(service.service, service.data_center, outcome, status))
        return answer, content

    async def _read(
        self,
        service: ServiceCall,
        permit: Permit,
        response: aiohttp.ClientResponse,
        signed: Signed,
        seen: Seen,
    ) -> tuple[web.StreamResponse, bytes, ServiceError | None]:
        """Return the response, its body and any error in it. Record a 429 before the body."""
        status = response.status
        told = response.headers
        if status < HTTPStatus.OK:
            # Data after a 101 isn't HTTP, and no client requested another protocol.
            response.close()
            sentence = f"{service.subject} tried to switch to another protocol."
            raise ResponseUnreadable(service.service, sentence)
        failure = failure_of_status(service, status, told, b"", self.redactor)
        has_body = service.method != "HEAD" and status not in _WITHOUT_BODY
        data = b""
        if isinstance(failure, RateLimited):
            await permit.refused(failure)
            try:
                async with asyncio.timeout(REFUSAL_SECONDS):
                    data = unpacked(service, response, await body_of(service, response))
            except (aiohttp.ClientError, OSError, ServiceError):
                return message(status, failure.sentence), b"", failure
            # The body has the code.
            failure = failure_of_status(service, status, told, data, self.redactor)
            await permit.refused(cast("RateLimited", failure))
        elif has_body:
            body = await body_of(service, response, partial(self._hold, seen))
            data = unpacked(service, response, body)
            if len(data) > LARGE_BYTES:
                self._held[seen] = len(data)
                self._let_go.set()
        reason = masked_text(response.reason or "", signed.token)
        answer = BareResponse(status=status, reason=reason if reason.isprintable() else None)
        for header in passed_headers([*told.items()]):
            name, value = (masked_text(text, signed.token) for text in header)
            answer.headers.add(name, value)
        if has_body:
            answer.content_length = len(data)
            if is_packed(response):
                del answer.headers["Content-Encoding"]
        elif "Content-Length" in told:
            answer.headers["Content-Length"] = told["Content-Length"]
        return answer, masked(data, signed.token), failure

    async def _hold(self, seen: Seen) -> None:
        """Wait until there is memory for another large response."""
        try:
            async with asyncio.timeout(ROOM_SECONDS):
                while sum(self._held.values()) + MOST_BYTES > MOST_HELD_BYTES:
                    self._let_go.clear()
                    await self._let_go.wait()
        except TimeoutError:
            sentence = (
                "The call was made, but Gatehouse already holds too many large responses, which"
                " other requests are reading slowly."
            )
            raise GatewayRefusal(HTTPStatus.BAD_GATEWAY, "crowded", sentence) from None
        self._held[seen] = MOST_BYTES

    async def deliver(
        self, request: web.BaseRequest, answer: web.StreamResponse, content: bytes, seen: Seen
    ) -> None:
        """Send the response to the client once the call no longer counts as running."""
        try:
            await answer.prepare(request)
            for start in range(0, len(content), PIECE_BYTES):
                async with asyncio.timeout(STANDSTILL_SECONDS):
                    await answer.write(content[start : start + PIECE_BYTES])
            async with asyncio.timeout(STANDSTILL_SECONDS):
                await answer.write_eof()
        except (ConnectionError, aiohttp.ClientError, TimeoutError):
            seen.outcome = ClientGone.outcome
            # Break the connection, so that a partial response can't look complete.
            if request.transport is not None:
                request.transport.abort()


async def renew(credential: Credential, refused: Signed) -> None:
    """Renew a token that the service refused, for the next call."""
    with suppress(ServiceError):
        await credential.renewed(refused)


def is_gone(request: web.BaseRequest) -> bool:
    """Return True if the client has closed its connection."""
    return request.transport is None or request.transport.is_closing()


@lru_cache
def pattern_of(token: str) -> re.Pattern[bytes]:
    """Return a pattern for a token in which any sign can be escaped, as in a URL, JSON or HTML."""
    pattern = ""
    for sign in token:
        form = re.escape(sign)
        if not (sign.isascii() and sign.isalnum()):
            code = ord(sign)
            percent = "".join(f"%{byte:02x}" for byte in sign.encode())
            plus = r"|\+" if sign == " " else ""
            entity = rf"&(?:\#x0*{code:x}|\#0*{code});|{re.escape(html.escape(sign))}"
            form = rf"(?i:\\?{form}|{percent}{plus}|\\u{code:04x}|{entity})"
        pattern += form
    return re.compile(pattern.encode())


def masked(data: bytes, token: str) -> bytes:
    """Replace each byte of the token with an asterisk."""
    return pattern_of(token).sub(lambda match: b"*" * len(match[0]), data)


def masked_text(text: str, token: str) -> str:
    """Mask the token in a header's name or value. Bytes that aren't UTF-8 are read as Latin-1."""
    data = masked(text.encode("utf-8", "surrogateescape"), token)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


class BareResponse(web.StreamResponse):
    """A response without the headers that aiohttp adds if the service doesn't send them."""

    async def _prepare_headers(self) -> None:
        missing = [name for name in ("Content-Type", "Server") if name not in self.headers]
        await super()._prepare_headers()
        for name in missing:
            self.headers.popall(name, None)
