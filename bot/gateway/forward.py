"""Forwards a client's call once it is granted, using the data center's credential."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote, quote_plus

import aiohttp
from aiohttp import HttpVersion11, web
from yarl import URL

from bot.errors import DatabaseUnavailable
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
from bot.ops.redaction import Redactor
from bot.organizations.client import DataCenterAccess
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.blocks import BlockCode, pause_seconds
from bot.services.calls import Observed, Observer, ServiceCall
from bot.services.credentials import Signed
from bot.services.errors import (
    CredentialsRefused,
    RateLimited,
    ResponseUnreadable,
    ServiceError,
    ServiceUnreachable,
)
from bot.services.failures import (
    HeldUpError,
    UnsendableError,
    failure_of_accident,
    failure_of_status,
    too_large,
)
from bot.services.http import (
    CONNECT_SECONDS,
    TOTAL_SECONDS,
    Permit,
    checked,
    note_headers,
    send_once,
)

# Minimum time between renewals of an access token that the service has never accepted.
RENEW_SECONDS = 60.0
# Time limit for reading the message of a 429, which has already been counted.
REFUSAL_SECONDS = 3.0
_OURS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_GZIP_OR_ZLIB, _CODINGS = 47, {"gzip", "x-gzip", "deflate"}


@dataclass(frozen=True)
class GatewayCall:
    """A client's request as it will be forwarded; `url` is under the data center's root."""

    client: str
    key: OrganizationKey
    method: str
    url: URL
    headers: Sequence[tuple[str, str]]
    wait_seconds: float


@dataclass(slots=True)
class Seen:
    """The progress of a request, for the log and the metrics."""

    client: str = ""
    data_center: str = ""
    organization: str = ""
    path: str = ""
    outcome: str = "cancelled"
    status: int | None = None
    waited: float = 0.0


@dataclass(eq=False)
class Forwarder:
    """Forwards clients' calls; never sends a call twice or follows a redirect.

    `observer` receives each call that was sent.
    """

    session: aiohttp.ClientSession
    access: Mapping[str, DataCenterAccess]
    turns: Turns
    redactor: Redactor
    observer: Observer
    _renewed_at: dict[str, float] = field(default_factory=dict, init=False)
    # The credential that the service last accepted, by data center.
    _accepted: dict[str, Signed] = field(default_factory=dict, init=False)

    async def forward(
        self, request: web.BaseRequest, call: GatewayCall, body: Spool, seen: Seen
    ) -> web.StreamResponse:
        """Make the call and pass its answer to the client.

        Raises:
            QuotaExhausted, OrganizationBlocked, DatabaseUnavailable: The call was not granted.
            ClientGone, Stopping: No client is waiting for the answer anymore.
            ServiceError: The service didn't send an answer that can be passed on.
        """
        center, clock = call.key.data_center, self.turns.clock
        # Do this before waiting for a turn, because renewing the token may need a separate call.
        await self.access[center].credential.sign()
        wait = Wait(call.key, call.client, call.wait_seconds, lambda: is_gone(request))
        began = clock.monotonic()
        async with self.turns.call(wait) as permit:
            seen.waited = clock.monotonic() - began
            if is_gone(request):
                raise ServiceUnreachable(
                    "inventory", "The client closed its connection.", sent=False
                )
            exchange = _Exchange(self, request, call, permit, seen)
            signed, is_accepted = await exchange.run(body)
        if is_accepted:
            self._accepted[center] = signed
        else:
            self._renew(center, signed)
        return await exchange.deliver()

    def _renew(self, center: str, refused: Signed) -> None:
        now = self.turns.clock.monotonic()
        is_new = refused is not self._accepted.get(center)
        if is_new and now - self._renewed_at.get(center, -RENEW_SECONDS) < RENEW_SECONDS:
            return
        self._renewed_at[center] = now

        async def renew() -> None:
            with suppress(ServiceError):
                await self.access[center].credential.renewed(refused)

        self.turns.guard.tasks.start(renew(), "renew a token")


class _Exchange:
    """Sends a granted call, reads the whole answer, and passes the answer on."""

    def __init__(
        self,
        forwarder: Forwarder,
        request: web.BaseRequest,
        call: GatewayCall,
        permit: Permit,
        seen: Seen,
    ) -> None:
        self._forwarder = forwarder
        self._request = request
        self._call = call
        self._permit = permit
        self._seen = seen
        center = call.key.data_center
        self._service = ServiceCall(
            service="inventory",
            label=f"the inventory service ({center})",
            method="GET",
            url=call.url,
            data_center=center,
        )
        self._delivery: Delivery | None = None
        self._refused: tuple[web.Response, RateLimited] | None = None

    async def run(self, body: Spool) -> tuple[Signed, bool]:
        """Send the call and read its answer within the grant's time.

        Returns:
            The credential that was sent, and whether the service accepted it.
        """
        seen, began = self._seen, self._forwarder.turns.clock.monotonic()
        center = self._call.key.data_center
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                signed = await self._forwarder.access[center].credential.sign()
                async with await self._send(signed, body) as response:
                    seen.status = response.status
                    await note_headers(self._permit, response.status, response.headers)
                    await self._read(response, Mask(_secrets_in(signed)))
                    failure = self._failure(response, b"")
            seen.outcome = "ok" if failure is None else failure.outcome
        except (aiohttp.ClientError, OSError, HeldUpError, ServiceError) as accident:
            if self._delivery is not None:
                # An incomplete answer must not look complete.
                self._delivery.abort()
            error = accident
            if not isinstance(error, ServiceError):
                error = failure_of_accident(self._service, accident, TOTAL_SECONDS)
            seen.outcome = error.outcome
            raise error from None
        finally:
            seconds = self._forwarder.turns.clock.monotonic() - began
            self._forwarder.observer(
                Observed("inventory", center, seen.outcome, seen.status, seconds)
            )
        return signed, not isinstance(failure, CredentialsRefused)

    def _failure(self, response: aiohttp.ClientResponse, body: bytes) -> ServiceError | None:
        redactor = self._forwarder.redactor
        return failure_of_status(self._service, response.status, response.headers, body, redactor)

    async def _send(self, signed: Signed, body: Spool) -> aiohttp.ClientResponse:
        call = self._call
        headers = [*call.headers, *signed.headers.items()]
        added = (f"{quote_plus(key)}={quote_plus(value)}" for key, value in signed.params.items())
        query = "&".join(filter(None, (call.url.raw_query_string, *added)))
        is_large = body.size > IN_MEMORY_BYTES
        headers += [("Content-Length", str(body.size))] if is_large else []
        try:
            return await self._forwarder.session.request(
                call.method,
                URL(f"{call.url.with_query(None)}{'?' if query else ''}{query}", encoded=True),
                headers=headers,
                skip_auto_headers=_OURS,
                data=body.stream() if is_large else b"".join(body.pieces()) or None,
                allow_redirects=False,
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
                middlewares=(send_once, checked(self._permit.may_send)),
            )
        except (UnsendableError, ValueError) as error:
            if isinstance(error, aiohttp.ClientError):
                raise
            # If the HTTP library can't encode a request, the request was never sent.
            sentence = "The request can't be sent unchanged."
            raise ServiceUnreachable("inventory", sentence, sent=False) from None

    async def _read(self, response: aiohttp.ClientResponse, mask: Mask) -> None:
        if response.status == HTTPStatus.TOO_MANY_REQUESTS:
            await self._read_refusal(response, mask)
            return
        if response.status < HTTPStatus.OK:
            # Data after a 101 is not HTTP, and no client requested another protocol.
            response.close()
            sentence = f"{self._service.subject} requested another protocol."
            raise ResponseUnreadable("inventory", sentence)
        without_body = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}
        has_body = self._call.method != "HEAD" and response.status not in without_body
        if has_body and (response.content_length or 0) > MOST_BYTES:
            response.close()
            raise too_large(self._service, MOST_BYTES)
        # In HTTP/1.0, a lost connection can't be told from the end of an answer without a length.
        is_read_first = self._request.version < HttpVersion11 and response.content_length is None
        pieces = self._pieces(response, mask)
        if is_read_first:
            whole = Spool()
            try:
                async for piece in pieces:
                    whole.write(piece)
                delivery = await self._begin(response, mask, whole.size if has_body else None)
                for piece in whole.pieces():
                    await delivery.put(piece)
            finally:
                whole.close()
            return
        delivery = await self._begin(response, mask)
        async for piece in pieces:
            await delivery.put(piece)

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

    async def _pieces(
        self, response: aiohttp.ClientResponse, mask: Mask | None
    ) -> AsyncIterator[bytes]:
        """Yield the masked body as it arrives, up to the size limit."""
        passed = 0
        async for piece in response.content.iter_any():
            passed += len(piece)
            if passed > MOST_BYTES:
                response.close()
                raise too_large(self._service, MOST_BYTES)
            yield piece if mask is None else mask.clean(piece)
        if mask is not None:
            yield mask.rest()

    async def _read_refusal(self, response: aiohttp.ClientResponse, mask: Mask) -> None:
        """Count a 429 immediately, then read which limit it names."""
        refusal = await self._refuse(response, b"")
        try:
            async with asyncio.timeout(REFUSAL_SECONDS):
                body = b"".join([piece async for piece in self._pieces(response, None)])
        except (aiohttp.ClientError, OSError, ServiceError):
            response.close()
            answer = message(HTTPStatus.TOO_MANY_REQUESTS, refusal.sentence)
        else:
            refusal = await self._refuse(response, _decompressed(body, response))
            clean = mask.clean(body) + mask.rest()
            answer = web.Response(status=429, body=clean, headers=_headers(response, mask))
        self._refused = answer, refusal

    async def _refuse(self, response: aiohttp.ClientResponse, body: bytes) -> RateLimited:
        refusal = self._failure(response, body)
        assert isinstance(refusal, RateLimited)  # noqa: S101 - a 429
        await self._permit.refused(refusal)
        return refusal

    async def deliver(self) -> web.StreamResponse:
        """Send the client the rest of its answer, after the grant has ended."""
        if self._refused is not None:
            answer, refusal = self._refused
            seconds = None
            with suppress(DatabaseUnavailable):
                seconds = await self._forwarder.turns.guard.blocked_for(self._call.key)
            if seconds is None:
                seconds = pause_seconds(BlockCode.known(refusal.code), 0)
            answer.headers["Retry-After"] = whole_seconds(max(seconds, refusal.retry_after))
            return answer
        assert self._delivery is not None  # noqa: S101 - there was an answer
        if self._delivery.is_gone:
            self._seen.outcome = ClientGone.outcome
        await self._delivery.end()
        return self._delivery.answer


def _decompressed(body: bytes, response: aiohttp.ClientResponse) -> bytes:
    """Return the decompressed start of a body; a service may compress although asked not to."""
    if response.headers.get("Content-Encoding", "").strip().casefold() not in _CODINGS:
        return body
    with suppress(zlib.error):
        return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(body, PIECE_BYTES)
    return b""


def is_gone(request: web.BaseRequest) -> bool:
    """Return True if the client has closed its connection."""
    return request.transport is None or request.transport.is_closing()


def _secrets_in(signed: Signed) -> list[str]:
    """Return the credential, both plain and URL-encoded."""
    in_headers = (value.rpartition(" ")[2] for value in signed.headers.values())
    plain = [*signed.params.values(), *in_headers]
    forms = (
        form for secret in plain for form in (secret, quote(secret, safe=""), quote_plus(secret))
    )
    return [*dict.fromkeys(forms)]


def _headers(response: aiohttp.ClientResponse, mask: Mask) -> "list[tuple[str, str]]":
    headers = passed_headers(list(response.headers.items()))
    length = response.headers.get("Content-Length")
    if length is not None and response.status != HTTPStatus.TOO_MANY_REQUESTS:
        headers.append(("Content-Length", length))
    return [(name, mask.text(value)) for name, value in headers]
