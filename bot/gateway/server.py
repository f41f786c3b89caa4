"""The gateway's listener: who calls, what for, and an answer for each, whatever happens."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import structlog
from aiohttp import web
from yarl import URL

from bot.connections import Connections, Site
from bot.dataclass import dataclass
from bot.errors import GatehouseError
from bot.gateway import answers
from bot.gateway.bodies import MOST_BYTES, Spool, read_body, too_large
from bot.gateway.forward import Forwarder, GatewayCall, Seen
from bot.model.gateway import GatewayClient, client_of, malformed, unauthorized
from bot.model.gateway_requests import (
    ORGANIZATION,
    Target,
    headers_to_send,
    seconds_to_wait,
    target_of,
    tokens_of,
)
from bot.model.organizations.organization import OrganizationKey
from bot.ops.redaction import Redactor
from bot.workflows.turns import Stopping, Turns

log = structlog.get_logger(__name__)

HEALTH = "/healthz"
# Requests of one client in one process; what is beyond is declined before it is read.
MOST_AT_ONCE = 200
FAULT = "Gatehouse had an internal error."
HANG_UP_SECONDS = 0.5


class Observe(Protocol):
    """Is told of every request: client, data center, outcome, seconds waited for a turn."""

    def __call__(self, client: str, data_center: str, outcome: str, waited: float) -> None:
        """Must not raise."""


@dataclass(frozen=True)
class GatewayParts:
    """What the gateway is made of.

    `roots` are the API roots by data center; `schemes` those of `Authorization` that carry a token;
    `representative` names the organization that a call counts against which names none.
    """

    clients: Sequence[GatewayClient]
    roots: Mapping[str, URL]
    schemes: Sequence[str]
    representative: Callable[[str], Awaitable[str]]
    forwarder: Forwarder
    turns: Turns
    redactor: Redactor
    observe: Observe


class Gateway:
    """Answers the requests of the team's other programs."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self._running: Counter[str] = Counter()
        self._hidden: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._runner: web.ServerRunner | None = None
        self._is_stopping = False
        self.addresses: list[str] = []

    async def listen(self, host: str, port: int, connections: Connections) -> None:
        """Begin to listen.

        Raises:
            OSError: The address is taken, or is none of this machine.
        """
        runner = web.ServerRunner(
            web.Server(self.handle, access_log=None), shutdown_timeout=HANG_UP_SECONDS
        )
        await runner.setup()
        try:
            await Site(runner, host, port, connections).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        self.addresses = [f"http://{host}:{port}" for host, port, *_ in runner.addresses]
        log.info("gateway.listening", addresses=self.addresses)

    async def stop(self, seconds: float) -> None:
        """Take no new requests, send away who waits, and let what was sent come to its end."""
        self._is_stopping = True
        self._parts.turns.stop()
        if self._runner is None:
            return
        for site in list(self._runner.sites):
            await site.stop()
        if self._runner.server is not None:
            self._runner.server.pre_shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        await self._runner.cleanup()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; never with a traceback, and never with anything of a credential."""
        if request.raw_path.partition("?")[0] == HEALTH and request.method == "GET":
            return web.Response(text="ok")
        note = _Note()
        try:
            return await self._answer(request, note)
        except GatehouseError as error:
            note.seen.outcome = answers.word_of(error)
            return self._short(request, answers.as_answer(error))
        except Exception:
            note.seen.outcome = "broken"
            log.exception("gateway.broken")
            return self._short(request, answers.message(500, FAULT))
        finally:
            self._tell(request, note)

    def _short(self, request: web.BaseRequest, answer: web.Response) -> web.Response:
        """An answer of our own; what is left of a body is not read, so the connection ends."""
        if request.can_read_body and not request.content.is_eof():
            answer.force_close()
        if self._is_stopping:
            answer.force_close()
        return answer

    async def _answer(self, request: web.BaseRequest, note: "_Note") -> web.StreamResponse:
        if self._is_stopping:
            raise Stopping("Gatehouse is being restarted. Nothing was sent.")
        client = self._client(request)
        note.client = client.name
        target = target_of(request.raw_path, self._parts.roots)
        note.target = target
        headers = self._permitted(request, client, target)
        if self._running[client.name] >= MOST_AT_ONCE:
            sentence = f"The client {client.name} has {MOST_AT_ONCE} requests open already."
            note.seen.outcome = "declined_concurrent"
            return self._short(request, answers.declined("concurrent", 1070, sentence, 1))
        self._running[client.name] += 1
        self._idle.clear()
        try:
            return await self._forward(request, client, target, headers, note)
        finally:
            self._running[client.name] -= 1
            if not self._running.total():
                self._idle.set()

    def _client(self, request: web.BaseRequest) -> GatewayClient:
        authorizations = request.headers.getall("Authorization", [])
        tokens = tokens_of(authorizations, request.raw_path, self._parts.schemes)
        client = client_of(self._parts.clients, tokens)
        if client is None:
            raise unauthorized()
        if client.name not in self._hidden:
            # The last line of defence: whatever is logged from now on, the token is not.
            self._parts.redactor.add(next(iter(tokens)))
            self._hidden.add(client.name)
        return client

    def _permitted(
        self, request: web.BaseRequest, client: GatewayClient, target: Target
    ) -> list[tuple[str, str]]:
        """The headers to send; raises where the request is not to be made at all."""
        client.require(request.method, target.data_center)
        for organization_id in (target.organization_id, target.path_organization_id):
            if organization_id is not None:
                key = OrganizationKey(target.data_center, organization_id)
                client.require_organization(key)
        if (request.content_length or 0) > MOST_BYTES:
            raise too_large()
        return headers_to_send(list(request.headers.items()))

    async def _forward(
        self,
        request: web.BaseRequest,
        client: GatewayClient,
        target: Target,
        headers: Sequence[tuple[str, str]],
        note: "_Note",
    ) -> web.StreamResponse:
        key = await self._key(client, target)
        note.key = key
        call = GatewayCall(
            client=client.name,
            key=key,
            method=request.method,
            url=_address(self._parts.roots[target.data_center], target, key),
            headers=headers,
            wait_seconds=seconds_to_wait(request.headers.getall("Prefer", [])),
        )
        body = Spool()
        try:
            await read_body(request, body)
            return await self._parts.forwarder.forward(request, call, body, note.seen)
        finally:
            body.close()

    async def _key(self, client: GatewayClient, target: Target) -> OrganizationKey:
        """Whom the call counts against; without an organization, as a listing does."""
        organization_id = target.organization_id
        if organization_id is None:
            organization_id = await self._parts.representative(target.data_center)
        key = OrganizationKey(target.data_center, organization_id)
        client.require_organization(key)
        return key

    def _tell(self, request: web.BaseRequest, note: "_Note") -> None:
        center = note.target.data_center if note.target else ""
        seen = note.seen
        self._parts.observe(note.client, center, seen.outcome, seen.waited)
        # Whoever reaches the port can ask without end; the metrics count them.
        write = log.info if note.client else log.debug
        write(
            "gateway request",
            client=note.client,
            data_center=center,
            organization=note.key.organization_id if note.key else "",
            method=request.method,
            path=note.target.path if note.target else "",
            status=seen.status,
            outcome=seen.outcome,
            waited=round(seen.waited, 3),
        )


class _Note:
    """What is known of a request so far."""

    def __init__(self) -> None:
        self.client = ""
        self.target: Target | None = None
        self.key: OrganizationKey | None = None
        self.seen = Seen(outcome="cancelled")


def _address(root: URL, target: Target, key: OrganizationKey) -> URL:
    """The same path and query under the data center's root, naming whom the call counts against."""
    query = target.query
    if target.organization_id is None and key.organization_id:
        named = f"{ORGANIZATION}={key.organization_id}"
        query = f"{query}&{named}" if query else named
    base = str(root).rstrip("/")
    url = URL(f"{base}/{target.path}{'?' if query else ''}{query}", encoded=True)
    if url.origin() != root.origin() or not url.raw_path.startswith(
        root.raw_path.rstrip("/") + "/"
    ):
        raise malformed("The path leads out of the data center's root.")
    return url
