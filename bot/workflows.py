"""The workflows that listeners can use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from bot.audit.reading import AuditReading
from bot.checks.status import StatusReport
from bot.emailkey import EmailKey
from bot.home.publishing import Home
from bot.organizations.directory import OrganizationDirectory
from bot.quotas.alerts import Alerts
from bot.quotas.ratelimits import RateLimits
from bot.slack.conversation import Conversation
from bot.slack.people import People
from bot.testusers.parts import Testusers


class Modals(Protocol):
    """Opens modals. Raises `SlackError`s."""

    async def open_view(self, trigger_id: str, view: Mapping[str, Any]) -> str:
        """Open a modal within three seconds of a click; return its view id."""
        ...


@dataclass(frozen=True)
class Workflows:
    """The workflows, one per topic; built by the composition root."""

    people: People
    directory: OrganizationDirectory
    ratelimits: RateLimits
    alerts: Alerts
    emailkey: EmailKey
    testusers: Testusers
    home: Home
    conversation: Conversation
    status: StatusReport
    audit: AuditReading
    modals: Modals
