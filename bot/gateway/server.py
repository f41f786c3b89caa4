"""The gateway's HTTP server, which authenticates clients and handles their requests."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import IO

import structlog
from aiohttp import ClientError, HttpVersion11, web
from yarl import URL

from bot.errors import GatehouseError, QuotaError
from bot.gateway import answers
from bot.gateway.clients import client_of
from bot.gateway.forward import Forwarder, GatewayCall, Seen, open_body
from bot.gateway.rules import (
    ORGANIZATION,
    GatewayRefusal,
    Target,
    forbidden,
    headers_to_send,
    malformed,
    seconds_to_wait,
    target_of,
    tokens_of,
)
from bot.gateway.turns import Stopping
from bot.organizations.directory import OrganizationDirectory
from bot.organizations.rules import OrganizationKey
from bot.server import Site
from bot.services.errors import ServiceUnreachable
from bot.services.http import MOST_BYTES
from bot.settings.model import ClientSettings

log = structlog.get_logger(__name__)

HEALTH = "/healthz"
# The limit on open requests per client and process. Others are declined without being read.
MOST_AT_ONCE = 200
# The maximum share of all connections that may have open requests. The rest stay free, so that
# connections with waiting requests are never closed to make room.
BUSY_SHARE = 0.9
# For a client that keeps retrying: the seconds between declines, and the longest delay.
BETWEEN_DECLINES_SECONDS = 0.05
LONGEST_HOLD_SECONDS = 1.0
FAULT = "Gatehouse had an internal error."
HANG_UP_SECONDS = 0.5
BODY_SECONDS = 30.0


Observe = Callable[[str, str, str, float], None]
"""A function that receives each request's client, data center, outcome, and seconds waited.

It must not raise an exception.
"""


@dataclass(eq=False)
class Gateway:
    """Handles requests from the team's other programs.

    `schemes` are the `Authorization` schemes accepted for tokens. `observe` is called for each
    request, to update the metrics.
    """

    forwarder: Forwarder
    clients: Mapping[str, ClientSettings]
    schemes: Sequence[str]
    directory: OrganizationDirectory
    observe: Observe

    def __post_init__(self) -> None:
        access = self.forwarder.access
        self._paths = {center: access[center].root.raw_path for center in access}
        self._running: Counter[str] = Counter()
        self._idle = asyncio.Event()
        self._idle.set()
        # The time of the next decline that isn't delayed, for each client.
        self._next_decline: defaultdict[str, float] = defaultdict(float)
        self._runner: web.ServerRunner | None = None
        self._is_stopping = False
        self.most_at_once = MOST_AT_ONCE
        self.addresses: list[str] = []

    async def listen(self, address: tuple[str, int], most: int) -> None:
        """Start accepting up to `most` connections. Raise OSError if the address can't be used."""
        self.most_at_once = int(most * BUSY_SHARE)
        server = web.Server(self.handle, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=HANG_UP_SECONDS)
        await runner.setup()
        await Site(runner, address, most, answers.unreadable).start()
        self._runner = runner
        self.addresses = [f"http://{host}:{port}" for host, port, *_ in runner.addresses]
        log.info("gateway.listening", addresses=self.addresses)

    async def stop(self, seconds: float) -> None:
        """Stop accepting requests, reject waiting calls, and let running calls finish."""
        self._is_stopping = True
        self.forwarder.turns.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        if self._runner is not None:
            await self._runner.cleanup()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Return the response to a request without revealing tracebacks or credentials."""
        if request.raw_path.partition("?")[0] == HEALTH and request.method == "GET":
            return web.Response(text="ok", headers=answers.OWN)
        seen = Seen()
        try:
            return await self._answer(request, seen)
        except GatehouseError as error:
            seen.outcome, answer = answers.answer_to(error)
            return answer
        except Exception:
            seen.outcome = "broken"
            log.exception("gateway.broken")
            return answers.message(500, FAULT)
        finally:
            self.observe(seen.client, seen.data_center, seen.outcome, seen.waited)
            # Requests without a valid token are logged only at the debug level, because anyone who
            # can reach the port can send any number of them.
            write = log.info if seen.client else log.debug
            write("gateway request", method=request.method, **asdict(seen))

    async def _answer(self, request: web.BaseRequest, seen: Seen) -> web.StreamResponse:
        if self._is_stopping:
            raise Stopping
        began = asyncio.get_running_loop().time()
        authorizations = request.headers.getall("Authorization", [])
        tokens = tokens_of(authorizations, request.raw_path, self.schemes)
        name = client_of(self.clients, tokens)
        # As a last safeguard, keep the token out of the log from here on.
        self.forwarder.redactor.add(next(iter(tokens)))
        seen.client = name
        target = target_of(request.raw_path, self._paths)
        seen.data_center = target.data_center
        seen.path = target.path
        if request.method not in self.clients[name].methods:
            raise forbidden(f"The client {name} isn't allowed to use {request.method}.")
        headers = headers_to_send(list(request.headers.items()))
        if self._running[name] >= MOST_AT_ONCE or self._running.total() >= self.most_at_once:
            sentence = "Too many requests are already open. Wait for some of them to finish."
            seen.outcome = "declined_concurrent"
            return answers.declined("concurrent", 1070, sentence, 1)
        self._running[name] += 1
        self._idle.clear()
        try:
            await self._require_organizations(name, target)
            key, url = await self._address(name, target)
            seen.organization = key.organization_id
            wait = seconds_to_wait(request.headers.getall("Prefer", []))
            call = GatewayCall(name, key, request.method, url, headers, wait)
            with open_body() as body:
                await read_body(request, body)
                return await self.forwarder.forward(request, call, body, seen)
        except (QuotaError, ServiceUnreachable) as error:
            if isinstance(error, QuotaError) or not error.sent:
                await self._hold_back(name, began)
            raise
        finally:
            self._running[name] -= 1
            if not self._running.total():
                self._idle.set()

    async def _hold_back(self, client: str, began: float) -> None:
        """Delay the response if the client keeps retrying and the request hasn't already waited."""
        now = asyncio.get_running_loop().time()
        seconds = min(max(0.0, self._next_decline[client] - now), LONGEST_HOLD_SECONDS)
        self._next_decline[client] = now + seconds + BETWEEN_DECLINES_SECONDS
        await asyncio.sleep(max(0.0, began + seconds - now))

    async def _require_organizations(self, name: str, target: Target) -> None:
        """Raise GatewayRefusal if the target names an organization that the client can't use."""
        allowed = self.clients[name].organizations
        if target.lists_organizations and "*" not in allowed:
            raise forbidden(
                f"The client {name} can use only some organizations, so it can't list all of them."
            )
        for organization_id in target.organizations:
            key = OrganizationKey(target.data_center, organization_id)
            if "*" in allowed:
                is_word = not any(map(str.isdigit, organization_id))
                is_allowed = is_word or await self.directory.lists(key)
            else:
                is_allowed = key.path in allowed
            if not is_allowed:
                raise forbidden(
                    f"The client {name} isn't allowed to make calls for {organization_id}."
                )

    async def _address(self, name: str, target: Target) -> tuple[OrganizationKey, URL]:
        """Return the organization that the call counts against, and the URL to call."""
        center = target.data_center
        allowed = self.clients[name].organizations
        query = target.query
        # Words, as in `organizations/templates`, name no organization.
        named = {name for name in target.organizations if any(map(str.isdigit, name))}
        if len(named) > 1:
            raise malformed("Name only one organization, in organization_id or in the path.")
        key = OrganizationKey(center, next(iter(named), ""))
        if not named:
            key = OrganizationKey(center, await self.directory.representative(center))
            if not {"*", key.path} & {*allowed}:
                # Don't name the organization, because the client can't know it.
                raise forbidden("Set organization_id to an organization that this client can use.")
            added = f"{ORGANIZATION}={key.organization_id}" if key.organization_id else ""
            query = "&".join(filter(None, (query, added)))
        root = self.forwarder.access[center].root
        url = URL(f"{root.origin()}{target.path}{'?' if query else ''}{query}", encoded=True)
        if url.origin() != root.origin() or url.raw_path != target.path:
            raise malformed("The path must stay within the data center's API.")
        return key, url


async def read_body(request: web.BaseRequest, body: IO[bytes]) -> None:
    """Read the request's body into `body`. First send `100 Continue` if the client expects it."""
    expected = request.headers.get("Expect", "").strip().casefold()
    # HTTP/1.0 has no interim responses (RFC 9110, section 15.2).
    if expected == "100-continue" and request.version >= HttpVersion11:
        with suppress(ConnectionError, ClientError):
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            # `100 Continue` isn't part of the response, which hasn't started yet.
            request.writer.output_size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.content.iter_any():
                if body.tell() + len(piece) > MOST_BYTES:
                    sentence = f"The body is larger than {MOST_BYTES >> 20} MiB."
                    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                    raise GatewayRefusal(status, "too_large", sentence)
                body.write(piece)
    except TimeoutError:
        sentence = f"The body didn't arrive within {BODY_SECONDS:g} seconds."
        raise GatewayRefusal(HTTPStatus.REQUEST_TIMEOUT, "too_slow", sentence) from None
    except (web.RequestPayloadError, ClientError, ConnectionError, ValueError):
        raise malformed("The request body is incomplete.") from None
