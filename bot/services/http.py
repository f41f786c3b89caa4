"""The HTTP client for all services: a shared session, limits on time and size, no redirects."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import TypeVar
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

import aiohttp
import structlog

from bot.errors import GatehouseError
from bot.ops.clock import Clock
from bot.ops.redaction import Redactor
from bot.services.calls import Answer, Observed, Observer, ReportedLimits, ServiceCall
from bot.services.errors import (
    RateLimited,
    ServiceError,
    ServiceFailed,
    ServiceUnreachable,
)
from bot.services.failures import (
    HeldUpError,
    NeverSentError,
    UnsendableError,
    failure_of_accident,
    failure_of_status,
    too_large,
)

CONNECT_SECONDS = 5.0
DNS_SECONDS = 60
TOTAL_SECONDS = 10.0
MOST_BYTES = 10 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
LARGE_BYTES = 256 * 1024
RETRY_PAUSES_SECONDS = (0.3, 1.0)

log = structlog.get_logger(__name__)

Read = TypeVar("Read")


class Permit:
    """An attempt at a call, from the quota's point of view; this one is for calls without a quota.

    If the context ends without `responded()`, no answer arrived. If it ends without an error, the
    call succeeded, so the organization is not blocked.
    """

    def __init__(self, is_fresh: Callable[[], bool] = lambda: True) -> None:
        self._is_fresh = is_fresh

    def may_send(self) -> bool:
        """Return True if the request may be sent now; called right before sending."""
        return self._is_fresh()

    async def responded(self, limits: ReportedLimits | None = None) -> None:
        """Record that the response headers arrived, with the limits in them."""

    async def refused(self, error: RateLimited) -> None:
        """Record a 429."""


OpenPermit = Callable[[], AbstractAsyncContextManager[Permit]]
"""Opens the context of one attempt, which lasts from before sending until after the body."""


def unlimited() -> AbstractAsyncContextManager[Permit]:
    """Open a permit for a call without a quota."""
    return nullcontext(Permit())


def proxy_for(host: str) -> str | None:
    """Return the proxy for `https://` to a host, or None to connect directly."""
    proxies = getproxies_environment()
    return None if proxy_bypass_environment(host, proxies) else proxies.get("https")


@asynccontextmanager
async def open_session() -> AsyncIterator[aiohttp.ClientSession]:
    """Open the process's session: no cookies, verified TLS, proxies from the environment."""
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ttl_dns_cache=DNS_SECONDS)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=jar,
        request_class=CheckedRequest,
        # Only with proxies, because this also makes aiohttp read credentials from ~/.netrc.
        trust_env=bool(getproxies_environment()),
        headers={"User-Agent": "gatehouse"},
        # For callers that don't set a timeout, such as Slack's client with a session passed to it.
        timeout=aiohttp.ClientTimeout(total=TOTAL_SECONDS, sock_connect=CONNECT_SECONDS),
    ) as session:
        yield session


class CheckedRequest(aiohttp.ClientRequest):
    """A request that checks right before sending that it may still be sent.

    The process may have been suspended since the grant, or since the connection was made.
    """

    may_send: Callable[[], bool] | None = None

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        """Write the request, unless it may no longer be sent or a header can't be."""
        if self.may_send is not None and not self.may_send():
            raise HeldUpError
        try:
            return await super().send(conn)
        except ValueError as error:
            # The exception is about the headers, which its text quotes; nothing has been sent yet.
            raise UnsendableError from error


def once(may_send: Callable[[], bool]) -> aiohttp.ClientMiddlewareType:
    """Return a middleware that checks `may_send` right before sending, and never sends again.

    aiohttp resends a GET after two exceptions (client.py, `retry_persistent_connection`) without
    the quota guard's knowledge, so the service might count two calls for one grant.
    """

    async def send(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if isinstance(request, CheckedRequest):
            request.may_send = may_send
        try:
            return await handler(request)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            raise aiohttp.ClientConnectionError(str(error)) from error

    return send


class ServiceHttp:
    """Calls services using the shared session; `observer` receives each attempt."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        redactor: Redactor,
        observer: Observer,
        clock: Clock,
        *,
        total_seconds: float = TOTAL_SECONDS,
    ) -> None:
        self._session = session
        self._observer = observer
        self._clock = clock
        self._total_seconds = total_seconds
        self.redactor = redactor

    async def request(
        self,
        call: ServiceCall,
        read: Callable[[Answer], Read],
        permits: OpenPermit = unlimited,
        *,
        retried: bool = True,
    ) -> Read:
        """Send the call; return the result of `read` for a complete 2xx answer.

        `read` raises a ServiceError for an unreadable answer. Large answers are read in a thread,
        so `read` must only access the answer.

        If `retried`, a GET is attempted up to three times on connection errors and 5xx, but not
        after a timeout, because a person is waiting. Each attempt needs a permit.
        """
        for pause in RETRY_PAUSES_SECONDS if retried and call.method == "GET" else ():
            try:
                async with permits() as permit:
                    return await self._attempt(call, read, permit)
            except (ServiceUnreachable, ServiceFailed) as failure:
                if not failure.retryable:
                    raise
            await self._clock.sleep(pause)
        async with permits() as permit:
            return await self._attempt(call, read, permit)

    async def _attempt(
        self, call: ServiceCall, read: Callable[[Answer], Read], permit: Permit
    ) -> Read:
        started, status, outcome = self._clock.monotonic(), None, "cancelled"
        try:
            deadline = asyncio.get_running_loop().time() + self._total_seconds
            async with await self._send(call, permit.may_send, deadline) as response:
                status = response.status
                await permit.responded(ReportedLimits.from_headers(response.headers))
                body = await self._body(call, response, deadline)
            failure = failure_of_status(call, status, response.headers, body, self.redactor)
            if failure is not None:
                raise failure
            answer = Answer(status, response.headers, body)
            # Parsing ten thousand organizations would delay other people's acknowledgements.
            is_large = len(body) >= LARGE_BYTES
            result = await asyncio.to_thread(read, answer) if is_large else read(answer)
            outcome = "ok"
        except GatehouseError as error:
            outcome = error.outcome
            if isinstance(error, RateLimited):
                await permit.refused(error)
            raise
        finally:
            seconds = self._clock.monotonic() - started
            record = log.info if outcome == "ok" else log.warning
            record(
                "service call",
                service=call.service,
                data_center=call.data_center,
                method=call.method,
                path=call.path,
                status=status,
                outcome=outcome,
                seconds=round(seconds, 3),
            )
            self._observer(Observed(call.service, call.data_center, outcome, status, seconds))
        return result

    async def _send(
        self, call: ServiceCall, may_send: Callable[[], bool], deadline: float
    ) -> aiohttp.ClientResponse:
        with self._accidents(call):
            async with asyncio.timeout_at(deadline):
                return await self._session.request(
                    call.method,
                    call.url,
                    params=call.params,
                    headers=call.headers,
                    data=None if call.form is None else aiohttp.FormData(call.form),
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
                    middlewares=(once(may_send),),
                )
        raise AssertionError  # pragma: no cover

    async def _body(
        self, call: ServiceCall, response: aiohttp.ClientResponse, deadline: float
    ) -> bytes:
        """Read the body, measuring its size when received and decompressed."""
        body = bytearray()
        try:
            with self._accidents(call):
                async with asyncio.timeout_at(deadline):
                    if (response.content_length or 0) > MOST_BYTES:
                        raise too_large(call, MOST_BYTES)
                    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                        body += chunk
                        if len(body) > MOST_BYTES:
                            raise too_large(call, MOST_BYTES)
        except ServiceError:
            response.close()
            if response.ok:
                raise
            return b""
        return bytes(body)

    @contextmanager
    def _accidents(self, call: ServiceCall) -> Iterator[None]:
        """Convert HTTP library exceptions to ServiceError without their text, which has URLs."""
        try:
            yield
        except (aiohttp.ClientError, OSError, NeverSentError) as accident:
            raise failure_of_accident(call, accident, self._total_seconds) from None
