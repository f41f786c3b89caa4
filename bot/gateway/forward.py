"""One call of a client's: granted, sent once with the data center's credential, and passed back."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from urllib.parse import quote, quote_plus

import aiohttp
import structlog
from aiohttp import web
from yarl import URL

from bot.background.tasks import Tasks
from bot.clients.calls import Observed, Observer, ServiceCall
from bot.clients.credentials import Signed
from bot.clients.failures import (
    HeldUpError,
    UnsendableError,
    code_and_words,
    failure_of_accident,
    failure_of_status,
    too_large,
)
from bot.clients.http import CONNECT_SECONDS, TOTAL_SECONDS, checked, send_once
from bot.clients.inventory import DataCenterAccess
from bot.clients.quota_guard import CallPermit
from bot.dataclass import dataclass
from bot.errors import DatabaseUnavailable, GatehouseError
from bot.gateway.answers import whole_seconds
from bot.gateway.bodies import IN_MEMORY_BYTES, MOST_BYTES, PIECE_BYTES, Delivery, Mask, Spool
from bot.gateway.packed import PackedScan
from bot.model.gateway_requests import READABLE_CODINGS, passed_headers
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.blocks import BlockCode, pause_seconds
from bot.model.quotas.calls import GATEWAY, CallCause
from bot.model.quotas.reported import ReportedLimits
from bot.ops.clock import Clock
from bot.ops.redaction import Redactor
from bot.service_errors import CredentialsRefused, RateLimited, ServiceError, ServiceUnreachable
from bot.workflows.quotas.guard import Guard
from bot.workflows.turns import ClientGone, Turns, Wait

log = structlog.get_logger(__name__)

# A refused access token is renewed once in so long, however many clients hit upon it.
RENEW_SECONDS = 60.0
LONGEST_RETRY_DIGITS = 6
_OURS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_GZIP_OR_ZLIB = 47


@dataclass(frozen=True)
class GatewayCall:
    """What a client asked for, as it goes on: `url` is under the data center's root."""

    client: str
    key: OrganizationKey
    method: str
    url: URL
    headers: Sequence[tuple[str, str]]
    wait_seconds: float

    def as_service_call(self) -> ServiceCall:
        """How errors and logs speak about it."""
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
    """What became of a request so far, for the log and the metrics."""

    outcome: str = "cancelled"
    status: int | None = None
    waited: float = 0.0


@dataclass(frozen=True)
class ForwardParts:
    """What a forwarder is made of; `observer` is told of each call that was sent."""

    session: aiohttp.ClientSession
    access: Mapping[str, DataCenterAccess]
    guard: Guard
    turns: Turns
    redactor: Redactor
    observer: Observer
    clock: Clock
    tasks: Tasks


class Forwarder:
    """Sends clients' calls on. Nothing is sent twice, and no redirect is followed."""

    def __init__(self, parts: ForwardParts) -> None:
        self._parts = parts
        self._renewed_at: dict[str, float] = {}

    async def forward(
        self, request: web.BaseRequest, call: GatewayCall, body: Spool, seen: Seen
    ) -> web.StreamResponse:
        """Make the call and pass its answer to the client.

        Raises:
            QuotaExhausted, OrganizationBlocked, DatabaseUnavailable: It was not granted.
            ClientGone, Stopping: Nobody waits for it any more.
            ServiceError: It has no answer that could be passed on.
        """
        # Before a turn is taken: it may need a call of its own.
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
    ) -> AsyncIterator[CallPermit]:
        turns, clock = self._parts.turns, self._parts.clock
        wait = Wait(call.key, call.client, call.wait_seconds, lambda: is_gone(request))
        cause = CallCause(GATEWAY, background=True, client=call.client)
        began = clock.monotonic()
        try:
            async with self._parts.guard.call(
                call.key, cause, lambda attempt: turns.take(wait, attempt)
            ) as grant:
                seen.waited = clock.monotonic() - began
                yield grant
        finally:
            turns.call_ended(call.key)

    def _renew(self, data_center: str, refused: Signed) -> None:
        """Get another access token for the next call, where the service refused this one."""
        now = self._parts.clock.monotonic()
        if now - self._renewed_at.get(data_center, -RENEW_SECONDS) >= RENEW_SECONDS:
            self._renewed_at[data_center] = now
            self._parts.tasks.start(self._try_to_renew(data_center, refused), "renew a token")

    async def _try_to_renew(self, data_center: str, refused: Signed) -> None:
        with suppress(ServiceError):
            await self._parts.access[data_center].credential.renewed(refused)


class _Exchange:
    """One granted call: sends it, reads the answer to its end, and hands it on."""

    def __init__(
        self,
        parts: ForwardParts,
        request: web.BaseRequest,
        call: GatewayCall,
        grant: CallPermit,
        seen: Seen,
    ) -> None:
        self._parts = parts
        self._request = request
        self._call = call
        self._grant = grant
        self._seen = seen
        self._service = call.as_service_call()
        self._delivery: Delivery | None = None
        self._refused: tuple[web.Response, BlockCode] | None = None
        self.unauthorized: Signed | None = None

    async def run(self, body: Spool) -> None:
        """Send the call and read its answer, within the time that a grant lasts."""
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
            # What the HTTP library cannot write down was never sent.
            sentence = "The request cannot be sent as it is."
            raise ServiceUnreachable("inventory", sentence, sent=False) from None

    async def _note_limits(self, response: aiohttp.ClientResponse) -> None:
        limits = ReportedLimits.from_headers(response.headers)
        if limits is not None and response.status != HTTPStatus.TOO_MANY_REQUESTS:
            await self._grant.reported(limits)

    async def _read(self, response: aiohttp.ClientResponse, signed: Signed) -> None:
        if (response.content_length or 0) > MOST_BYTES and self._call.method != "HEAD":
            response.close()
            raise too_large(self._service, MOST_BYTES)
        mask = Mask(_secrets_in(signed))
        if response.status == HTTPStatus.TOO_MANY_REQUESTS:
            await self._read_refusal(response, mask)
        elif _coding(response):
            await self._pass_on_packed(response, mask)
        else:
            await self._pass_on(response, mask)

    async def _begin(self, response: aiohttp.ClientResponse, mask: Mask) -> Delivery:
        answer = web.StreamResponse(
            status=response.status, reason=response.reason, headers=_headers(response, mask)
        )
        self._delivery = Delivery(self._request, answer)
        await self._delivery.begin()
        return self._delivery

    async def _pass_on(self, response: aiohttp.ClientResponse, mask: Mask) -> None:
        delivery = await self._begin(response, mask)
        async for piece in self._pieces(response):
            await delivery.put(mask.clean(piece))
        await delivery.put(mask.rest())

    async def _pass_on_packed(self, response: aiohttp.ClientResponse, mask: Mask) -> None:
        """As `_pass_on`, once all of it was looked at: nothing can be starred out of it."""
        scan, packed = PackedScan(self._service, _coding(response), mask), Spool()
        try:
            async for piece in self._pieces(response):
                scan.look(piece)
                packed.write(piece)
            delivery = await self._begin(response, mask)
            for piece in packed.pieces():
                await delivery.put(piece)
        finally:
            packed.close()

    async def _pieces(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """The body as it comes, up to what is passed on."""
        passed = 0
        async for piece in response.content.iter_any():
            passed += len(piece)
            if passed > MOST_BYTES:
                response.close()
                raise too_large(self._service, MOST_BYTES)
            yield piece

    async def _read_refusal(self, response: aiohttp.ClientResponse, mask: Mask) -> None:
        """Read a 429 whole: what it says decides for how long nobody calls."""
        body = b"".join([piece async for piece in self._pieces(response)])
        plain = _decompressed(body, _coding(response))
        code, words = code_and_words(self._service, plain, self._parts.redactor)
        sentence = f"{self._service.subject} is getting too many requests."
        limits = ReportedLimits.from_headers(response.headers)
        await self._grant.refused(
            RateLimited("inventory", sentence, code=code, message=words, reported=limits)
        )
        if _coding(response):
            PackedScan(self._service, _coding(response), mask).look(body)
            clean = body
        else:
            clean = mask.clean(body) + mask.rest()
        answer = web.Response(status=429, body=clean, headers=_headers(response, mask))
        self._refused = answer, BlockCode.known(code)

    async def deliver(self) -> web.StreamResponse:
        """Give the client what is left of its answer; the grant is over."""
        if self._refused is not None:
            answer, code = self._refused
            seconds = await self._blocked_for(code)
            answer.headers["Retry-After"] = _later_of(answer.headers.get("Retry-After"), seconds)
            return answer
        assert self._delivery is not None  # noqa: S101 - there was an answer
        if self._delivery.is_gone:
            self._seen.outcome = ClientGone.outcome
        await self._delivery.end()
        return self._delivery.answer

    async def _blocked_for(self, code: BlockCode) -> float:
        """How long nobody calls now; the usual time while the database does not say."""
        try:
            seconds = await self._parts.turns.blocked_for(self._call.key)
        except DatabaseUnavailable:
            seconds = None
        return pause_seconds(code, 0) if seconds is None else seconds

    def _failure_of(self, accident: Exception) -> ServiceError:
        if isinstance(accident, ServiceError):
            return accident
        return failure_of_accident(self._service, accident, TOTAL_SECONDS)

    def _hang_up(self) -> None:
        """An answer that has begun and does not end must not look like a whole one."""
        if self._delivery is not None:
            self._delivery.abort()

    def _report(self, seconds: float) -> None:
        seen, center = self._seen, self._call.key.data_center
        self._parts.observer(Observed("inventory", center, seen.outcome, seen.status, seconds))


def is_gone(request: web.BaseRequest) -> bool:
    """Whether the client has closed its connection."""
    return request.transport is None or request.transport.is_closing()


def _with_params(url: URL, params: Mapping[str, str]) -> URL:
    """The address with the credential behind everything else, which stays as it was sent."""
    added = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in params.items())
    query = "&".join(part for part in (url.raw_query_string, added) if part)
    return URL(f"{url.with_query(None)}{'?' if query else ''}{query}", encoded=True)


def _data(body: Spool) -> bytes | AsyncIterator[bytes] | None:
    if body.size > IN_MEMORY_BYTES:
        return body.stream()
    return b"".join(body.pieces()) or None


def _secrets_in(signed: Signed) -> list[str]:
    """The credential, as it is and as addresses have it."""
    in_headers = (value.rpartition(" ")[2] for value in signed.headers.values())
    plain = [*signed.params.values(), *in_headers]
    forms = (form for one in plain for form in (one, quote(one, safe=""), quote_plus(one)))
    return [*dict.fromkeys(forms)]


def _headers(response: aiohttp.ClientResponse, mask: Mask) -> "list[tuple[str, str]]":
    """What is passed on of the answer's headers; the length of a body stays as it is."""
    headers = passed_headers(list(response.headers.items()))
    length = response.headers.get("Content-Length")
    if length is not None and response.status != HTTPStatus.TOO_MANY_REQUESTS:
        headers.append(("Content-Length", length))
    return [(name, mask.text(value)) for name, value in headers]


def _coding(response: aiohttp.ClientResponse) -> str:
    """How the answer is compressed; "" where it is as it is."""
    coding = response.headers.get("Content-Encoding", "").strip().casefold()
    return "" if coding == "identity" else coding


def _decompressed(body: bytes, coding: str) -> bytes:
    if coding not in READABLE_CODINGS:
        return body
    with suppress(zlib.error):
        return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(body, PIECE_BYTES)
    return b""


def _later_of(sent: str | None, seconds: float) -> str:
    """The longer one of the service's `Retry-After`, where it is in seconds, and of the pause."""
    is_number = sent is not None and sent.isascii() and sent.isdigit()
    theirs = int(sent) if sent and is_number and len(sent) <= LONGEST_RETRY_DIGITS else 0
    return whole_seconds(max(theirs, seconds))
