"""The flow service and Slack of a rough day."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from bot.errors import SlackRefused
from bot.service_errors import (
    CredentialsRefused,
    PermissionMissing,
    RateLimited,
    ServiceFailed,
    ServiceRefused,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.ui.message import Message
from tests.support.testusers import WELCOME, FakeFlowService


def no_such_flow() -> ServiceRefused:
    """A 404 in the service's own words."""
    return ServiceRefused("flow", "No such flow.", status=404, message="No such flow.")


FAULTS = {
    "502": lambda: ServiceFailed("flow", "Bad gateway.", status=502),
    "refused connection": lambda: ServiceUnreachable("flow", "Not there.", sent=False),
    "broken connection": lambda: ServiceUnreachable("flow", "It broke."),
    "403": lambda: PermissionMissing("flow", "Not allowed."),
}
# What the service says to a list without somebody; with "kept" it stores it with them.
REFUSALS = {
    "400": lambda: ServiceRefused("flow", "Not that one.", status=400),
    "401": lambda: CredentialsRefused("flow", "Not with that credential."),
    "403": lambda: PermissionMissing("flow", "Not allowed."),
    "404": no_such_flow,
    "429": lambda: RateLimited("flow", "Too many.", code=None),
    "503": lambda: ServiceFailed("flow", "Down.", status=503),
    "no answer": lambda: ServiceTimeout("flow", "No answer."),
    "kept": lambda: None,
}


class Crash(BaseException):
    """The process is gone."""


@dataclass
class RoughService(FakeFlowService):
    """A flow service that fails in more ways.

    Attributes:
        before_update: Looks at the list and what is to replace it.
        hidden: The methods that are answered with 404, though the flow is there.
        deleted: The list of the flow when it was deleted; None while it is there.
        keeps: Who is never taken off the list, and `refusal` what is said instead.
        forgets: Who is left out of every list that is stored.
        fails_with: Who makes every update fail that names them.
        crash: Whether the process dies before or after the next update.
        seen: The list as the run of a job read it last.
        unseen: Whose place was changed by hand, and no job has read it since.
        sent_at: When each POST was sent that is in the air.
    """

    now: Callable[[], float] = lambda: 0.0
    before_update: Callable[[list[str], list[str]], Awaitable[None]] | None = None
    hidden: frozenset[str] = frozenset()
    deleted: list[str] | None = None
    keeps: str = ""
    refusal: str = "400"
    forgets: str = ""
    fails_with: str = ""
    crash: str = ""
    seen: list[str] | None = None
    unseen: set[str] = field(default_factory=set)
    sent_at: list[float] = field(default_factory=list)

    @property
    def listed(self) -> list[str]:
        """The flow's list; empty where there is none."""
        return self.lists.get(WELCOME, [])

    @property
    def is_missing(self) -> bool:
        """Whether who reads the list is told that there is no such flow."""
        return "GET" in self.hidden or self.deleted is not None

    def delete(self) -> None:
        """Delete the flow, and what is in the air with it."""
        self.deleted = self.deleted or self.lists.pop(WELCOME)
        self.in_the_air.clear()
        self.sent_at.clear()

    def bring_back(self, *, is_empty: bool) -> None:
        """Make the flow again, with its list or without."""
        if self.deleted is not None:
            self.lists[WELCOME] = [] if is_empty else self.deleted
        self.deleted, self.hidden = None, frozenset()

    async def read(self, flow_sid: str) -> list[str]:
        """Return the list."""
        self.seen = None
        if "GET" in self.hidden:
            self.reads += 1
            raise no_such_flow()
        self.seen = await super().read(flow_sid)
        return self.seen

    async def replace(self, flow_sid: str, identities, may_send) -> list[str]:
        """Store a list."""
        await self.before_update(self.listed, list(identities))
        if self.crash == "before":
            self.crash = ""
            raise Crash
        if "POST" in self.hidden:
            raise no_such_flow()
        answer = await self._store(flow_sid, self._kept(identities), may_send)
        if self.crash:
            self.crash = ""
            raise Crash
        return answer

    def _kept(self, identities) -> list[str]:
        if self.keeps not in self.listed or self.keeps in identities:
            return [one for one in identities if one != self.forgets]
        if refused := REFUSALS[self.refusal]():
            raise refused
        return [*identities, self.keeps]

    async def _store(self, flow_sid: str, identities: list[str], may_send) -> list[str]:
        if self.fails_with in identities:
            raise ServiceFailed("flow", "Not with that one.", status=502)
        before = len(self.in_the_air)
        try:
            return await super().replace(flow_sid, identities, may_send)
        finally:
            self.sent_at += [self.now()] * (len(self.in_the_air) - before)


@dataclass
class RoughSlack:
    """Slack: its messages by place; nothing can be written in a channel that is `gone`."""

    messages: dict[tuple[str, str], Message] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    by_client_id: dict[str, tuple[str, str]] = field(default_factory=dict)

    async def post(
        self, channel_id: str, message: Message, *, thread_ts: str | None, client_msg_id: str
    ) -> tuple[str, str]:
        """Post once."""
        self._require(channel_id)
        if client_msg_id not in self.by_client_id:
            place = channel_id, f"{len(self.by_client_id)}.0"
            self.by_client_id[client_msg_id] = place
            self.messages[place] = message
        return self.by_client_id[client_msg_id]

    async def update(self, channel_id: str, message_ts: str, message: Message) -> None:
        """Edit."""
        self._require(channel_id)
        self.messages[channel_id, message_ts] = message

    async def permalink(self, channel_id: str, message_ts: str) -> str:
        """Return a link."""
        return f"https://slack.example/{channel_id}/{message_ts}"

    def _require(self, channel_id: str) -> None:
        if channel_id in self.gone:
            raise SlackRefused("channel_not_found")
