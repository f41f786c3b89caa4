"""`/gatehouse status`: the bot's status, from its own observations."""

from collections.abc import Awaitable, Callable, Mapping

from bot import __version__
from bot.checks.health import Health
from bot.checks.parts import Parts
from bot.checks.rules import Counted, JobCount, Status
from bot.errors import DatabaseUnavailable
from bot.store import jobs
from bot.store.engine import Transaction

Count = Callable[[Transaction], Awaitable[int]]


class StatusReport:
    """Assembles the status.

    Args:
        parts: The database, the services' log, the watchdog.
        health: The current problems.
        counts: Functions that count database rows.
    """

    def __init__(self, parts: Parts, health: Health, counts: Mapping[Counted, Count]) -> None:
        self._parts = parts
        self._health = health
        self._counts = counts
        self._started = parts.clock.monotonic()

    async def status(self) -> Status:
        """Return the status; an unavailable database is reported in it, not raised."""
        parts = self._parts
        waiting, counts = None, dict[Counted, int]()
        try:
            async with parts.database.read_only() as tx:
                counts = {name: await count(tx) for name, count in self._counts.items()}
                waiting = JobCount(*await jobs.count(tx))
        except DatabaseUnavailable:
            counts = {}
        return Status(
            version=__version__,
            uptime_seconds=parts.clock.monotonic() - self._started,
            database="SQLite" if parts.database.is_sqlite else "PostgreSQL",
            is_database_well=waiting is not None,
            services=parts.services.seen(),
            jobs=waiting,
            counts=counts,
            broken=self._health.troubles(),
            stuck=[*parts.watchdog.stuck.values()],
        )
