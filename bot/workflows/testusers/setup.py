"""What every step of a request works with."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bot.errors import NotConfigured, NotFound
from bot.model.approval import Rules
from bot.model.requests import Who
from bot.model.testusers import Flow, find_flow
from bot.permissions import Person
from bot.store.audit import AuditStore
from bot.store.engine import Database
from bot.workflows.people import People

FLOW_SETTINGS = ("FLOW_BASE_URL", "FLOW_ACCOUNT_SID", "FLOW_AUTH_TOKEN")


class FlowService(Protocol):
    """The test-user resource of flows. Both methods raise `ServiceError`s."""

    async def read(self, flow_sid: str) -> Sequence[str]:
        """Return the identities that are listed now."""
        ...

    async def replace(self, flow_sid: str, identities: Sequence[str]) -> Sequence[str]:
        """Send the whole list once; return the one that the service answers with."""
        ...


@dataclass(frozen=True)
class RequestRules:
    """What the settings say about requests; `aliases` maps short names to flow SIDs."""

    aliases: Mapping[str, str] = field(default_factory=dict)
    approval: Rules = field(default_factory=Rules)
    request_hours: float = 24
    remind_hours: float = 4
    approvals_channel: str = ""


def _new_id() -> str:
    return secrets.token_hex(8)


@dataclass(frozen=True)
class Setup:
    """The parts that the steps share.

    `wake` tells the job loop to look at once; `monotonic` has seconds that never go backwards.
    """

    database: Database
    audit: AuditStore
    people: People
    flow_service: FlowService | None
    rules: RequestRules
    wake: Callable[[], None]
    new_id: Callable[[], str] = _new_id
    monotonic: Callable[[], float] = time.monotonic

    def service(self) -> FlowService:
        """Return the flow service.

        Raises:
            NotConfigured: Its settings are missing.
        """
        if self.flow_service is None:
            raise NotConfigured("the flow service", FLOW_SETTINGS)
        return self.flow_service

    def flow(self, typed: str) -> Flow:
        """Return the flow of that alias or SID.

        Raises:
            NotConfigured: It is neither, and no wonder: the service is not set up.
            NotFound: It is neither.
        """
        found = find_flow(typed, self.rules.aliases)
        if found is None:
            self.service()
            aliases = sorted(self.rules.aliases)[:20]
            known = (
                f"The aliases are: {', '.join(aliases)}. Example: /testusers list {aliases[0]}"
                if aliases
                else f"No aliases are set. Example: /testusers list FW{'0' * 32}"
            )
            raise NotFound(
                f"“{typed[:80]}” is neither an alias of a flow nor a SID"
                f" (FW and 32 hexadecimal digits). {known}"
            )
        return found


def who(person: Person) -> Who:
    """Return the person as a request remembers them."""
    return Who(person.slack_user_id, person.name)
