"""The inventory service as a seed would have it, and a client of it under the real guard."""

import asyncio
import json
import sqlite3
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.clients.quota_guard import CallPermit
from bot.model.gateway import share_of
from bot.model.organizations.organization import Organization, OrganizationKey
from bot.model.quotas.calls import GATEWAY, PROBE, CallCause
from bot.model.quotas.plans import _LIMITS, Limits, Plan
from bot.model.quotas.quota import GRACE_SECONDS, MINUTE_SECONDS, Terms
from bot.service_errors import (
    RateLimited,
    ServiceFailed,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.workflows.quotas.guard import Guard, TakeTurn
from bot.workflows.turns import Turns, Wait
from tests.simulation.days.loop import SimulationLoop
from tests.simulation.days.outside import TIMEOUT_SECONDS, Faults, at_their_place
from tests.support.clock import START

KEY = OrganizationKey("eu", "10")
# As the plans are, but small: a day has a dozen calls a minute.
LIMITS = Limits(minute=10, day=1_000, concurrent=2)
TERMS = Terms(lambda _key: Plan.FREE, TIMEOUT_SECONDS)
# The programs that call through the gateway, and what each may take of what is left to them all.
CLIENTS = {"reports": 1.0, "nightly": 0.4}
CLIENTS_AT_ONCE = share_of(LIMITS, 1.0).concurrent
# Named by its id, which an alert shows as long as the name is not known.
LISTED = (Organization(organization_id=KEY.organization_id, name=KEY.organization_id),)


def make_limits_small() -> None:
    """For a process of its own only."""
    _LIMITS[Plan.FREE] = LIMITS


@dataclass
class Inventory:
    """One organization, which counts what arrives, and whom another program may have blocked."""

    loop: SimulationLoop
    faults: Faults
    # Of the last minute: when, and of which client; "" for the bot's own.
    arrivals: deque[tuple[float, str]] = field(default_factory=deque)
    at_work: list[str] = field(default_factory=list)
    probing_until: float = 0.0
    blocked_until: float = 0.0
    code: int = 44
    # When each pause was first seen in the database, by its beginning there.
    pauses: dict[float, float] = field(default_factory=dict)
    answered: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def look_at_pauses(self, reader: sqlite3.Connection, granted_at: float = 0.0) -> None:
        """No call is granted from when a pause is known until a probe has ended it."""
        query = "SELECT blocks FROM quota_organizations WHERE organization_id = ?"
        (blocks,) = reader.execute(query, (KEY.organization_id,)).fetchone() or ("[]",)
        for since in (one["since"] for one in json.loads(blocks)):
            seen_at = self.pauses.setdefault(since, self.loop.time())
            if granted_at - START.timestamp() > seen_at:
                self.problems.append("a call is granted in a pause")

    async def answer(self, permit: CallPermit, cause: CallCause) -> tuple[Organization, ...]:
        """The listing, with its headers told first; or one of the service's errors."""
        is_probe, client = cause.kind == PROBE, cause.client or ""
        if is_probe:
            self._note_probe()
        status = await at_their_place(self.loop, self._at_work(client))
        if is_probe:
            self.probing_until = 0.0
        if status == 0:
            raise ServiceTimeout("inventory", "No answer.")
        await permit.responded()
        if status == 429:
            raise RateLimited("inventory", "Full.", code=self.code, message="Too many.")
        if status == 500:
            raise ServiceFailed("inventory", "Down.", status=500)
        self.answered[client] += 1
        return LISTED

    def _note_probe(self) -> None:
        now = self.loop.time()
        if now < self.probing_until:
            self.problems.append("two probes at once")
        self.probing_until = now + TIMEOUT_SECONDS + GRACE_SECONDS

    async def _at_work(self, client: str) -> int:
        """The status; 0 for no answer in time."""
        await asyncio.sleep(self.loop.random.uniform(0, 0.5))
        self._count(client)
        if self.faults.happens("another client", 0.3):
            self.blocked_until = self.loop.time() + self.loop.random.uniform(10, 90)
            self.code = self.loop.random.choice((44, 1070))
        if self.faults.happens("call hangs", 0.15):
            late = self.loop.random.uniform(0, GRACE_SECONDS - 1)
            self.loop.call_later(TIMEOUT_SECONDS + late - 0.5, self.at_work.remove, client)
            await asyncio.sleep(TIMEOUT_SECONDS)
            return 0
        await asyncio.sleep(self.loop.random.uniform(0.1, 3.0))
        self.at_work.remove(client)
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
        """What a client takes is within its share, and of all clients within what is theirs."""
        for whose, share in (({client}, CLIENTS[client]), (set(CLIENTS), 1.0)):
            of_a_minute = sum(one in whose for _, one in self.arrivals)
            at_once = sum(one in whose for one in self.at_work)
            if of_a_minute > share_of(LIMITS, share).minute or at_once > CLIENTS_AT_ONCE:
                self.problems.append(f"{whose}: {of_a_minute} a minute, {at_once} at once")


@dataclass
class Client:
    """The bot's client: each call is granted by the guard before it is sent."""

    guard: Guard
    turns: Turns
    inventory: Inventory
    reader: sqlite3.Connection
    data_centers: Sequence[str] = ("eu",)

    async def organizations(
        self, key: OrganizationKey, cause: CallCause
    ) -> tuple[Organization, ...]:
        """List them."""
        # Calls that name no organization have limits of their own.
        return LISTED if key != KEY else await self._call(cause)

    async def through_gateway(self, client: str, seconds: float) -> None:
        """A call of another program's, in its turn, which it waits for so long."""
        wait, cause = Wait(KEY, client, seconds), CallCause(GATEWAY, background=True, client=client)
        try:
            await self._call(cause, lambda attempt: self.turns.take(wait, attempt))
        finally:
            self.turns.call_ended(KEY)

    async def _call(
        self, cause: CallCause, take_turn: TakeTurn | None = None
    ) -> tuple[Organization, ...]:
        try:
            async with self.guard.call(KEY, cause, take_turn) as call:
                if not call.may_send():
                    raise ServiceUnreachable("inventory", "Too late.", sent=False)
                if cause.kind != PROBE:
                    self.inventory.look_at_pauses(self.reader, call.reservation.at)
                return await self._send(call, cause)
        except RateLimited:
            # It is in the database by now: from now on nobody calls.
            self.inventory.look_at_pauses(self.reader)
            raise

    async def _send(self, call: CallPermit, cause: CallCause) -> tuple[Organization, ...]:
        try:
            return await self.inventory.answer(call, cause)
        except RateLimited as refusal:
            await call.refused(refusal)
            raise
