"""Simulates the inventory service and the clients that call it."""

import asyncio
import json
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import aiohttp
from pydantic import SecretStr
from yarl import URL

from bot.gateway.forward import Forwarder, GatewayCall, Seen
from bot.gateway.turns import Turns
from bot.ops.redaction import Redactor
from bot.organizations.client import DataCenterAccess, InventoryClient
from bot.organizations.rules import API, Organization, OrganizationKey
from bot.quotas.guard import Guard, _Call
from bot.quotas.rules import limits as plans
from bot.quotas.rules.limits import LimitKind, Limits, Plan, applying, share_of
from bot.quotas.rules.quota import GRACE_SECONDS, MINUTE_SECONDS, Terms
from bot.quotas.store.ledger import Reservation
from bot.services.calls import GATEWAY, PROBE, CallCause, CallClass
from bot.services.credentials import Credential, OAuthCredential, Signed
from bot.services.errors import CredentialsRefused
from bot.services.http import ServiceHttp
from bot.settings.model import OAuthSettings
from bot.store.tables import to_microseconds
from tests.simulation.days.connections import Session
from tests.simulation.days.loop import PROCESS, SimulationLoop
from tests.simulation.days.outside import TIMEOUT_SECONDS, Faults, at_their_place
from tests.simulation.days.tokens import Tokens
from tests.support.clock import START

KEY = OrganizationKey("eu", "10")
# Small limits, because a day has a dozen calls a minute.
LIMITS = Limits(minute=10, day=1_000, concurrent=2)
# Another API, which the same programs call.
XERO = OrganizationKey(API, "xero")
XERO_MINUTE = 4
XERO_SHARE = 0.4
XERO_ROOT = URL("https://xero.example")
TERMS = Terms(lambda _key: Plan.FREE, apis={XERO.service: Limits(minute=XERO_MINUTE)})
# The programs that call through the gateway, and their shares of the gateway's calls.
CLIENTS = {"reports": 1.0, "nightly": 0.4}


def most_of(kind: LimitKind, share: float = 1.0) -> int:
    """Return how many calls of a kind a client may make."""
    limits = applying(LIMITS.in_force(), kind, CallClass.BACKGROUND)
    return share_of(limits, share)[-1].most


CLIENTS_AT_ONCE = most_of(LimitKind.CONCURRENT)
# The name is the id, which an alert shows while the name is unknown.
LISTED = (Organization(organization_id=KEY.organization_id, name=KEY.organization_id),)
LISTING = {"code": 0, "organizations": [item.model_dump() for item in LISTED]}
ROOT = URL("https://inventory.example")
GRANT = OAuthSettings(
    client_id="client",
    client_secret=SecretStr("client-secret"),
    refresh_token=SecretStr("refresh"),
    token_url="https://accounts.example",
)


def make_limits_small() -> None:
    """Lower the limits of the free plan. Call this function only in a separate process."""
    plans.LIMITS[Plan.FREE] = LIMITS


@dataclass
class Sent:
    """Records the cause of a call and the tokens that the call sent."""

    cause: CallCause
    tokens: list[str] = field(default_factory=list)


SENT: ContextVar[Sent] = ContextVar("sent")


@dataclass
class Inventory:
    """Simulates an organization that is sometimes blocked, and counts the calls to it."""

    loop: SimulationLoop
    faults: Faults
    # Calls of the last minute: the time and the client ("" for the bot itself).
    arrivals: deque[tuple[float, str]] = field(default_factory=deque)
    at_work: list[str] = field(default_factory=list)
    probing_until: float = 0.0
    blocked_until: float = 0.0
    code: int = 44
    # The time when each pause was first seen in the database, by the pause's beginning.
    pauses: dict[float, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    tokens: Tokens = field(init=False)
    xero: "Xero" = field(init=False)

    def __post_init__(self) -> None:
        self.xero = Xero(self.loop, self.problems)
        self.tokens = Tokens(self.loop, self.faults)

    def look_at_pauses(self, reader: sqlite3.Connection, granted_at: float = 0.0) -> None:
        """Check that no call except the probe is granted during a known pause."""
        query = "SELECT blocks FROM quota_organizations WHERE organization_id = ?"
        (blocks,) = reader.execute(query, (KEY.organization_id,)).fetchone() or ("[]",)
        for since in (load["since"] for load in json.loads(blocks)):
            seen_at = self.pauses.setdefault(since, self.loop.time())
            # The database rounds times to microseconds.
            if granted_at - START.timestamp() > seen_at + 0.000_001:
                self.problems.append("a call is granted in a pause")

    def look_at_settled(self, reader: sqlite3.Connection, call: _Call) -> None:
        """Check that a call no longer counts as in progress after the response has arrived."""
        query = "SELECT permit_until FROM quota_calls WHERE organization = ? AND number = ?"
        number = call.reservation.account.id, call.reservation.number
        (until,) = reader.execute(query, number).fetchone() or (0,)
        if until > to_microseconds(START) + (self.loop.time() + 0.001) * 1e6:
            self.problems.append(f"call {number} was answered, and holds its place")

    def look_at_refused(self, sent: Sent) -> None:
        """Check that the client got a new token after the service refused the old one.

        A process that got several new tokens within ten minutes doesn't request another one.
        """
        if self.tokens.has_many(PROCESS.get()):
            return
        last = self.tokens.given.get(PROCESS.get())
        is_retried = sent.cause.call_class is CallClass.PERSON
        tried = set(sent.tokens) if is_retried else {sent.tokens[-1], last}
        if len(tried) < 2:
            self.problems.append(f"{PROCESS.get()} has no other token than {sent.tokens}")

    async def answer(self, authorization: str) -> tuple[int, Mapping[str, Any]]:
        """Return the listing or an error."""
        sent, token = SENT.get(), authorization.removeprefix("Bearer ")
        sent.tokens.append(token)
        is_probe = sent.cause.kind == PROBE
        if is_probe:
            self._note_probe()
        try:
            work = self._at_work(sent.cause.client or "", token)
            status = await at_their_place(self.loop, work)
        finally:
            if is_probe:
                self.probing_until = 0.0
        return status, {200: LISTING, 429: {"code": self.code}}.get(status, {})

    def _note_probe(self) -> None:
        now = self.loop.time()
        if now < self.probing_until:
            self.problems.append("two probes at once")
        self.probing_until = now + TIMEOUT_SECONDS + GRACE_SECONDS

    async def _at_work(self, client: str, token: str) -> int:
        """Return the HTTP status after a random delay."""
        await asyncio.sleep(self.loop.random.uniform(0, 0.5))
        self._count(client)
        if not self.tokens.is_good(token):
            self.faults.counts["call 401"] += 1
            self.loop.trace(f"refused {token}")
            self.at_work.remove(client)
            return 401
        if self.faults.happens("another client", 0.3):
            self.blocked_until = self.loop.time() + self.loop.random.uniform(10, 90)
            self.code = self.loop.random.choice((44, 1070))
        seconds = self.loop.random.uniform(0.1, 3.0)
        if self.faults.happens("call hangs", 0.15):
            seconds = TIMEOUT_SECONDS + self.loop.random.uniform(0, GRACE_SECONDS - 1) - 0.5
        await asyncio.sleep(seconds)
        self.at_work.remove(client)
        if self.faults.happens("call answer lost", 0.1):
            raise aiohttp.ServerDisconnectedError
        if self.loop.time() < self.blocked_until:
            return 429
        return 500 if self.faults.happens("call 500", 0.3) else 200

    def _count(self, client: str) -> None:
        now = self.loop.time()
        while self.arrivals and self.arrivals[0][0] < now - MINUTE_SECONDS:
            self.arrivals.popleft()
        self.arrivals.append((now, client))
        self.at_work.append(client)
        self.loop.trace(f"call {len(self.arrivals)} {len(self.at_work)} {client}")
        if len(self.arrivals) > LIMITS.minute:
            self.problems.append(f"{len(self.arrivals)} calls within a minute at {now:.0f}")
        if len(self.at_work) > LIMITS.concurrent:
            self.problems.append(f"{len(self.at_work)} calls at once at {now:.0f}")
        if client:
            self._count_of(client)

    def _count_of(self, client: str) -> None:
        """Check the limits for this client and for all clients together."""
        for whose, share in (({client}, CLIENTS[client]), (set(CLIENTS), 1.0)):
            of_a_minute = sum(one in whose for _, one in self.arrivals)
            at_once = sum(item in whose for item in self.at_work)
            if of_a_minute > most_of(LimitKind.MINUTE, share) or at_once > CLIENTS_AT_ONCE:
                self.problems.append(f"{whose}: {of_a_minute} a minute, {at_once} at once")


@dataclass
class Xero:
    """Simulates another API, and counts the calls to it."""

    loop: SimulationLoop
    problems: list[str]
    arrivals: deque[float] = field(default_factory=deque)

    async def answer(self, _authorization: str) -> tuple[int, Mapping[str, Any]]:
        """Answer a call after a while."""
        return await at_their_place(self.loop, self._arrive()), {}

    async def _arrive(self) -> int:
        await asyncio.sleep(self.loop.random.uniform(0, 0.5))
        now = self.loop.time()
        self.arrivals.append(now)
        while self.arrivals[0] < now - MINUTE_SECONDS:
            self.arrivals.popleft()
        if len(self.arrivals) > XERO_MINUTE:
            self.problems.append(f"{len(self.arrivals)} calls to xero within a minute at {now:.0f}")
        await asyncio.sleep(self.loop.random.uniform(0, 2.0))
        return 200


class WatchedGuard(Guard):
    """A guard that also checks that calls are granted and settled correctly."""

    def __init__(self, inventory: Inventory, reader: sqlite3.Connection, *parts: Any) -> None:
        super().__init__(*parts)
        self._inventory, self._reader = inventory, reader

    @asynccontextmanager
    async def granted(self, reservation: Reservation) -> AsyncIterator[_Call]:
        """Let the real guard grant a call, and check the result."""
        async with super().granted(reservation) as call:
            sent, before = SENT.get(), len(SENT.get().tokens)
            request = reservation.request
            if request.cause.kind != PROBE and request.key == KEY:
                self._inventory.look_at_pauses(self._reader, call.reservation.at)
            try:
                yield call
            finally:
                if len(sent.tokens) > before + 1:
                    self._inventory.problems.append("one grant, and two calls")

    async def _end(self, call: _Call, error: BaseException | None) -> None:
        await super()._end(call, error)
        if call.refusal is not None:
            # The pause is in the database now, so from now on nobody may call.
            self._inventory.look_at_pauses(self._reader)
        if error is None or call.refusal is not None or isinstance(error, CredentialsRefused):
            self._inventory.look_at_settled(self._reader, call)


class Client:
    """Uses the same token to call the service for the bot and for the gateway."""

    data_centers: Sequence[str] = (KEY.data_center,)

    def __init__(self, inventory: Inventory, turns: Turns) -> None:
        accounts = URL(GRANT.token_url).host or ""
        services = {
            ROOT.host or "": inventory.answer,
            XERO_ROOT.host or "": inventory.xero.answer,
            accounts: inventory.tokens.renew,
        }
        session: Any = Session(services)
        redactor, observer, clock = Redactor(), lambda _: None, turns.clock
        http = ServiceHttp(session, redactor, observer, clock)
        credential = OAuthCredential(http, clock, KEY.data_center, GRANT)
        access = {KEY.data_center: DataCenterAccess(ROOT, credential, "")}
        token = Credential(Signed("xero-token", headers={"Authorization": "Bearer xero-token"}))
        apis = {XERO.service: DataCenterAccess(XERO_ROOT, token, "")}
        self._inventory = inventory
        self._client = InventoryClient(http, turns.guard.call, access)
        self._forwarder = _Forwarder(session, {**access, **apis}, turns, redactor, observer)

    async def organizations(
        self, key: OrganizationKey, cause: CallCause
    ) -> tuple[Organization, ...]:
        """List the organizations."""
        if key != KEY:
            # Calls that name no organization have separate limits.
            return LISTED
        sent = Sent(cause)
        SENT.set(sent)
        try:
            return await self._client.organizations(key, cause)
        except CredentialsRefused as refused:
            if refused.service == "inventory":
                self._inventory.look_at_refused(sent)
            raise

    async def through_gateway(self, client: str, seconds: float) -> None:
        """Make a call through the gateway, and wait up to `seconds` for the call's turn."""
        SENT.set(Sent(CallCause(GATEWAY, background=True, client=client)))
        call = GatewayCall(client, KEY, "GET", ROOT, (), seconds)
        if self._inventory.loop.random.random() < XERO_SHARE:
            call = GatewayCall(client, XERO, "GET", XERO_ROOT, (), seconds)
        request: Any = SimpleNamespace(transport=SimpleNamespace(is_closing=lambda: False))
        await self._forwarder.forward(request, call, b"", Seen())


class _Forwarder(Forwarder):
    async def deliver(self, *_: Any) -> None:
        """Do nothing, because no real client is waiting for the response."""
