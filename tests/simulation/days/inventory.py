"""The inventory service as a seed would have it, and a client of it under the real guard."""

import asyncio
import json
import sqlite3
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.clients.quota_guard import CallPermit
from bot.model.organizations.organization import Organization, OrganizationKey
from bot.model.quotas.calls import PROBE, CallCause
from bot.model.quotas.plans import _LIMITS, Limits, Plan
from bot.model.quotas.quota import GRACE_SECONDS, MINUTE_SECONDS, Terms
from bot.service_errors import (
    RateLimited,
    ServiceFailed,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.workflows.quotas.guard import Guard
from tests.simulation.days.loop import SimulationLoop
from tests.simulation.days.outside import TIMEOUT_SECONDS, Faults, at_their_place
from tests.support.clock import START

KEY = OrganizationKey("eu", "10")
# As the plans are, but small: a day has a dozen calls a minute.
LIMITS = Limits(minute=10, day=1_000, concurrent=2)
TERMS = Terms(lambda _key: Plan.FREE, TIMEOUT_SECONDS)
LISTED = (Organization(organization_id=KEY.organization_id, name="Ten"),)


def make_limits_small() -> None:
    """For a process of its own only."""
    _LIMITS[Plan.FREE] = LIMITS


@dataclass
class Inventory:
    """One organization, which counts what arrives, and whom another program may have blocked."""

    loop: SimulationLoop
    faults: Faults
    arrivals: deque[float] = field(default_factory=deque)
    at_work: int = 0
    probing_until: float = 0.0
    blocked_until: float = 0.0
    code: int = 44
    # When each pause was first seen in the database, by its beginning there.
    pauses: dict[float, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def look_at_pauses(self, reader: sqlite3.Connection, granted_at: float) -> None:
        """No call is granted from when a pause is known until a probe has ended it."""
        query = "SELECT blocks FROM quota_organizations WHERE organization_id = ?"
        (blocks,) = reader.execute(query, (KEY.organization_id,)).fetchone() or ("[]",)
        for since in (one["since"] for one in json.loads(blocks)):
            seen_at = self.pauses.setdefault(since, self.loop.time())
            if granted_at - START.timestamp() > seen_at:
                self.problems.append("a call is granted in a pause")

    async def answer(self, permit: CallPermit, *, is_probe: bool) -> tuple[Organization, ...]:
        """The listing, with its headers told first; or one of the service's errors."""
        if is_probe:
            self._note_probe()
        status = await at_their_place(self.loop, self._at_work())
        if is_probe:
            self.probing_until = 0.0
        if status == 0:
            raise ServiceTimeout("inventory", "No answer.")
        await permit.responded()
        if status == 429:
            raise RateLimited("inventory", "Full.", code=self.code, message="Too many.")
        if status == 500:
            raise ServiceFailed("inventory", "Down.", status=500)
        return LISTED

    def _note_probe(self) -> None:
        now = self.loop.time()
        if now < self.probing_until:
            self.problems.append("two probes at once")
        self.probing_until = now + TIMEOUT_SECONDS + GRACE_SECONDS

    async def _at_work(self) -> int:
        """The status; 0 for no answer in time."""
        await asyncio.sleep(self.loop.random.uniform(0, 0.5))
        self._count()
        if self.faults.happens("another client", 0.3):
            self.blocked_until = self.loop.time() + self.loop.random.uniform(10, 90)
            self.code = self.loop.random.choice((44, 1070))
        if self.faults.happens("call hangs", 0.15):
            late = self.loop.random.uniform(0, GRACE_SECONDS - 1)
            self.loop.call_later(TIMEOUT_SECONDS + late - 0.5, self._leave)
            await asyncio.sleep(TIMEOUT_SECONDS)
            return 0
        await asyncio.sleep(self.loop.random.uniform(0.1, 3.0))
        self._leave()
        if self.loop.time() < self.blocked_until:
            return 429
        return 500 if self.faults.happens("call 500", 0.3) else 200

    def _count(self) -> None:
        now = self.loop.time()
        while self.arrivals and self.arrivals[0] < now - MINUTE_SECONDS:
            self.arrivals.popleft()
        self.arrivals.append(now)
        self.at_work += 1
        self.loop.trace(f"call {len(self.arrivals)} {self.at_work}")
        if len(self.arrivals) > LIMITS.minute:
            self.problems.append(f"{len(self.arrivals)} calls within a minute at {now:.0f}")
        if self.at_work > LIMITS.concurrent:
            self.problems.append(f"{self.at_work} calls at once at {now:.0f}")

    def _leave(self) -> None:
        self.at_work -= 1


@dataclass
class Client:
    """The bot's client: each call is granted by the guard before it is sent."""

    guard: Guard
    inventory: Inventory
    reader: sqlite3.Connection
    data_centers: Sequence[str] = ("eu",)

    async def organizations(
        self, key: OrganizationKey, cause: CallCause
    ) -> tuple[Organization, ...]:
        """List them."""
        if key != KEY:
            # Calls that name no organization have limits of their own.
            return LISTED
        async with self.guard.call(key, cause) as call:
            if not call.may_send():
                raise ServiceUnreachable("inventory", "Too late.", sent=False)
            is_probe = cause.kind == PROBE
            if not is_probe:
                self.inventory.look_at_pauses(self.reader, call.reservation.at)
            try:
                return await self.inventory.answer(call, is_probe=is_probe)
            except RateLimited as refusal:
                await call.refused(refusal)
                raise
