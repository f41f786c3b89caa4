"""The results of checks, the parts that they can affect, and the values in `/gatehouse status`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self

from bot.errors import GatehouseError
from bot.services.calls import ServiceSeen

WELL = "ok"
# The check didn't run: the service isn't configured, or another problem has to be fixed first.
NOT_CONFIGURED, NOT_TRIED = "not_configured", "not_tried"
WRONG = "WRONG"
# The word with which a line of the report begins, by code. Every other code is `WRONG`.
MARKS = {
    WELL: "ok",
    NOT_CONFIGURED: "SKIP",
    NOT_TRIED: "SKIP",
    "reserve_too_large": "WARN",
    "settings_readable": "WARN",
}
# Slack didn't say whether there is a problem.
UNSURE = {"slack_unreachable", "slack_rate_limited", "slack_refused"}
# Problems despite which the bot works.
HARMLESS = {"channel_public"}


class Part(StrEnum):
    """A part of the bot that is checked while the bot runs. Its value is its name in the report.

    `noun` stands in "Needs attention: …". While the part is broken, `/readyz` returns `readiness`,
    unless it's empty. `alerts_in` is the setting of the channel for its alerts. It's empty if no
    alert can be sent without the part.
    """

    noun: str
    readiness: str
    alerts_in: str

    DATABASE = "database", "the database", "database", ""
    SLACK_TOKEN = "slack token", "the Slack token", "slack", ""
    SLACK_API = "slack api", "Slack's API", "", ""
    SLACK_SCOPES = "slack scopes", "the Slack scopes"
    SOCKET = "socket", "Socket Mode", "slack"
    APPROVALS_CHANNEL = "APPROVALS_CHANNEL", "the approvals channel"
    ALERTS_CHANNEL = "ALERTS_CHANNEL", "the alerts channel", "", "approvals_channel"
    CLOCK = "clock", "the clock"
    SERVICE_CREDENTIALS = "service credentials", "a service's credential"

    def __new__(
        cls, name: str, noun: str, readiness: str = "", alerts_in: str = "alerts_channel"
    ) -> Self:
        """Make a part from its row."""
        part = str.__new__(cls, name)
        part._value_, part.noun, part.readiness, part.alerts_in = name, noun, readiness, alerts_in
        return part

    @property
    def label(self) -> str:
        """The label value of the metric `gatehouse_working`, such as `slack_token`."""
        return self.name.lower()


@dataclass(frozen=True)
class Finding:
    """The result of a check.

    `subject` is the name in the report, and a `Part` if this is checked while the bot runs. `code`
    is `ok` or a stable name for the problem. `sentence` describes the problem and the fix. Those
    who run the bot read `explanation` instead, if there is one.
    """

    subject: str
    code: str
    sentence: str
    explanation: str = ""

    @property
    def for_operators(self) -> str:
        """The sentence for those who run the bot."""
        return self.explanation or self.sentence

    @property
    def mark(self) -> str:
        """The word with which the finding's line of the report begins."""
        return MARKS.get(self.code, WRONG)

    @property
    def is_well(self) -> bool:
        """True if no action is needed (also for warnings and unconfigured services)."""
        return self.mark != WRONG and self.code != NOT_TRIED


def all_well(findings: Iterable[Finding]) -> bool:
    """Return True if no finding needs action."""
    return all(finding.is_well for finding in findings)


def well(subject: str, sentence: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(subject, WELL, sentence)


def failed(subject: str, error: GatehouseError) -> Finding:
    """Return a finding with the error's code and sentence."""
    return Finding(subject, error.outcome, error.sentence)


@dataclass(frozen=True)
class Trouble:
    """A broken part, and what was found first."""

    part: Part
    finding: Finding
    since: datetime


@dataclass(frozen=True)
class JobCount:
    """Job counts: total, due now, and late (overdue or failing for at least a minute)."""

    waiting: int
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
    counts: Mapping[str, int]
    broken: Sequence[Trouble]
    blocked: Sequence[str]

    @property
    def troubles(self) -> list[str]:
        """A short name for each problem. Empty if everything works."""
        nouns = [] if self.jobs else [Part.DATABASE.noun]
        nouns += [trouble.part.noun for trouble in self.broken]
        return [
            *dict.fromkeys(nouns),
            *(seen.name for seen in self.services if seen.is_failing),
            *(f"{name} is blocked" for name in self.blocked),
            *(["late jobs"] if self.jobs and self.jobs.late else []),
        ]
