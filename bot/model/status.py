"""What the bot knows of its own health."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

# The name of what is open, among the counts of a status.
OPEN_INCIDENTS = "Open incidents"


@dataclass(frozen=True)
class JobCount:
    """How many jobs wait: `due` now, and `late`, due for more than a minute."""

    total: int
    due: int
    late: int


@dataclass(frozen=True)
class ServiceSeen:
    """When a service last answered well, and when it last failed and how."""

    name: str
    succeeded_at: datetime | None = None
    failed_at: datetime | None = None
    failure: str | None = None

    @property
    def is_failing(self) -> bool:
        """Whether the last call failed."""
        if self.failed_at is None:
            return False
        return self.succeeded_at is None or self.succeeded_at < self.failed_at


@dataclass(frozen=True)
class Status:
    """What `/gatehouse status` shows; `counts` are pending requests and open incidents, by name."""

    version: str
    uptime_seconds: float
    database: str
    is_database_well: bool
    services: Sequence[ServiceSeen]
    jobs: JobCount | None
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def troubles(self) -> list[str]:
        """What needs a look, each by a few words; empty when all is well."""
        late = self.jobs.late if self.jobs else 0
        opened = self.counts.get(OPEN_INCIDENTS, 0)
        return [
            *(["the database"] if not self.is_database_well else []),
            *(seen.name for seen in self.services if seen.is_failing),
            *([OPEN_INCIDENTS.lower()] if opened else []),
            *(["late jobs"] if late else []),
        ]
