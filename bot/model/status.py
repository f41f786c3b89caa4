"""What the bot knows of its own health."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


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
