"""Parts that can break while the bot runs, and the advice for operators."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Part(StrEnum):
    """Monitored parts; the values are labels of `gatehouse_working`."""

    DATABASE = "database"
    SLACK_TOKEN = "slack_token"  # noqa: S105 - a name
    SLACK_API = "slack_api"
    SLACK_SCOPES = "slack_scopes"
    SOCKET = "socket"
    APPROVALS_CHANNEL = "approvals_channel"
    ALERTS_CHANNEL = "alerts_channel"
    CLOCK = "clock"


# What readiness lacks while a part is broken. A channel is no reason to send nobody any more.
READINESS = {
    Part.DATABASE: "database",
    Part.SLACK_TOKEN: "slack",
    Part.SOCKET: "slack",
}
NAMES = {
    Part.DATABASE: "the database",
    Part.SLACK_TOKEN: "the Slack token",
    Part.SLACK_API: "Slack's API",
    Part.SLACK_SCOPES: "the Slack scopes",
    Part.SOCKET: "Socket Mode",
    Part.APPROVALS_CHANNEL: "the approvals channel",
    Part.ALERTS_CHANNEL: "the alerts channel",
    Part.CLOCK: "the clock",
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """A part that is broken: since when, and a sentence with what to do, in plain text."""

    part: Part
    sentence: str
    since: datetime

    @property
    def name(self) -> str:
        """The part as the subject of "needs attention"."""
        return NAMES[self.part]


class Refusal(StrEnum):
    """Why a request to `/slack/events` was refused; the values are metric labels."""

    UNSIGNED = "unsigned"
    STALE = "stale"
    WRONG_SIGNATURE = "wrong_signature"
    MALFORMED = "malformed"
