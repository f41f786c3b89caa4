"""Is the time right? This machine's clock and the database's are held against Slack's.

The bot counts on from the time that it read at its start, so that a clock that is set wrong for a
while ends nothing early. Where the machine's clock was wrong at the start, or stood still with its
machine, and is right by now, the bot follows it.
"""

import structlog

from bot.checks.health import Health
from bot.checks.rules.clocks import ReportedTime, agrees, is_step, time_in
from bot.errors import DatabaseUnavailable
from bot.ops.clock import Clock, SystemClock, boot_id, machine_offset, since_boot
from bot.quotas.store import quota_clock
from bot.store.engine import Database

log = structlog.get_logger(__name__)


class ClockWatch:
    """Compares clocks, and renews the bot's.

    Args:
        health: A clock that is wrong is noted there.
        database: Whose clock it is that counts, unless it is a SQLite file.
        clock: The bot's.
    """

    def __init__(self, health: Health, database: Database, clock: Clock) -> None:
        self._health = health
        self._database = database
        self._clock = clock

    async def compare(self, date: str, asked_at: float) -> None:
        """Compare with the `Date` of an answer to what was asked then, in seconds since boot."""
        reported, clock = time_in(date), self._clock
        if reported is None or not isinstance(clock, SystemClock):
            return
        offset = machine_offset()
        machine = ReportedTime(offset + asked_at, reported, offset + since_boot()).ahead
        try:
            if is_step(offset - clock.offset) and agrees(machine):
                await self._renew(clock, offset)
            database = await self._database_ahead(reported, asked_at)
        except DatabaseUnavailable as error:
            log.warning("clock.unknown", reason=error.sentence)
            return
        self._health.note_clocks(machine, database)

    async def _database_ahead(self, reported: float, asked_at: float) -> float:
        if self._database.is_sqlite:
            return 0.0
        async with self._database.read_only() as tx:
            now = (await tx.now()).timestamp()
        return ReportedTime(now - (since_boot() - asked_at), reported, now).ahead

    async def _renew(self, clock: SystemClock, offset: float) -> None:
        """Follow the machine's clock; what is held by it in a SQLite file is held as long."""
        before, step = clock.offset, offset - clock.offset
        try:
            if self._database.is_sqlite:
                # Whoever writes waits meanwhile: nothing is dated by both.
                async with self._database.transaction() as tx:
                    clock.offset = offset
                    await quota_clock.move(tx, boot_id(), offset, step)
            clock.offset = offset
        except BaseException:
            clock.offset = before
            raise
        log.warning("clock.renewed", seconds=round(step, 3))
