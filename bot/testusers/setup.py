"""The parts that every step of a request works with."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from http import HTTPStatus

from bot.approvals.rules.policies import FlowRules
from bot.errors import Meant, NotConfigured, NotFound
from bot.ops.clock import SystemClock
from bot.permissions import Person
from bot.services.errors import ServiceRefused
from bot.services.lane import Lane
from bot.slack.people import People
from bot.spelling import closest
from bot.store.audit import AuditStore
from bot.store.audit_entry import BOT
from bot.store.engine import Database, Transaction
from bot.testusers.client import FlowClient
from bot.testusers.rules.changes import Flow, apply_changes, find_flow
from bot.testusers.rules.requests import Request, Who
from bot.testusers.rules.review import Review, Situation, review
from bot.testusers.store import flows, grants

NEW_ID = partial(secrets.token_hex, 8)
FLOWS_NAMED = 20
FLOWS_MEANT = 3
FLOW_SETTINGS = ("FLOW_BASE_URL", "FLOW_ACCOUNT_SID", "FLOW_AUTH_TOKEN")


@dataclass(frozen=True)
class RequestRules:
    """The settings for requests.

    `aliases` maps short names to flow SIDs; `missing` are the settings that the flow service lacks.
    """

    aliases: Mapping[str, str] = field(default_factory=dict)
    approvals_needed: int = 1
    request_hours: float = 24
    remind_hours: float = 4
    approvals_channel: str = ""
    alerts_channel: str = ""
    missing: Sequence[str] = FLOW_SETTINGS


@dataclass(frozen=True)
class Setup:
    """The parts shared by all steps."""

    database: Database
    audit: AuditStore
    people: People
    flow_service: FlowClient | None
    rules: RequestRules
    new_id: Callable[[], str] = NEW_ID
    lane: Lane = field(default_factory=lambda: Lane(SystemClock()))

    @property
    def aliases(self) -> list[str]:
        """The short names of flows, in order."""
        return sorted(self.rules.aliases)

    @property
    def flow_names(self) -> dict[str, str]:
        """The alias of each flow by its SID in capitals."""
        return {sid.upper(): alias for alias, sid in self.rules.aliases.items()}

    def flow_rules(self, flow_sid: str) -> FlowRules:
        """Return the rules for a flow's requests."""
        return self.people.policy.rules_of(flow_sid, self.rules.approvals_needed)

    def flow_now(self, flow: Flow) -> Flow:
        """Return the flow with its current alias."""
        names = [name for name, sid in self.rules.aliases.items() if sid.upper() == flow.key]
        return Flow(flow.sid, flow.alias if flow.alias in names else next(iter(names), None))

    async def review(
        self,
        tx: Transaction,
        request: Request,
        listed: Sequence[str] | None = None,
        at: datetime | None = None,
        *,
        reads_settings: bool = True,
    ) -> Review:
        """Return the request's effect, at the current or an earlier time.

        `listed` is the flow's list, if it was just read; otherwise, the effect is based on the list
        that the request was last compared with and the bot's own changes since.
        """
        key, requested = request.flow.key, request.requested
        granted = await grants.of_flow(tx, key)
        if listed is None:
            own = await flows.changes_after(tx, key, requested.seen_change_id)
            listed = apply_changes(requested.seen, own)
        situation = Situation(
            at or await tx.now(),
            request.flow,
            {identity: grant.ends_at for identity, grant in granted.items()},
            listed,
            await flows.latest_change_id(tx, key),
            approvals_needed=0,
        )
        if reads_settings:
            rules = self.flow_rules(request.flow.sid)
            situation = replace(
                situation,
                flow=self.flow_now(request.flow),
                longest_seconds=rules.longest_seconds,
                approvals_needed=rules.approvals_needed,
            )
        return review(request, situation)

    async def read(self, flow: Flow, *, is_typed: bool = True) -> Sequence[str]:
        """Return a flow's list for a person; jobs read lists themselves. See `Lane`.

        Raises:
            NotFound: The flow doesn't exist in the service.
            NotConfigured, ServiceError: The list can't be read.
        """
        service = self.service()
        try:
            return await self.lane.call(flow.sid, lambda: service.read(flow.sid), is_typed=is_typed)
        except ServiceRefused as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            step = "Choose another, or ask whoever runs Gatehouse to check FLOW_ALIASES."
            named = f"“{flow.name}” ({flow.sid})" if flow.alias else flow.sid
            raise NotFound(f"The flow service has no flow {named}. {step}") from error

    def service(self) -> FlowClient:
        """Return the flow service.

        Raises:
            NotConfigured: The service's settings are missing.
        """
        if self.flow_service is None:
            raise NotConfigured("the flow service", self.rules.missing)
        return self.flow_service

    def flow(self, typed: str) -> Flow:
        """Return the flow with that alias or SID.

        Raises:
            NotConfigured: The flow is unknown, and the flow service is not configured.
            NotFound: The flow is unknown.
        """
        found = find_flow(typed, self.rules.aliases)
        if found is None:
            self.service()
            near = closest(typed, self.aliases, FLOWS_MEANT)
            meant = (Meant(typed, alias) for alias in near)
            raise NotFound(_unknown_flow(typed, self.aliases)).or_rather(*meant)
        return found


def _unknown_flow(typed: str, aliases: Sequence[str]) -> str:
    unknown = f"I don't know a flow “{typed[:80]}”."
    if not aliases:
        return f"{unknown} Use its SID: FW and 32 hexadecimal digits."
    close = closest(typed, aliases)
    guess = f" Did you mean “{close[0]}”?" if close else ""
    more = ", …" if len(aliases) > FLOWS_NAMED else ""
    return f"{unknown}{guess} (Flows: {', '.join(aliases[:FLOWS_NAMED])}{more})"


THE_BOT = Who(BOT, "Gatehouse")


def who(person: Person) -> Who:
    """Return the person in the form stored in requests."""
    return Who(person.slack_user_id, person.name)
