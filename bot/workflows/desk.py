"""The desk: every workflow that a listener may ask, in one place."""

from dataclasses import dataclass

from bot.workflows.audit import AuditReading
from bot.workflows.directory import OrganizationDirectory
from bot.workflows.emailkey import EmailKey
from bot.workflows.people import People
from bot.workflows.status import StatusReport


@dataclass(frozen=True)
class Desk:
    """The workflows, one a topic; built by the composition root."""

    people: People
    directory: OrganizationDirectory
    emailkey: EmailKey
    status: StatusReport
    audit: AuditReading
