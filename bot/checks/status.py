"""`/gatehouse status`: whether everything works, from what the bot has seen itself."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from bot.checks.rules.health import Trouble
from bot.checks.rules.status import Counted, ServiceSeen, Status
from bot.errors import DatabaseUnavailable
from bot.ops.clock import Clock
from bot.store import jobs
from bot.store.engine import Database, Transaction


class ServiceLog:
    """Remembers how the calls of this process went."""

    def __init__(self, clock: Clock, names: Sequence[str]) -> None:
        self._clock = clock
        self._seen = {name: ServiceSeen(name) for name in names}

    def note(self, name: str, failure: str | None) -> None:
        """Note a call: None for one that went well, else a word for what went wrong."""
        old = self._seen.get(name, ServiceSeen(name))
        self._seen[name] = old.after(failure, self._clock.now())

    def seen(self) -> list[ServiceSeen]:
        """Return every service, in the order of the settings."""
        return list(self._seen.values())


Count = Callable[[Transaction], Awaitable[int]]


class StatusReport:
    """Puts the status together.

    Args:
        version: The program's.
        database: Asked whether it answers, and for the numbers.
        services: What the clients have seen.
        clock: For the uptime.
        counts: How each of what else is told is counted in the database.
        troubles: What is known to be broken.
        stuck: What stands still.
    """

    def __init__(
        self,
        version: str,
        database: Database,
        services: ServiceLog,
        clock: Clock,
        counts: Mapping[Counted, Count],
        troubles: Callable[[], Sequence[Trouble]] = tuple,
        stuck: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._version = version
        self._database = database
        self._services = services
        self._clock = clock
        self._started = clock.monotonic()
        self._counts = counts
        self._troubles = troubles
        self._stuck = stuck

    async def status(self) -> Status:
        """Return the status; a database that is away is part of it, not an error."""
        kind = "SQLite" if self._database.is_sqlite else "PostgreSQL"
        uptime = self._clock.monotonic() - self._started
        services = self._services.seen()
        is_well, waiting, counts = True, None, dict[Counted, int]()
        try:
            async with self._database.read_only() as tx:
                waiting = await jobs.count(tx)
                counts = {name: await count(tx) for name, count in self._counts.items()}
        except DatabaseUnavailable:
            is_well, waiting, counts = False, None, {}
        broken, stuck = self._troubles(), [*self._stuck()]
        return Status(
            self._version, uptime, kind, is_well, services, waiting, counts, broken, stuck
        )
