"""The gateway's HTTP server, which authenticates clients and handles their requests."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

import structlog
from aiohttp import ClientError, HttpVersion11, web
from yarl import URL

from bot.errors import GatehouseError, QuotaError, QuotaExhausted
from bot.gateway import answers, asking
from bot.gateway.clients import client_of
from bot.gateway.forward import Forwarder, GatewayCall, Seen
from bot.gateway.rules import (
    ORGANIZATION,
    GatewayRefusal,
    Headers,
    Target,
    forbidden,
    headers_to_send,
    malformed,
    seconds_to_wait,
    target_of,
    tokens_of,
)
from bot.gateway.turns import Stopping
from bot.metrics import Metrics
from bot.organizations.directory import OrganizationDirectory
from bot.organizations.rules import API, OrganizationKey
from bot.server import MOST_CONNECTIONS, Site
from bot.services.errors import ServiceUnreachable
from bot.services.http import LARGE_BYTES, MOST_BYTES
from bot.settings import Settings

log = structlog.get_logger(__name__)

HEALTH = "/healthz"
# Stands for the data center in the log and the metrics.
PROGRAMS = "testusers"
# The limit on open requests per client and process. Others are declined without being read.
MOST_AT_ONCE = 200
# The share of all connections that anyone may use. The rest is divided among the clients, so that a
# client without open requests always finds one, and no waiting request is closed to make room.
BUSY_SHARE = 0.9
# The large bodies that are held in memory, in the process and for one client.
MOST_LARGE = 8
MOST_LARGE_OF_ONE = 2
# For a client that keeps retrying: the seconds between declines, and the longest delay.
BETWEEN_DECLINES_SECONDS = 0.05
LONGEST_HOLD_SECONDS = 1.0
BUSY = "Too many requests are already open. Wait for some of them to finish."
FAULT = "Gatehouse had an internal error."
HANG_UP_SECONDS = 0.5
BODY_SECONDS = 30.0


@dataclass(eq=False)
class Gateway:
    """Handles requests from the team's other programs. It listens on `address`."""

    settings: Settings
    address: tuple[str, int]
    forwarder: Forwarder
    directory: OrganizationDirectory
    metrics: Metrics
    programs: asking.Programs

    def __post_init__(self) -> None:
        self.clients, self.apis = self.settings.gateway_clients, self.settings.apis
        # Clients can use Bearer or the scheme that the inventory service expects.
        self._schemes = ("Bearer", self.settings.inventory_auth_header.partition(" ")[0])
        access = self.forwarder.access
        self.metrics.expect_gateway(self.clients, access)
        self._paths = {center: access[center].root.raw_path for center in access}
        self._running = Counter[str]()
        # The requests with a large body.
        self._large = set[Seen]()
        self._idle = asyncio.Event()
        self._idle.set()
        # The time of the next decline that isn't delayed, for each client.
        self._next_decline = defaultdict[str, float](float)
        self._runner: web.ServerRunner
        self._is_stopping = False
        self.most_at_once = int(MOST_CONNECTIONS * BUSY_SHARE)
        left = MOST_CONNECTIONS - self.most_at_once
        self.most_if_full = max(1, left // max(1, len(self.clients)))
        self.addresses: list[str] = []

    async def listen(self) -> None:
        """Start accepting connections. Raise OSError if the address can't be used."""
        server = web.Server(self.handle, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=HANG_UP_SECONDS)
        await self._runner.setup()
        site = Site(self._runner, self.address, MOST_CONNECTIONS, answers.unreadable)
        await site.start()
        self.addresses = [f"http://{host}:{port}" for host, port, *_ in self._runner.addresses]
        log.info("gateway.listening", addresses=self.addresses)

    async def stop(self, seconds: float) -> None:
        """Stop accepting requests, reject waiting calls, and let running calls finish."""
        self._is_stopping = True
        self.forwarder.turns.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        await self._runner.cleanup()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Return the response to a request without revealing tracebacks or credentials."""
        if request.raw_path.partition("?")[0] == HEALTH and request.method in {"GET", "HEAD"}:
            return web.Response(text="ok", headers=answers.OWN)
        seen = Seen()
        try:
            return await self._answer(request, seen)
        except GatehouseError as error:
            has_codes = seen.data_center not in {*self.apis, PROGRAMS}
            seen.outcome, answer = answers.answer_to(error, has_codes=has_codes)
            return answer
        except Exception:
            seen.outcome = "broken"
            log.exception("gateway.broken")
            return answers.message(500, FAULT)
        finally:
            self.metrics.count_gateway(seen.client, seen.data_center, seen.outcome, seen.waited)
            # Requests without a valid token are logged only at the debug level, because anyone who
            # can reach the port can send any number of them.
            write = log.info if seen.client else log.debug
            write("gateway request", method=request.method, **vars(seen))

    async def _answer(self, request: web.BaseRequest, seen: Seen) -> web.StreamResponse:
        if self._is_stopping:
            raise Stopping
        authorizations = request.headers.getall("Authorization", [])
        tokens = tokens_of(authorizations, request.raw_path, self._schemes)
        seen.client = client_of(self.clients, tokens)
        # As a last safeguard, keep the token out of the log from here on.
        self.forwarder.redactor.add(next(iter(tokens)))
        path = request.raw_path.partition("?")[0]
        if path == asking.PATH or path.startswith(f"{asking.PATH}/"):
            seen.data_center, seen.path = PROGRAMS, path
            with self._opened(seen.client):
                read = partial(read_body, request)
                answer = await self.programs.answer(request, seen.client, read)
            seen.outcome, seen.status = "ok", answer.status
            return answer
        target = target_of(request.raw_path, self._paths, self.apis)
        seen.data_center, seen.path = target.data_center, target.path
        if request.method not in self.clients[seen.client].methods:
            raise forbidden(f"The client {seen.client} isn't allowed to use {request.method}.")
        is_api = target.data_center in self.apis
        headers = headers_to_send(list(request.headers.items()), is_api=is_api)
        with self._opened(seen.client):
            return await self._forward(request, target, headers, seen)

    async def _forward(
        self, request: web.BaseRequest, target: Target, headers: Headers, seen: Seen
    ) -> web.StreamResponse:
        began = asyncio.get_running_loop().time()
        try:
            key, url = await self._address(seen.client, target)
            seen.organization = key.organization_id
            wait = seconds_to_wait(request.headers.getall("Prefer", []))
            call = GatewayCall(seen.client, key, request.method, url, headers, wait)
            body = await read_body(request, take_place=partial(self._take_place, seen))
            return await self.forwarder.forward(request, call, body, seen)
        except (QuotaError, ServiceUnreachable) as error:
            if isinstance(error, QuotaError) or not error.sent:
                await self._hold_back(seen.client, began)
            raise
        finally:
            self._large.discard(seen)

    @contextmanager
    def _opened(self, name: str) -> Iterator[None]:
        """Count an open request, or raise QuotaExhausted if the client has too many."""
        is_full = self._running.total() >= self.most_at_once
        if self._running[name] >= (self.most_if_full if is_full else MOST_AT_ONCE):
            raise QuotaExhausted(BUSY, limit_kind="concurrent", seconds=1)
        self._running[name] += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._running[name] -= 1
            if not self._running.total():
                self._idle.set()

    def _take_place(self, seen: Seen) -> None:
        """Count a large body, or raise GatewayRefusal if too many are already held."""
        held = [other.client for other in self._large]
        if len(held) >= MOST_LARGE or held.count(seen.client) >= MOST_LARGE_OF_ONE:
            raise GatewayRefusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "crowded",
                f"Gatehouse holds at most {MOST_LARGE} large request bodies at once, and"
                f" {MOST_LARGE_OF_ONE} of one client. Wait for some of them to finish.",
            )
        self._large.add(seen)

    async def _hold_back(self, client: str, began: float) -> None:
        """Delay the response if the client keeps retrying and the request hasn't already waited."""
        now = asyncio.get_running_loop().time()
        seconds = min(max(0.0, self._next_decline[client] - now), LONGEST_HOLD_SECONDS)
        self._next_decline[client] = now + seconds + BETWEEN_DECLINES_SECONDS
        await asyncio.sleep(max(0.0, began + seconds - now))

    async def _address(self, name: str, target: Target) -> tuple[OrganizationKey, URL]:
        """Return what the call counts against, and the URL to call.

        Raise GatewayRefusal if the target names what the client can't use.
        """
        center = target.data_center
        allowed = self.clients[name].organizations
        query = target.query
        if center not in self.apis:
            key = await self._named(name, allowed, target)
            if key is None:
                key = OrganizationKey(center, await self.directory.representative(center))
                if not {"*", key.path} & {*allowed}:
                    # Don't name the organization, because the client can't know it.
                    raise forbidden(
                        "Set organization_id to an organization that this client can use."
                    )
                added = f"{ORGANIZATION}={key.organization_id}" if key.organization_id else ""
                query = "&".join(filter(None, (query, added)))
        elif center in allowed:
            key = OrganizationKey(API, center)
        else:
            raise forbidden(f"The client {name} isn't allowed to call {center}.")
        root = self.forwarder.access[center].root
        url = URL(f"{root.origin()}{target.path}{'?' if query else ''}{query}", encoded=True)
        return key, url

    async def _named(
        self, name: str, allowed: Sequence[str], target: Target
    ) -> OrganizationKey | None:
        """Return the organization that the target names, if any."""
        if target.lists_organizations and "*" not in allowed:
            raise forbidden(
                f"The client {name} can use only some organizations, so it can't list all of them."
            )
        named = set[OrganizationKey]()
        for organization_id in target.organizations:
            key = OrganizationKey(target.data_center, organization_id)
            # Words, as in `organizations/templates`, name no organization.
            is_word = not any(map(str.isdigit, organization_id))
            if "*" in allowed:
                is_allowed = is_word or await self.directory.lists(key)
            else:
                is_allowed = key.path in allowed
            if not is_allowed:
                raise forbidden(
                    f"The client {name} isn't allowed to make calls for {organization_id}."
                )
            if not is_word:
                named.add(key)
        if len(named) > 1:
            raise malformed("Name only one organization, in organization_id or in the path.")
        return next(iter(named), None)


async def read_body(
    request: web.BaseRequest,
    most: int = MOST_BYTES,
    take_place: Callable[[], None] = lambda: None,
) -> bytes:
    """Return the request's body. First send `100 Continue` if the client expects it.

    `take_place` is called before a large body is read, and raises GatewayRefusal if it can't be.
    """
    sentence = f"The body is larger than {most >> 10:,} KiB."
    too_large = GatewayRefusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", sentence)
    length = request.content_length or 0
    if length > most:
        raise too_large
    if length > LARGE_BYTES:
        take_place()
    expected = request.headers.get("Expect", "").strip().casefold()
    # HTTP/1.0 has no interim responses (RFC 9110, section 15.2).
    if expected == "100-continue" and request.version >= HttpVersion11:
        with suppress(ConnectionError, ClientError):
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            # `100 Continue` isn't part of the response, which hasn't started yet.
            request.writer.output_size = 0
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.content.iter_any():
                if not length and len(body) <= LARGE_BYTES < len(body) + len(piece):
                    take_place()
                body += piece
                if len(body) > most:
                    raise too_large
    except TimeoutError:
        sentence = f"The body didn't arrive within {BODY_SECONDS:g} seconds."
        raise GatewayRefusal(HTTPStatus.REQUEST_TIMEOUT, "too_slow", sentence) from None
    except (web.RequestPayloadError, ClientError, ConnectionError, RuntimeError, ValueError):
        # aiohttp raises RuntimeError if the connection was closed before the first read.
        raise malformed("The request body is incomplete.") from None
    return bytes(body)
