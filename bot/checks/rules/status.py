"""Values of `/gatehouse status`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from bot.checks.rules.health import Part, Trouble


class Counted(StrEnum):
    """Counts from the database, by their names in metrics."""

    OPEN_INCIDENTS = "open_incidents"
    PENDING_REQUESTS = "pending_requests"
    UNDELIVERED_MESSAGES = "undelivered_messages"
    GATEWAY_CALLS = "gateway_calls_in_the_last_minute"
    GATEWAY_CALLS_WAITING = "gateway_calls_waiting"

    @property
    def in_words(self) -> str:
        """As people read it: `open incidents`."""
        return self.value.replace("_", " ")


# What says nothing against a service: a rejection answers what one person typed, and a cancelled
# call was not waited for.
ANSWERS = frozenset({"service_refused", "cancelled"})
# `/emailkey check <resource>` asks whether the key may read what the person typed.
HARMLESS = {"email": ANSWERS | {"permission_missing"}}


@dataclass(frozen=True)
class JobCount:
    """Counts of waiting jobs: `due` now, and `late`, due for more than a minute."""

    total: int
    due: int
    late: int


@dataclass(frozen=True)
class ServiceSeen:
    """The last success and the last failure of a service.

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
        if failure in HARMLESS.get(self.name, ANSWERS) and not self.name.startswith("oauth"):
            return self
        return replace(self, failed_at=at, failure=failure, is_failing=True)


@dataclass(frozen=True)
class Status:
    """The content of `/gatehouse status`.

    `counts` are pending requests and open incidents, among others; `broken` is what this process
    knows to be broken in its surroundings, `stuck` what of its own work stands still.
    """

    version: str
    uptime_seconds: float
    database: str
    is_database_well: bool
    services: Sequence[ServiceSeen]
    jobs: JobCount | None
    counts: Mapping[Counted, int] = field(default_factory=dict)
    broken: Sequence[Trouble] = ()
    stuck: Sequence[str] = ()

    @property
    def troubles(self) -> list[str]:
        """Problems, each in a few words; empty when everything works."""
        late = self.jobs.late if self.jobs else 0
        opened = self.counts.get(Counted.OPEN_INCIDENTS, 0)
        return [
            *(["the database"] if not self.is_database_well else []),
            *(trouble.name for trouble in self.broken if not self._is_said(trouble)),
            *(seen.name for seen in self.services if seen.is_failing),
            *([Counted.OPEN_INCIDENTS.in_words] if opened else []),
            *(["late jobs"] if late else []),
            *(f"{name} stands still" for name in self.stuck),
        ]

    def _is_said(self, trouble: Trouble) -> bool:
        return trouble.part is Part.DATABASE and not self.is_database_well
