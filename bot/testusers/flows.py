"""Flows by alias or SID, and their lists in the flow service."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Protocol

from bot.errors import Meant, NotConfigured, NotFound
from bot.metrics import Metrics
from bot.ops.clock import Clock
from bot.permissions import Person
from bot.services.errors import ServiceRefused
from bot.services.http import Lane
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.slack.people import People
from bot.slack.replies import Replies
from bot.spelling import closest
from bot.store.audit import AuditStore
from bot.store.audit_entry import BOT
from bot.store.engine import Database
from bot.testusers.client import FlowClient
from bot.testusers.rules.changes import Flow, find_flow
from bot.testusers.rules.requests import Who

FLOWS_NAMED = 20
FLOWS_MEANT = 3


class Flows:
    """The flows, found by alias or SID.

    Args:
        aliases: `FLOW_ALIASES`.
        client: The flow service; None if it isn't configured.
        missing: The settings that the flow service lacks.
        lane: Limits how many lists are read for people at a time.
    """

    def __init__(
        self,
        aliases: Mapping[str, str],
        client: FlowClient | None,
        missing: Sequence[str],
        lane: Lane,
    ) -> None:
        self.aliases = sorted(aliases)
        self.names = {sid.upper(): alias for alias, sid in aliases.items()}
        self.sids = aliases
        self._client = client
        self._missing = missing
        self._lane = lane

    def named(self, typed: str) -> Flow:
        """Return the flow with that alias or SID."""
        if found := find_flow(typed, self.sids):
            return found
        self.service()
        unknown = f"I don't know a flow called “{typed[:80]}”."
        near = closest(typed, self.aliases, FLOWS_MEANT)
        guess = f" Did you mean “{near[0]}”?" if near else ""
        more = ", …" if len(self.aliases) > FLOWS_NAMED else ""
        known = f"{guess} (Flows: {', '.join(self.aliases[:FLOWS_NAMED])}{more})"
        use_sid = " Use its SID: FW and 32 hexadecimal digits."
        error = NotFound(f"{unknown}{known if self.aliases else use_sid}")
        raise error.or_rather(*(Meant(typed, alias) for alias in near))

    def now(self, flow: Flow) -> Flow:
        """Return the flow with its current alias."""
        names = [name for name, sid in self.sids.items() if sid.upper() == flow.key]
        return Flow(flow.sid, flow.alias if flow.alias in names else next(iter(names), None))

    def service(self) -> FlowClient:
        """Return the flow service."""
        if self._client is None:
            raise NotConfigured("the flow service", self._missing)
        return self._client

    async def read(self, flow: Flow, *, is_typed: bool = True) -> Sequence[str]:
        """Return a flow's list for a person; jobs read lists themselves. See `Lane`."""
        service = self.service()
        try:
            return await self._lane.call(
                flow.sid, lambda: service.read(flow.sid), is_typed=is_typed
            )
        except ServiceRefused as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            step = "Choose another, or ask whoever runs Gatehouse to check FLOW_ALIASES."
            named = f"“{flow.name}” ({flow.sid})" if flow.alias else flow.sid
            raise NotFound(f"The flow service has no flow {named}. {step}") from error


class Parts(Protocol):
    """`bot.app.Gatehouse`, or the parts of it that a test needs."""

    settings: Settings
    clock: Clock
    database: Database
    audit: AuditStore
    people: People
    flows: Flows
    slack: SlackClient
    replies: Replies
    metrics: Metrics

    def new_id(self) -> str:
        """Return an id for a request or a job."""
        ...


THE_BOT = Who(BOT, "Gatehouse")


def who(person: Person) -> Who:
    """Return the person in the form stored in requests."""
    return Who(person.slack_user_id, person.name)
