"""The parts of the bot that checks use."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from bot.checks.rules import Finding
from bot.metrics import Metrics
from bot.ops.clock import Clock
from bot.organizations.client import InventoryClient
from bot.organizations.directory import OrganizationDirectory
from bot.organizations.rules import Organization
from bot.services.calls import ServiceLog
from bot.services.http import ServiceHttp
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.store.engine import Database

Listed = dict[str, Sequence[Organization]]
"""The organizations that a check listed, by data center."""


@dataclass(frozen=True)
class CheckParts:
    """The parts of the bot that the checks use. Tests can pass a smaller object.

    If `can_count` is False, the database can't count calls, so none is made to the inventory
    service.
    """

    settings: Settings
    clock: Clock
    database: Database
    slack: SlackClient
    http: ServiceHttp
    inventory: InventoryClient
    directory: OrganizationDirectory
    metrics: Metrics
    services: ServiceLog
    can_count: bool = True
    listed: Listed = field(default_factory=dict)


Check = Callable[[CheckParts], Awaitable[Sequence[Finding]]]
"""A check of one or several parts or settings. It never writes to a service."""
