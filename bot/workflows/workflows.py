"""The workflows: every workflow that a listener may ask, in one place."""

from collections.abc import Mapping
from typing import Any, Protocol

from bot.dataclass import dataclass
from bot.workflows.audit import AuditReading
from bot.workflows.conversation import Conversation
from bot.workflows.directory import OrganizationDirectory
from bot.workflows.emailkey import EmailKey
from bot.workflows.home import Home
from bot.workflows.people import People
from bot.workflows.quotas.alerts import Alerts
from bot.workflows.quotas.ratelimits import RateLimits
from bot.workflows.status import StatusReport
from bot.workflows.testusers.parts import Testusers


class Modals(Protocol):
    """Opens modals. Raises `SlackError`s."""

    async def open_view(self, trigger_id: str, view: Mapping[str, Any]) -> str:
        """Open a modal within three seconds of a click; return its view id."""
        ...


@dataclass(frozen=True)
class Workflows:
    """The workflows, one a topic; built by the composition root."""

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
