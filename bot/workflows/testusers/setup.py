"""What every step of a request works with."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from bot.dataclass import dataclass
from bot.errors import Meant, NotConfigured, NotFound
from bot.model.policies import FlowRules
from bot.model.spelling import closest
from bot.model.testusers.changes import Flow, find_flow
from bot.model.testusers.requests import Who
from bot.ops.clock import SystemClock
from bot.permissions import Person
from bot.store.audit import AuditStore
from bot.store.engine import Database
from bot.workflows.lane import Lane
from bot.workflows.people import People

FLOWS_NAMED = 20
FLOWS_MEANT = 3
FLOW_SETTINGS = ("FLOW_BASE_URL", "FLOW_ACCOUNT_SID", "FLOW_AUTH_TOKEN")


class FlowService(Protocol):
    """The test-user resource of flows. Both methods raise `ServiceError`s."""

    async def read(self, flow_sid: str) -> Sequence[str]:
        """Return the identities that are listed now."""
        ...

    async def replace(
        self, flow_sid: str, identities: Sequence[str], may_send: Callable[[], bool]
    ) -> Sequence[str]:
        """Send the whole list once; return the one that the service answers with.

        `may_send` is asked right before the list is written; if it says no, nothing is sent.
        """
        ...


@dataclass(frozen=True)
class RequestRules:
    """What the settings say about requests.

    `aliases` maps short names to flow SIDs; `missing` are the settings that the flow service lacks.
    """

    aliases: Mapping[str, str] = field(default_factory=dict)
    approvals_needed: int = 1
    request_hours: float = 24
    remind_hours: float = 4
    approvals_channel: str = ""
    missing: Sequence[str] = FLOW_SETTINGS


def _new_id() -> str:
    return secrets.token_hex(8)


@dataclass(frozen=True)
class Setup:
    """The parts that the steps share."""

    database: Database
    audit: AuditStore
    people: People
    flow_service: FlowService | None
    rules: RequestRules
    new_id: Callable[[], str] = _new_id
    lane: Lane = field(default_factory=lambda: Lane(SystemClock()))

    def flow_rules(self, flow_sid: str) -> FlowRules:
        """Return what holds for a flow's requests."""
        return self.people.policy.rules_of(flow_sid, self.rules.approvals_needed)

    async def read(self, flow_sid: str, *, is_typed: bool = True) -> Sequence[str]:
        """Return a flow's list for a person; jobs read it themselves. See `Lane`.

        Raises:
            NotConfigured, ServiceError: It cannot be read.
        """
        service = self.service()
        return await self.lane.call(flow_sid, lambda: service.read(flow_sid), is_typed=is_typed)

    def service(self) -> FlowService:
        """Return the flow service.

        Raises:
            NotConfigured: Its settings are missing.
        """
        if self.flow_service is None:
            raise NotConfigured("the flow service", self.rules.missing)
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
            aliases = sorted(self.rules.aliases)
            near = closest(typed, aliases, FLOWS_MEANT)
            meant = (Meant(typed, alias) for alias in near)
            raise NotFound(_unknown_flow(typed, aliases)).or_rather(*meant)
        return found


def _unknown_flow(typed: str, aliases: Sequence[str]) -> str:
    unknown = f"I don't know a flow “{typed[:80]}”."
    if not aliases:
        return f"{unknown} Use its SID: FW and 32 hexadecimal digits."
    close = closest(typed, aliases)
    guess = f" Did you mean “{close[0]}”?" if close else ""
    more = ", …" if len(aliases) > FLOWS_NAMED else ""
    return f"{unknown}{guess} (Flows: {', '.join(aliases[:FLOWS_NAMED])}{more})"


def who(person: Person) -> Who:
    """Return the person as a request remembers them."""
    return Who(person.slack_user_id, person.name)
