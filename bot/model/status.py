"""What the bot knows of its own health."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

# The name of what is open, among the counts of a status.
OPEN_INCIDENTS = "Open incidents"
# Failures that say nothing against a service: a refusal answers what one person asked for, and
# a cancelled call was not waited for.
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

    `is_failing` says whether it needs a look: since the last success a call failed, and not only
    because of what somebody asked for.
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
        # Nobody types what an OAuth provider is asked: each of its refusals is about the settings.
        is_harmless = failure in HARMLESS and not self.name.startswith("oauth")
        is_failing = self.is_failing or not is_harmless
        return replace(self, failed_at=at, failure=failure, is_failing=is_failing)


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
