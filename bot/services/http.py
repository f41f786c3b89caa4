"""The HTTP client for all services, with a shared session and limits on time and size."""

import asyncio
import io
import re
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

import aiohttp
import structlog
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from yarl import URL

from bot.errors import GatehouseError
from bot.ops.clock import Clock
from bot.ops.redaction import Redactor
from bot.services.calls import TOTAL_SECONDS, Observed, Observer, ReportedLimits, ServiceCall
from bot.services.errors import (
    RateLimited,
    ResponseTooLarge,
    ResponseUnreadable,
    ServiceError,
    ServiceFailed,
    ServiceTimeout,
    ServiceUnreachable,
    failure_of_status,
)

CONNECT_SECONDS = 5.0
DNS_SECONDS = 60
MOST_BYTES = 10 * 1024 * 1024
# The other services' responses are small. Parsing a large one would delay everyone.
MOST_SMALL_BYTES = 1024 * 1024
# 64 KiB for a header's value, and room for its name.
MOST_HEADER_BYTES = 66 * 1024
MOST_HEADERS = 1_024
CHUNK_BYTES = 64 * 1024
LARGE_BYTES = 256 * 1024
RETRY_PAUSES_SECONDS = (0.3, 1.0)
# With the compressions that `unpacked` understands.
OWN_HEADERS = {"Accept-Encoding": "gzip, deflate", "User-Agent": "gatehouse"}
_ZLIB = (["gzip"], ["x-gzip"], ["deflate"])

log = structlog.get_logger(__name__)

Read = TypeVar("Read")


class Permit:
    """Permission for one attempt at a call. This base class is for calls without a quota.

    If a permit's context ends before `responded()` is called, no response arrived. If the context
    ends without an error, the call succeeded, so the organization isn't blocked.
    """

    # The HTTP status of the response, if it arrived.
    status: int | None = None

    def __init__(self, may_send: Callable[[], bool] = lambda: True) -> None:
        self.may_send = may_send
        """Returns True if the permit is still valid. The client asks this right before sending."""

    async def responded(self, limits: ReportedLimits | None = None) -> None:
        """Record when the response's headers arrived, and the limits that they contain, if any."""

    async def refused(self, error: RateLimited) -> None:
        """Record that the service responded with a 429."""


OpenPermit = Callable[[], AbstractAsyncContextManager[Permit]]
"""A function that opens a permit. The permit lasts until the response's body has been read."""


def unlimited() -> AbstractAsyncContextManager[Permit]:
    """Open a permit for a call without a quota."""
    return nullcontext(Permit())


def proxy_for(url: URL) -> str | None:
    """Return the proxy to use for requests to a URL, or None to connect directly."""
    proxies = getproxies_environment()
    return None if proxy_bypass_environment(url.host or "", proxies) else proxies.get(url.scheme)


def proxy_problem(url: URL, accident: Exception) -> str | None:
    """Return why no connection to the URL's proxy was made, or None if that isn't the problem."""
    proxy = proxy_for(url)
    if proxy is None or not isinstance(accident, _OF_PROXY):
        return None
    return f"the proxy {URL(proxy).host} can't be reached. Check {url.scheme.upper()}_PROXY."


@lru_cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS settings for all connections.

    aiohttp creates its own before the settings are read, so it would ignore `SSL_CERT_FILE`.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


@asynccontextmanager
async def open_session() -> AsyncIterator[aiohttp.ClientSession]:
    """Open the HTTP session for all requests of this process.

    The session verifies TLS certificates, uses the proxies set in environment variables, and
    doesn't store cookies.
    """
    connector = aiohttp.TCPConnector(
        ssl=tls_context(), limit=0, keepalive_timeout=30, ttl_dns_cache=DNS_SECONDS
    )
    protocol = partial(HeadersFirst, loop=asyncio.get_running_loop())
    connector._factory = protocol  # type: ignore[assignment]  # noqa: SLF001 - not a setting
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        request_class=CheckedRequest,
        # Off without proxies, because this also makes aiohttp read credentials from ~/.netrc.
        trust_env=bool(getproxies_environment()),
        max_line_size=MOST_HEADER_BYTES,
        max_field_size=MOST_HEADER_BYTES,
        max_headers=MOST_HEADERS,
        # The default for callers that don't set a timeout, such as Slack's client.
        timeout=aiohttp.ClientTimeout(total=TOTAL_SECONDS, sock_connect=CONNECT_SECONDS),
    ) as session:
        yield session


# The first line of a 429, and what is read of it if its headers aren't valid or complete HTTP.
_REFUSED_LINE = re.compile(rb"HTTP/[0-9.]+ +429\b")
_REFUSED = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"


class HeadersFirst(ResponseHandler):
    """Receives responses. If a body isn't valid HTTP, the headers before it are still read.

    aiohttp would drop headers that arrived together with such a body, so a 429 would be unknown.
    Otherwise, the body would never end. aiohttp would also take what a service sends without being
    asked for the response to the next request on the connection, which is another caller's.
    """

    # Each request has a parser of its own.
    _answered: object = None
    _is_refused = False

    async def read(self) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
        """Return the next response. Only interim ones (1xx) are followed by another."""
        try:
            message, payload = await super().read()
        except (HttpProcessingError, aiohttp.ClientConnectionError):
            if not self._is_refused:
                raise
            self.set_response_params()
            super().data_received(_REFUSED)
            message, payload = await super().read()
        if message.code >= HTTPStatus.OK:
            self._answered = self._parser
            self._is_refused = False
        return message, payload

    def data_received(self, data: bytes) -> None:
        """Parse the headers line by line, and then what follows them."""
        is_answered = self._answered is self._parser and self._payload and self._payload.is_eof()
        if data and is_answered:
            self.close()
            return
        lines = io.BytesIO(data)
        while self.exception() is None and (not self._payload or self._payload.is_eof()):
            line = lines.readline()
            if not line:
                break
            self._is_refused |= _REFUSED_LINE.match(line) is not None
            super().data_received(line)
        super().data_received(lines.read())
        if self.exception() is not None and self._payload and not self._payload.is_eof():
            self._payload.set_exception(NotHttpError())


class CheckedRequest(aiohttp.ClientRequest):
    """A request that checks its permit again right before it's sent.

    The process may have been suspended after it got the permit, or after it connected.
    """

    may_send: Callable[[], bool] | None = None
    is_sent = False

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        """Send the request, or raise NeverSentError if its permit has expired."""
        if self.may_send is not None and not self.may_send():
            raise NeverSentError
        self.is_sent = True
        return await super().send(conn)


async def send_once(
    may_send: Callable[[], bool],
    request: aiohttp.ClientRequest,
    handler: aiohttp.ClientHandlerType,
) -> aiohttp.ClientResponse:
    """Send a request at most once, and only if `may_send` allows it. This is a middleware.

    Without it, aiohttp would resend a GET after some connection errors (client.py,
    `retry_persistent_connection`), and the service could count two calls for one permit.
    """
    if isinstance(request, CheckedRequest):
        request.may_send = may_send
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (
        aiohttp.ClientOSError,
        aiohttp.ServerDisconnectedError,
        aiohttp.ClientResponseError,
    ) as error:
        if isinstance(request, CheckedRequest) and not request.is_sent:
            # Only a proxy that is asked to connect answers before that.
            raise aiohttp.ClientHttpProxyError(request.request_info, ()) from error
        if isinstance(error, aiohttp.ClientResponseError):
            raise
        raise aiohttp.ClientConnectionError(str(error)) from error


class NotHttpError(aiohttp.ClientPayloadError):
    """The body isn't valid HTTP."""


class NeverSentError(Exception):
    """The request wasn't sent, because its permit had expired."""


_HELD_UP = "The call to {label} took too long to start, so it wasn't sent. Please try again."
# With a proxy, only its own name is looked up.
_OF_PROXY = (
    aiohttp.ClientProxyConnectionError,
    aiohttp.ClientConnectorDNSError,
    aiohttp.ConnectionTimeoutError,
)
_UNCONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_NEVER_SENT: Sequence[tuple[type[Exception] | tuple[type[Exception], ...], str]] = (
    (NeverSentError, _HELD_UP),
    (aiohttp.ClientConnectorCertificateError, "{subject} has an invalid TLS certificate."),
    (ssl.SSLError, "{subject} can't be reached, because no TLS connection could be made."),
    (
        aiohttp.ClientConnectorDNSError,
        "{subject} can't be reached, because its host name can't be found.",
    ),
    (
        aiohttp.ClientHttpProxyError,
        "{subject} can't be reached, because the proxy refused to connect.",
    ),
    (_UNCONNECTED, "{subject} can't be reached."),
)


def failure_of_accident(call: ServiceCall, accident: Exception, seconds: float) -> ServiceError:
    """Convert an exception from the HTTP library to a ServiceError.

    The exception's text isn't used, because it may contain URLs.
    """
    if problem := proxy_problem(call.url, accident):
        sentence = f"{call.subject} can't be reached, because {problem}"
        return ServiceUnreachable(call.service, sentence, sent=False)
    for types, unsent in _NEVER_SENT:
        if isinstance(accident, types):
            sentence = unsent.format(subject=call.subject, label=call.label)
            return ServiceUnreachable(call.service, sentence, sent=False)
    if isinstance(accident, TimeoutError):
        sentence = f"{call.subject} didn't respond within {seconds:g} seconds."
        return ServiceTimeout(call.service, sentence)
    if isinstance(accident, aiohttp.ClientResponseError | NotHttpError):
        sentence = f"{call.subject} sent a response that Gatehouse can't read."
        return ResponseUnreadable(call.service, sentence)
    return ServiceUnreachable(call.service, f"{call.subject} closed the connection early.")


@dataclass(frozen=True)
class ServiceHttp:
    """Sends calls to services, and reports each attempt to `observer`."""

    session: aiohttp.ClientSession
    redactor: Redactor
    observer: Observer
    clock: Clock
    total_seconds: float = TOTAL_SECONDS

    async def request(
        self,
        call: ServiceCall,
        read: Callable[[bytes], Read],
        permits: OpenPermit = unlimited,
        *,
        retried: bool = True,
    ) -> Read:
        """Send the call, pass the body of a 2xx response to `read`, and return the result.

        The body is never shown to anyone. `read` raises a ServiceError if it can't use it. For
        a large body, `read` runs in a thread, so it must not access shared data.

        With `retried`, a GET is repeated up to twice after connection errors and 5xx statuses, but
        not if that took long, because a person is waiting. Each attempt needs its own permit.
        """
        time = asyncio.get_running_loop().time
        ends_at = time() + CONNECT_SECONDS
        pauses = iter(RETRY_PAUSES_SECONDS if retried and call.method == "GET" else ())
        while True:
            try:
                async with permits() as permit:
                    return await self._attempt(call, read, permit)
            except (ServiceUnreachable, ServiceFailed) as error:
                pause = next(pauses, None)
                if pause is None or time() + error.retry_after >= ends_at:
                    raise
                seconds = max(pause, error.retry_after)
            await self.clock.sleep(seconds)

    async def _attempt(
        self, call: ServiceCall, read: Callable[[bytes], Read], permit: Permit
    ) -> Read:
        started = self.clock.monotonic()
        status = None
        body = b""
        outcome = "cancelled"
        try:
            try:
                async with (
                    limited(call, self.total_seconds),
                    sending(
                        self.session,
                        call,
                        permit,
                        params=call.params,
                        headers={**call.headers, **OWN_HEADERS},
                        data=None if call.form is None else aiohttp.FormData(call.form),
                    ) as response,
                ):
                    status = response.status
                    await permit.responded(ReportedLimits.from_headers(response.headers))
                    body = unpacked(call, response, await body_of(call, response))
            except ServiceError:
                # An error's status counts, whatever becomes of its body.
                if status is None or response.ok:
                    raise
            failure = failure_of_status(call, status, response.headers, body, self.redactor)
            if failure is not None:
                raise call.explain(failure)
            # Parsing a large response here would block the event loop and delay other people.
            is_large = len(body) >= LARGE_BYTES
            result = await asyncio.to_thread(read, body) if is_large else read(body)
            outcome = "ok"
        except GatehouseError as error:
            outcome = error.outcome
            if isinstance(error, RateLimited):
                await permit.refused(error)
            raise
        finally:
            record = log.info if outcome == "ok" else log.warning
            record(
                "service call",
                service=call.service,
                data_center=call.data_center,
                method=call.method,
                # Unlike the query, the path has no credentials.
                path=call.url.path,
                status=status,
                outcome=outcome,
                seconds=round(self.clock.monotonic() - started, 3),
            )
            self.observer(Observed(call.service, call.data_center, outcome, status))
        return result


@asynccontextmanager
async def limited(call: ServiceCall, seconds: float) -> AsyncIterator[None]:
    """Stop after so many seconds, and convert the HTTP library's exceptions to ServiceError."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (aiohttp.ClientError, OSError, NeverSentError) as accident:
        raise failure_of_accident(call, accident, seconds) from None


def sending(
    session: aiohttp.ClientSession,
    call: ServiceCall,
    permit: Permit,
    **options: Any,  # noqa: ANN401 - as in aiohttp
) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
    """Send a call at most once, and return its response. Use it inside `limited`."""
    return session.request(
        call.method,
        call.url,
        allow_redirects=False,
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
        middlewares=(partial(send_once, permit.may_send),),
        # Otherwise, a body that breaks off would look whole, and a 429 with an unknown encoding
        # would be an error without a status.
        auto_decompress=False,
        **options,
    )


async def body_of(
    call: ServiceCall,
    response: aiohttp.ClientResponse,
    hold: Callable[[], Awaitable[None]] | None = None,
) -> bytes:
    """Return the body as it was sent. Raise ResponseTooLarge if it's too large.

    `hold` is awaited before the memory for a large body is used.
    """
    body = bytearray()
    most = _most_bytes(call)
    if (response.content_length or 0) > most:
        raise _too_large(call)
    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
        if hold is not None and len(body) <= LARGE_BYTES < len(body) + len(chunk):
            await hold()
        body += chunk
        if len(body) > most:
            raise _too_large(call)
    return bytes(body)


def is_packed(response: aiohttp.ClientResponse) -> bool:
    """Return True if `unpacked` decompresses a body with the response's headers."""
    told = ",".join(response.headers.getall("Content-Encoding", [])).casefold()
    codings = [coding.strip() for coding in told.split(",")]
    return [coding for coding in codings if coding not in {"", "identity"}] in _ZLIB


def unpacked(call: ServiceCall, response: aiohttp.ClientResponse, data: bytes) -> bytes:
    """Decompress a body, so that it can be read or masked. Other encodings stay.

    Raise ResponseUnreadable if the body is incomplete, or ResponseTooLarge.
    """
    if not is_packed(response):
        return data
    sentence = f"{call.subject} sent a compressed response that is incomplete."
    unreadable = ResponseUnreadable(call.service, sentence)
    most = _most_bytes(call)
    plain = b""
    # A body can have several parts.
    while data:
        # Some servers send deflate data without zlib's header.
        is_bare = data[0] & 0xF not in {0x8, 0xF}
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS if is_bare else zlib.MAX_WBITS | 32)
        try:
            plain += unpacker.decompress(data, most + 1 - len(plain))
        except zlib.error:
            raise unreadable from None
        if len(plain) > most:
            raise _too_large(call)
        if not unpacker.eof:
            raise unreadable
        # The last part may be filled up with zeros.
        data = unpacker.unused_data.lstrip(b"\0")
    return plain


def _most_bytes(call: ServiceCall) -> int:
    return MOST_BYTES if call.service in {"inventory", "api"} else MOST_SMALL_BYTES


def _too_large(call: ServiceCall) -> ResponseTooLarge:
    sentence = f"{call.subject} sent too much data (over {_most_bytes(call) >> 20} MiB)."
    return ResponseTooLarge(call.service, sentence)
