"""Keeps the times of calls right when the database's clock is corrected.

SQLite uses this process's clock, and PostgreSQL uses the server's. Nothing corrects the time since
this machine started, so if the database's clock no longer agrees with it, somebody has corrected
the database's clock. Without this module, a correction forward would free slots too early, and a
correction back would keep them too long.
"""

import math
from dataclasses import dataclass

import structlog
from sqlalchemy import func, select, update

from bot.ops.clock import Clock
from bot.quotas import incidents
from bot.quotas.rules.quota import Terms
from bot.quotas.store import ledger
from bot.quotas.tables import clocks, quota_calls
from bot.store.engine import Database

log = structlog.get_logger(__name__)

LEAST_STEP_SECONDS = 0.5
# A small step back only means that slots are free later, and may be a drift.
LEAST_STEP_BACK_SECONDS = 1.0
# Two clocks that nobody corrects can drift apart by this share of the time since the last look.
MOST_DRIFT = 0.01
# The quickest of these answers tells the database's time best.
SAMPLES = 3


@dataclass(eq=False)
class DatabaseClock:
    """Notices that the database's clock was corrected, and moves the times of calls by as much.

    `_ahead` is how far the database's clock is ahead of the time since boot, as of the last look.
    `_stored` is what the table said then, and `_drift` how far they have drifted apart since.
    """

    clock: Clock
    terms: Terms
    _ahead: float = math.nan
    _stored: float = math.nan
    _drift: float = 0.0
    _looked_at: float = 0.0

    def agrees(self, now: float, asked_at: float) -> bool:
        """Return True if the database's time is what it must be, given when it was asked for.

        Before the first look, nothing agrees.
        """
        answered_at = self.clock.since_boot()
        most = LEAST_STEP_SECONDS + (asked_at - self._looked_at) * MOST_DRIFT
        if not asked_at - most <= now - self._ahead <= answered_at + most:
            return False
        self._looked_at = asked_at
        ahead = min(max(self._ahead, now - answered_at), now - asked_at)
        self._drift += ahead - self._ahead
        self._ahead = ahead
        return abs(self._drift) < LEAST_STEP_SECONDS

    async def follow(self, database: Database) -> None:
        """Move the times of calls if no process on any machine has done so since the correction.

        If this machine was started again, only a correction back can be seen, by calls that would
        be in the future.
        """
        async with database.transaction() as tx:
            await tx.serialise("clocks")
            samples = []
            for _ in range(SAMPLES):
                asked_at = self.clock.since_boot()
                result = await tx.execute(select(tx.clock), tx.clock_parameters)
                samples.append(result.scalar_one() - asked_at)
            ahead = min(samples)
            own = clocks.c.boot == self.clock.boot
            stored = await tx.scalar(select(clocks.c.ahead).where(own))
            if stored is None:
                newest = await tx.scalar(select(func.max(quota_calls.c.reserved_at)))
                now = ahead + self.clock.since_boot()
                stored = ahead + max(0.0, (newest or 0.0) - now)
            steps = [ahead - stored - self._drift]
            if stored != self._stored:
                # Another process has stored this drift, or an earlier commit was unknown.
                steps.append(ahead - stored)
            if not math.isnan(self._stored):
                # Another machine can have mistaken a drift that it didn't follow for a correction.
                steps.append(ahead - self._stored - self._drift)
            step = min(steps, key=abs)
            if step >= LEAST_STEP_SECONDS or step <= -LEAST_STEP_BACK_SECONDS:
                log.warning("quota.clock_corrected", seconds=round(step, 3))
                await ledger.move(tx, step)
                await incidents.move(tx, self.terms, step)
                # The other machines' processes needn't move anything for this correction.
                await tx.write(update(clocks).values(ahead=clocks.c.ahead + step))
            await tx.upsert(clocks, {"boot": self.clock.boot, "ahead": ahead})
        self._ahead = self._stored = ahead
        self._drift = 0.0
        self._looked_at = self.clock.since_boot()
