"""What the bot knows of its own health."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime

from bot.dataclass import dataclass
from bot.model.health import Part, Trouble

# The name of what is open, among the counts of a status.
OPEN_INCIDENTS = "Open incidents"
# What says nothing against a service: a rejection answers what one person typed, and a cancelled
# call was not waited for.
HARMLESS = frozenset({"service_refused", "cancelled"})


@dataclass(frozen=True)
class JobCount:
    """How many jobs wait: `due` now, and `late`, due for more than a minute."""

    total: int
    due: int
    late: int


@dataclass(frozen=True)
class ServiceSeen:
    """When a service last answered well, and when it last failed and how.

    `is_failing` says whether it needs attention: a call has failed since the last success. What
    only answers a person's mistake is neither.
    """

    name: str
    succeeded_at: datetime | None = None
    failed_at: datetime | None = None
    failure: str | None = None
    is_failing: bool = False

    def after(self, failure: str | None, at: datetime) -> "ServiceSeen":
        """The same after one more call; `failure` is None, or a word for what went wrong."""
        if failure is None:
            return replace(self, succeeded_at=at, is_failing=False)
        # Nobody types what an OAuth provider is asked: its rejections are about the settings.
        if failure in HARMLESS and not self.name.startswith("oauth"):
            return self
        return replace(self, failed_at=at, failure=failure, is_failing=True)


@dataclass(frozen=True)
class Status:
    """What `/gatehouse status` shows.

    `counts` are pending requests and open incidents, by name; `broken` is what this process knows
    to be broken in its surroundings.
    """

    version: str
    uptime_seconds: float
    database: str
    is_database_well: bool
    services: Sequence[ServiceSeen]
    jobs: JobCount | None
    counts: Mapping[str, int] = field(default_factory=dict)
    broken: Sequence[Trouble] = ()

    @property
    def troubles(self) -> list[str]:
        """What needs attention, each in a few words; empty when everything works."""
        late = self.jobs.late if self.jobs else 0
        opened = self.counts.get(OPEN_INCIDENTS, 0)
        return [
            *(["the database"] if not self.is_database_well else []),
            *(trouble.name for trouble in self.broken if not self._is_said(trouble)),
            *(seen.name for seen in self.services if seen.is_failing),
            *([OPEN_INCIDENTS.lower()] if opened else []),
            *(["late jobs"] if late else []),
        ]

    def _is_said(self, trouble: Trouble) -> bool:
        return trouble.part is Part.DATABASE and not self.is_database_well
