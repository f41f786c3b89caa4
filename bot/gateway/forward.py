"""Forwards a client's call: granted, sent once with the data center's credential, and answered."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote, quote_plus

import aiohttp
import structlog
from aiohttp import HttpVersion11, web
from yarl import URL

from bot.errors import DatabaseUnavailable, GatehouseError
from bot.gateway.answers import message, whole_seconds
from bot.gateway.bodies import (
    IN_MEMORY_BYTES,
    MOST_BYTES,
    PIECE_BYTES,
    Delivery,
    Mask,
    PassedAnswer,
    Spool,
)
from bot.gateway.rules import passed_headers
from bot.gateway.turns import ClientGone, Turns, Wait
from bot.ops.clock import Clock
from bot.ops.redaction import Redactor
from bot.organizations.client import DataCenterAccess
from bot.organizations.rules import OrganizationKey
from bot.quotas.guard import Guard
from bot.quotas.rules.blocks import BlockCode, pause_seconds
from bot.services.calls import Observed, Observer, ReportedLimits, ServiceCall
from bot.services.credentials import Signed
from bot.services.errors import CredentialsRefused, RateLimited, ServiceError, ServiceUnreachable
from bot.services.failures import (
    HeldUpError,
    UnsendableError,
    failure_of_accident,
    failure_of_status,
    too_large,
)
from bot.services.http import CONNECT_SECONDS, TOTAL_SECONDS, Permit, checked, send_once
from bot.tasks import Tasks

log = structlog.get_logger(__name__)

# Minimum time between renewals of a refused access token, however many clients are affected.
RENEW_SECONDS = 60.0
# Limit for reading the message of a 429, which is counted before.
REFUSAL_SECONDS = 3.0
_OURS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_GZIP_OR_ZLIB, _CODINGS = 47, {"gzip", "x-gzip", "deflate"}


@dataclass(frozen=True)
class GatewayCall:
    """A client's request as it is forwarded; `url` is under the data center's root."""

    client: str
    key: OrganizationKey
    method: str
    url: URL
    headers: Sequence[tuple[str, str]]
    wait_seconds: float

    def as_service_call(self) -> ServiceCall:
        """Return the call as errors and logs name it."""
        center = self.key.data_center
        return ServiceCall(
            service="inventory",
            label=f"the inventory service ({center})",
            method="GET",
            url=self.url,
            data_center=center,
        )


@dataclass(slots=True)
class Seen:
    """The progress of a request, for the log and the metrics."""

    outcome: str = "cancelled"
    status: int | None = None
    waited: float = 0.0


@dataclass(frozen=True)
class ForwardParts:
    """The dependencies of a forwarder; `observer` receives each call that was sent."""

    session: aiohttp.ClientSession
    access: Mapping[str, DataCenterAccess]
    guard: Guard
    turns: Turns
    redactor: Redactor
    observer: Observer
    clock: Clock
    tasks: Tasks


class Forwarder:
    """Forwards clients' calls. Never sends a call twice or follows a redirect."""

    def __init__(self, parts: ForwardParts) -> None:
        self._parts = parts
        self._renewed_at: dict[str, float] = {}

    async def forward(
        self, request: web.BaseRequest, call: GatewayCall, body: Spool, seen: Seen
    ) -> web.StreamResponse:
        """Make the call and pass its answer to the client.

        Raises:
            QuotaExhausted, OrganizationBlocked, DatabaseUnavailable: The call was not granted.
            ClientGone, Stopping: Nobody waits for the answer anymore.
            ServiceError: The service gave no answer that can be passed on.
        """
        # Before a turn is taken, because renewing the token may need a call of its own.
        await self._parts.access[call.key.data_center].credential.sign()
        async with self._granted(request, call, seen) as grant:
            exchange = _Exchange(self._parts, request, call, grant, seen)
            await exchange.run(body)
        if exchange.unauthorized is not None:
            self._renew(call.key.data_center, exchange.unauthorized)
        return await exchange.deliver()

    @asynccontextmanager
    async def _granted(
        self, request: web.BaseRequest, call: GatewayCall, seen: Seen
    ) -> AsyncIterator[Permit]:
        clock = self._parts.clock
        wait = Wait(call.key, call.client, call.wait_seconds, lambda: is_gone(request))
        began = clock.monotonic()
        async with self._parts.turns.call(wait) as grant:
            seen.waited = clock.monotonic() - began
            yield grant

    def _renew(self, data_center: str, refused: Signed) -> None:
        """Get a new access token for the next call if the service refused this one."""
        now = self._parts.clock.monotonic()
        if now - self._renewed_at.get(data_center, -RENEW_SECONDS) >= RENEW_SECONDS:
            self._renewed_at[data_center] = now
            self._parts.tasks.start(self._try_to_renew(data_center, refused), "renew a token")

    async def _try_to_renew(self, data_center: str, refused: Signed) -> None:
        with suppress(ServiceError):
            await self._parts.access[data_center].credential.renewed(refused)


class _Exchange:
    """A granted call: sends it, reads the whole answer, and passes it on."""

    def __init__(
        self,
        parts: ForwardParts,
        request: web.BaseRequest,
        call: GatewayCall,
        grant: Permit,
        seen: Seen,
    ) -> None:
        self._parts = parts
        self._request = request
        self._call = call
        self._grant = grant
        self._seen = seen
        self._service = call.as_service_call()
        self._delivery: Delivery | None = None
        self._refused: tuple[web.Response, RateLimited] | None = None
        self.unauthorized: Signed | None = None

    async def run(self, body: Spool) -> None:
        """Send the call and read its answer, within the time of the grant."""
        if is_gone(self._request):
            raise ServiceUnreachable("inventory", "The client has gone.", sent=False)
        began = self._parts.clock.monotonic()
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                failure = await self._run(body)
            self._seen.outcome = "ok" if failure is None else failure.outcome
        except (aiohttp.ClientError, OSError, HeldUpError, ServiceError) as accident:
            self._hang_up()
            error = self._failure_of(accident)
            self._seen.outcome = error.outcome
            raise error from None
        finally:
            self._report(self._parts.clock.monotonic() - began)

    async def _run(self, body: Spool) -> GatehouseError | None:
        access = self._parts.access[self._call.key.data_center]
        signed = await access.credential.sign()
        async with await self._send(signed, body) as response:
            self._seen.status = response.status
            await self._grant.responded()
            await self._note_limits(response)
            await self._read(response, signed)
            failure = failure_of_status(
                self._service, response.status, response.headers, b"", self._parts.redactor
            )
        if isinstance(failure, CredentialsRefused):
            self.unauthorized = signed
        return failure

    async def _send(self, signed: Signed, body: Spool) -> aiohttp.ClientResponse:
        call = self._call
        headers = [*call.headers, *signed.headers.items()]
        if body.size > IN_MEMORY_BYTES:
            headers.append(("Content-Length", str(body.size)))
        try:
            return await self._parts.session.request(
                call.method,
                _with_params(call.url, signed.params),
                headers=headers,
                skip_auto_headers=_OURS,
                data=_data(body),
                allow_redirects=False,
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
                middlewares=(send_once, checked(self._grant.may_send)),
            )
        except (UnsendableError, ValueError) as error:
            if isinstance(error, aiohttp.ClientError):
                raise
            # A request that the HTTP library can't encode was never sent.
            sentence = "The request cannot be sent as it is."
            raise ServiceUnreachable("inventory", sentence, sent=False) from None

    async def _note_limits(self, response: aiohttp.ClientResponse) -> None:
        limits = ReportedLimits.from_headers(response.headers)
        if limits is not None and response.status != HTTPStatus.TOO_MANY_REQUESTS:
            await self._grant.reported(limits)

    async def _read(self, response: aiohttp.ClientResponse, signed: Signed) -> None:
        mask = Mask(_secrets_in(signed))
        if response.status == HTTPStatus.TOO_MANY_REQUESTS:
            await self._read_refusal(response, mask)
            return
        if _has_body(self._call.method, response) and (response.content_length or 0) > MOST_BYTES:
            response.close()
            raise too_large(self._service, MOST_BYTES)
        if self._request.version < HttpVersion11 and response.content_length is None:
            await self._pass_on_whole(response, mask)
            return
        delivery = await self._begin(response, mask)
        async for piece in self._pieces(response):
            await delivery.put(mask.clean(piece))
        await delivery.put(mask.rest())

    async def _begin(
        self, response: aiohttp.ClientResponse, mask: Mask, length: int | None = None
    ) -> Delivery:
        answer = PassedAnswer(
            status=response.status, reason=response.reason, headers=_headers(response, mask)
        )
        if length is not None:
            answer.content_length = length
        self._delivery = Delivery(self._request, answer)
        await self._delivery.begin()
        return self._delivery

    async def _pass_on_whole(self, response: aiohttp.ClientResponse, mask: Mask) -> None:
        """Give the answer a length: in HTTP/1.0, a lost connection looks like its end."""
        whole = Spool()
        try:
            async for piece in self._pieces(response):
                whole.write(mask.clean(piece))
            whole.write(mask.rest())
            has_body = _has_body(self._call.method, response)
            delivery = await self._begin(response, mask, whole.size if has_body else None)
            for piece in whole.pieces():
                await delivery.put(piece)
        finally:
            whole.close()

    async def _pieces(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, up to the size limit."""
        passed = 0
        async for piece in response.content.iter_any():
            passed += len(piece)
            if passed > MOST_BYTES:
                response.close()
                raise too_large(self._service, MOST_BYTES)
            yield piece

    async def _read_refusal(self, response: aiohttp.ClientResponse, mask: Mask) -> None:
        """Count a 429 at once, then read which limit it names."""
        refusal = await self._refuse(response, b"")
        try:
            async with asyncio.timeout(REFUSAL_SECONDS):
                body = b"".join([piece async for piece in self._pieces(response)])
        except (aiohttp.ClientError, OSError, ServiceError):
            response.close()
            answer = message(HTTPStatus.TOO_MANY_REQUESTS, refusal.sentence)
        else:
            refusal = await self._refuse(response, _decompressed(body, response))
            clean = mask.clean(body) + mask.rest()
            answer = web.Response(status=429, body=clean, headers=_headers(response, mask))
        self._refused = answer, refusal

    async def _refuse(self, response: aiohttp.ClientResponse, body: bytes) -> RateLimited:
        refusal = failure_of_status(
            self._service, response.status, response.headers, body, self._parts.redactor
        )
        assert isinstance(refusal, RateLimited)  # noqa: S101 - a 429
        await self._grant.refused(refusal)
        return refusal

    async def deliver(self) -> web.StreamResponse:
        """Send the client the rest of its answer, after the grant has ended."""
        if self._refused is not None:
            answer, refusal = self._refused
            seconds = await self._blocked_for(BlockCode.known(refusal.code))
            answer.headers["Retry-After"] = whole_seconds(max(seconds, refusal.retry_after))
            return answer
        assert self._delivery is not None  # noqa: S101 - there was an answer
        if self._delivery.is_gone:
            self._seen.outcome = ClientGone.outcome
        await self._delivery.end()
        return self._delivery.answer

    async def _blocked_for(self, code: BlockCode) -> float:
        """Return how long the block lasts, or the usual time while the database is unavailable."""
        try:
            seconds = await self._parts.guard.blocked_for(self._call.key)
        except DatabaseUnavailable:
            seconds = None
        return pause_seconds(code, 0) if seconds is None else seconds

    def _failure_of(self, accident: Exception) -> ServiceError:
        if isinstance(accident, ServiceError):
            return accident
        return failure_of_accident(self._service, accident, TOTAL_SECONDS)

    def _hang_up(self) -> None:
        """Close the connection, because an incomplete answer must not look complete."""
        if self._delivery is not None:
            self._delivery.abort()

    def _report(self, seconds: float) -> None:
        seen, center = self._seen, self._call.key.data_center
        self._parts.observer(Observed("inventory", center, seen.outcome, seen.status, seconds))


def is_gone(request: web.BaseRequest) -> bool:
    """Return True if the client has closed its connection."""
    return request.transport is None or request.transport.is_closing()


def _with_params(url: URL, params: Mapping[str, str]) -> URL:
    """Append the credential to the address, which otherwise stays as sent."""
    added = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in params.items())
    query = "&".join(part for part in (url.raw_query_string, added) if part)
    return URL(f"{url.with_query(None)}{'?' if query else ''}{query}", encoded=True)


def _data(body: Spool) -> bytes | AsyncIterator[bytes] | None:
    if body.size > IN_MEMORY_BYTES:
        return body.stream()
    return b"".join(body.pieces()) or None


def _secrets_in(signed: Signed) -> list[str]:
    """Return the credential, plain and as encoded in addresses."""
    in_headers = (value.rpartition(" ")[2] for value in signed.headers.values())
    plain = [*signed.params.values(), *in_headers]
    forms = (
        form for secret in plain for form in (secret, quote(secret, safe=""), quote_plus(secret))
    )
    return [*dict.fromkeys(forms)]


def _headers(response: aiohttp.ClientResponse, mask: Mask) -> "list[tuple[str, str]]":
    """Return the answer's headers to pass on; a body's length is kept."""
    headers = passed_headers(list(response.headers.items()))
    length = response.headers.get("Content-Length")
    if length is not None and response.status != HTTPStatus.TOO_MANY_REQUESTS:
        headers.append(("Content-Length", length))
    return [(name, mask.text(value)) for name, value in headers]


def _has_body(method: str, response: aiohttp.ClientResponse) -> bool:
    """Return True if `Content-Length` is that of a body in this answer."""
    without = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}
    return method != "HEAD" and response.status not in without


def _decompressed(body: bytes, response: aiohttp.ClientResponse) -> bytes:
    """Return the beginning of a body as plain text; it may be compressed although nobody asked."""
    if response.headers.get("Content-Encoding", "").strip().casefold() not in _CODINGS:
        return body
    with suppress(zlib.error):
        return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(body, PIECE_BYTES)
    return b""
