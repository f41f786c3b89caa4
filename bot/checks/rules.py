"""The parts that can break while the bot runs, and the values in `/gatehouse status`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bot.services.calls import ServiceSeen


class Part(StrEnum):
    """A monitored part of the bot. Its value is a label value of the metric `gatehouse_working`."""

    DATABASE = "database"
    SLACK_TOKEN = "slack_token"  # noqa: S105 - a name
    SLACK_API = "slack_api"
    SLACK_SCOPES = "slack_scopes"
    SOCKET = "socket"
    APPROVALS_CHANNEL = "approvals_channel"
    ALERTS_CHANNEL = "alerts_channel"
    CLOCK = "clock"
    DATABASE_CLOCK = "database_clock"
    SERVICE_CREDENTIALS = "service_credentials"


# The word that `/readyz` returns for each broken part. Other parts don't affect readiness.
READINESS = {
    Part.DATABASE: "database",
    Part.SLACK_TOKEN: "slack",
    Part.SOCKET: "slack",
}
# The name of each part, as shown in "Needs attention: …".
NOUNS = {
    Part.DATABASE: "the database",
    Part.SLACK_TOKEN: "the Slack token",
    Part.SLACK_API: "Slack's API",
    Part.SLACK_SCOPES: "the Slack scopes",
    Part.SOCKET: "Socket Mode",
    Part.APPROVALS_CHANNEL: "the approvals channel",
    Part.ALERTS_CHANNEL: "the alerts channel",
    Part.CLOCK: "the clock",
    Part.DATABASE_CLOCK: "the database's clock",
    Part.SERVICE_CREDENTIALS: "a service's credential",
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """A broken part. The plain-text `sentence` describes the problem and how to fix it.

    Admins read `explanation` instead.
    """

    part: Part
    sentence: str
    explanation: str
    since: datetime


@dataclass(frozen=True)
class JobCount:
    """Job counts: total, due now, and late (overdue or failing for at least a minute)."""

    total: int
    due: int
    late: int


@dataclass(frozen=True)
class Status:
    """The content of `/gatehouse status`.

    `jobs` is None if the database is unavailable. `counts` contains numbers from the database,
    keyed by metric label value. `broken` lists the parts that this process has found to be broken.
    """

    uptime_seconds: float
    database: str
    services: Sequence[ServiceSeen]
    jobs: JobCount | None
    counts: Mapping[str, int] = field(default_factory=dict)
    broken: Sequence[Trouble] = ()

    @property
    def troubles(self) -> list[str]:
        """A short name for each problem. Empty if everything works."""
        named = [] if self.jobs else [NOUNS[Part.DATABASE]]
        named += [NOUNS[trouble.part] for trouble in self.broken]
        return [
            *dict.fromkeys(named),
            *(seen.name for seen in self.services if seen.is_failing),
            *(["open incidents"] if self.counts.get("open_incidents") else []),
            *(["late jobs"] if self.jobs and self.jobs.late else []),
        ]
