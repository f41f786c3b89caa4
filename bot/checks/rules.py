"""The parts that a check's result can affect, and the values in `/gatehouse status`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum, auto
from typing import Self

from bot.services.calls import ServiceSeen


class Severity(IntEnum):
    """The effect of a check's result, from the least to the most.

    `check` succeeds with results up to `WARNING`.
    The bot's health changes with all results except `UNTRIED` and `UNSURE`. Only a `PROBLEM` makes
    a part count as broken.
    """

    WELL = auto()
    NOT_CONFIGURED = auto()
    WARNING = auto()
    UNTRIED = auto()
    UNSURE = auto()
    """Slack didn't say whether there is a problem."""
    HARMLESS = auto()
    """The bot works despite the problem."""
    PROBLEM = auto()


SEVERITIES = {
    "ok": Severity.WELL,
    "not_configured": Severity.NOT_CONFIGURED,
    "reserve_too_large": Severity.WARNING,
    "setting_unused": Severity.WARNING,
    "not_tried": Severity.UNTRIED,
    "slack_unreachable": Severity.UNSURE,
    "slack_rate_limited": Severity.UNSURE,
    "slack_refused": Severity.UNSURE,
    "settings_readable": Severity.WARNING,
    "channel_public": Severity.HARMLESS,
}
"""The severity of each code. Every other code is a problem."""


class Part(StrEnum):
    """A part of the bot that is checked while the bot runs. Its value is its name in the report.

    `noun` stands in "Needs attention: …". While the part is broken, `/readyz` returns `readiness`,
    unless it's empty. Without the parts in `UNALERTED`, alerts can't be sent.
    """

    noun: str
    readiness: str

    DATABASE = "database", "the database", "database"
    SLACK_TOKEN = "slack token", "the Slack token", "slack"
    SLACK_API = "slack api", "Slack's API"
    SLACK_SCOPES = "slack scopes", "the Slack scopes"
    SOCKET = "socket", "Socket Mode", "slack"
    APPROVALS_CHANNEL = "APPROVALS_CHANNEL", "the approvals channel"
    ALERTS_CHANNEL = "ALERTS_CHANNEL", "the alerts channel"
    CLOCK = "clock", "the clock"
    SERVICE_CREDENTIALS = "service credentials", "a service's credential"

    def __new__(cls, name: str, noun: str, readiness: str = "") -> Self:
        """Make a part from its row."""
        part = str.__new__(cls, name)
        part._value_, part.noun, part.readiness = name, noun, readiness
        return part

    @property
    def label(self) -> str:
        """The label value of the metric `gatehouse_working`, such as `slack_token`."""
        return self.name.lower()


UNALERTED = frozenset({Part.DATABASE, Part.SLACK_TOKEN, Part.SLACK_API})


@dataclass(frozen=True)
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
    keyed by metric label value. `broken` lists the parts that this process has found to be broken,
    and `blocked` the names of the organizations that have an open incident.
    """

    uptime_seconds: float
    database: str
    services: Sequence[ServiceSeen]
    jobs: JobCount | None
    counts: Mapping[str, int] = field(default_factory=dict)
    broken: Sequence[Trouble] = ()
    blocked: Sequence[str] = ()

    @property
    def troubles(self) -> list[str]:
        """A short name for each problem. Empty if everything works."""
        named = [] if self.jobs else [Part.DATABASE.noun]
        named += [trouble.part.noun for trouble in self.broken]
        return [
            *dict.fromkeys(named),
            *(seen.name for seen in self.services if seen.is_failing),
            *(f"{name} is blocked" for name in self.blocked),
            *(["late jobs"] if self.jobs and self.jobs.late else []),
        ]
