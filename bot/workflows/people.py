"""People: who somebody is, what they may do, and a record of every refusal."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import structlog
from cachetools import TTLCache

from bot.clock import Clock
from bot.errors import DatabaseUnavailable, Refused, SlackError, UnknownPerson
from bot.model.audit import AuditEntry
from bot.permissions import (
    EVERY_FULL_MEMBER,
    HIGHEST_ROLE,
    Circumstances,
    Decision,
    Permission,
    Person,
    Policy,
    Reason,
    decide,
    who_may,
)
from bot.store.audit import AuditStore
from bot.store.engine import Database
from bot.workflows.flights import Flights

log = structlog.get_logger(__name__)

V = TypeVar("V")

# Contract, section 4: group membership is cached for at most five minutes.
CACHE_SECONDS = 240
NAMED_HOLDERS = 8
# A process that has just started asks Slack who it is within moments; who asks meanwhile waits.
MEET_SECONDS = 5.0


class SlackUserInfo(Protocol):
    """What is needed of a person in Slack."""

    @property
    def team_id(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def is_guest(self) -> bool: ...  # noqa: D102
    @property
    def is_bot(self) -> bool: ...  # noqa: D102
    @property
    def is_deleted(self) -> bool: ...  # noqa: D102


class SlackPeople(Protocol):
    """What is needed of Slack. Every method raises `SlackError`s."""

    async def user(self, slack_user_id: str) -> SlackUserInfo:
        """Return a person."""
        ...

    async def members(self, group_id: str) -> frozenset[str]:
        """Return the user ids of a user group."""
        ...

    async def group_handles(self) -> Mapping[str, str]:
        """Return the handle of each user group by its id."""
        ...


class People:
    """Knows people and decides.

    Args:
        slack: Looks people and groups up.
        policy: What the settings say.
        database: Where refusals are recorded.
        audit: How they are recorded.
        clock: For the age of what is cached.
    """

    def __init__(
        self,
        slack: SlackPeople,
        policy: Policy,
        database: Database,
        audit: AuditStore,
        clock: Clock,
    ) -> None:
        self._slack = slack
        self._policy = policy
        self._database = database
        self._audit = audit
        self.team_id: str | None = None
        self.bot_user_id: str | None = None
        self._met = asyncio.Event()
        self._users: Flights[str, SlackUserInfo] = Flights(
            TTLCache(10_000, CACHE_SECONDS, timer=clock.monotonic)
        )
        self._groups: Flights[str, frozenset[str]] = Flights(
            TTLCache(1_000, CACHE_SECONDS, timer=clock.monotonic)
        )
        self._handles: Flights[str, Mapping[str, str]] = Flights(
            TTLCache(1, CACHE_SECONDS, timer=clock.monotonic)
        )

    @property
    def is_ready(self) -> bool:
        """Whether the bot knows its own workspace, without which nobody is admitted."""
        return self._met.is_set()

    def meet(self, team_id: str, bot_user_id: str) -> None:
        """Learn from Slack who we are; until then everybody waits a little, and is then refused."""
        self.team_id, self.bot_user_id = team_id, bot_user_id
        self._met.set()

    async def find(
        self, slack_user_id: str, team_ids: Iterable[str | None] = (), *, fresh: bool = False
    ) -> Person:
        """Look a person up.

        Args:
            slack_user_id: Who.
            team_ids: The workspaces that the payload names.
            fresh: Ask Slack anew; what is cached counts only where Slack does not answer.

        Raises:
            UnknownPerson: Slack does not tell who it is.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(MEET_SECONDS):
                await self._met.wait()
        user = await self._user(slack_user_id, fresh=fresh)
        stranger = self._stranger(user, team_ids)
        if stranger is not None:
            return Person(slack_user_id, user.name, stranger=stranger)
        groups, doubt = await self._groups_of(slack_user_id, fresh=fresh)
        belongs = {slack_user_id, *groups}
        if not (user.is_guest or user.is_bot):
            belongs.add(EVERY_FULL_MEMBER)
        roles = frozenset(
            role for role, ids in self._policy.roles.items() if not belongs.isdisjoint(ids)
        )
        return Person(slack_user_id, user.name, roles, groups, doubt)

    async def decide(
        self,
        person: Person,
        permission: Permission,
        *,
        flow_sid: str | None = None,
        requester: str | None = None,
    ) -> Decision:
        """Decide, and record a refusal; see `permissions.decide`."""
        decision = decide(
            person, permission, self._policy.roles, self.circumstances(flow_sid, requester)
        )
        if not decision.is_granted:
            detail = {"reason": decision.reason, "roles": sorted(person.roles)}
            await self._record(person.slack_user_id, permission.name.lower(), detail)
        return decision

    async def admit(
        self,
        person: Person,
        permission: Permission,
        *,
        flow_sid: str | None = None,
        requester: str | None = None,
    ) -> None:
        """Return if the person may; else record it and raise.

        Raises:
            Refused: They may not; the sentence says why and who may.
        """
        decision = await self.decide(person, permission, flow_sid=flow_sid, requester=requester)
        if decision.is_granted:
            return
        sentence = await self.explain(person, decision)
        raise UnknownPerson(sentence) if decision.reason is Reason.UNKNOWN else Refused(sentence)

    def circumstances(self, flow_sid: str | None, requester: str | None) -> Circumstances:
        """Return what the settings add to a decision about a flow and a request."""
        approvers = self._policy.flow_approvers.get(flow_sid.upper()) if flow_sid else None
        return Circumstances(approvers, requester, self._policy.allow_self_approval)

    def may(
        self,
        person: Person,
        permission: Permission,
        flow_sid: str | None = None,
        requester: str | None = None,
    ) -> bool:
        """Return whether the person may, to show or hide something; nothing is recorded."""
        circumstances = self.circumstances(flow_sid, requester)
        return decide(person, permission, self._policy.roles, circumstances).is_granted

    def deciders(self, flow_sid: str) -> tuple[str, ...]:
        """Return the ids of who may approve for a flow."""
        circumstances = self.circumstances(flow_sid, None)
        return who_may(Permission.DECIDE, self._policy.roles, circumstances)

    @property
    def allows_self_approval(self) -> bool:
        """Whether one may approve one's own request, given the right to approve."""
        return self._policy.allow_self_approval

    async def explain(self, person: Person, decision: Decision) -> str:
        """Return the sentences of a refusal: what is missing and who has it."""
        if decision.reason is Reason.STRANGER:
            return person.stranger or "You are not of this workspace."
        if decision.reason is Reason.OWN_REQUEST:
            who = await self._who_else(person, decision)
        else:
            who = await self._who(decision)
        return f"{self._why(person, decision)} {who}"

    async def _who(self, decision: Decision) -> str:
        """Who has what is missing."""
        if EVERY_FULL_MEMBER in decision.holders:
            return "Every full member of this workspace has it; guests do not."
        if not decision.holders:
            return f"Nobody has it yet: the operator of Gatehouse sets it in {decision.setting}."
        return await self._named(decision.holders)

    async def _who_else(self, person: Person, decision: Decision) -> str:
        """Who may decide on the request of somebody who lacks nothing else."""
        others = tuple(one for one in decision.holders if one != person.slack_user_id)
        if EVERY_FULL_MEMBER in others:
            return "Every other full member of this workspace may; guests may not."
        if not others:
            return (
                "Nobody else may decide yet: ask the operator of Gatehouse to name somebody"
                f" in {decision.setting}."
            )
        return await self._named(others)

    def _why(self, person: Person, decision: Decision) -> str:
        if decision.reason is Reason.UNKNOWN:
            return f"{person.doubt} Until then you may not {decision.permission}."
        if decision.reason is Reason.OWN_REQUEST:
            return "This is your own request: somebody else has to decide on it."
        if decision.reason is Reason.NOT_AN_APPROVER_OF_THIS_FLOW:
            return f"You may not {decision.permission} for this flow."
        role = f"the role {decision.role}" if decision.role else "a role"
        higher = "" if decision.role is HIGHEST_ROLE else " or a higher one"
        sentence = f"You may not {decision.permission}: that needs {role}{higher}."
        if decision.permission is Permission.OVERRIDE and self.may(person, Permission.REQUEST):
            return f"{sentence} Leave out “now” to ask for approval."
        return sentence

    async def name(self, slack_user_id: str) -> str:
        """Return what Slack calls a person, or the id when it cannot be looked up."""
        try:
            return (await self._users.get(slack_user_id, self._slack.user)).name
        except SlackError:
            return slack_user_id

    async def names(self, actors: Iterable[str]) -> Mapping[str, str]:
        """Return what Slack calls each of the people among the actors, by their ids."""
        people = [one for one in actors if one.startswith(("U", "W"))]
        found = await asyncio.gather(*(self.name(one) for one in people))
        return dict(zip(people, found, strict=True))

    async def _user(self, slack_user_id: str, *, fresh: bool) -> SlackUserInfo:
        try:
            return await _look_up(self._users, slack_user_id, self._slack.user, fresh=fresh)
        except SlackError as error:
            log.warning("people.unknown", reason=error.sentence)
            await self._record(slack_user_id, "anything", {"reason": Reason.UNKNOWN})
            raise UnknownPerson(
                "Slack did not tell us who you are, so nothing was done. Please try again."
            ) from error

    def _stranger(self, user: SlackUserInfo, team_ids: Iterable[str | None]) -> str | None:
        if self.team_id is None:
            return "Gatehouse does not know its own workspace yet. Please try again in a moment."
        # A payload may name no workspace, and so may `users.info`; one of them has to.
        if {*filter(None, (*team_ids, user.team_id))} != {self.team_id}:
            return "You are of another workspace: Gatehouse answers people of its own only."
        if user.is_deleted:
            return "This account is deactivated."
        return None

    async def _groups_of(
        self, slack_user_id: str, *, fresh: bool
    ) -> tuple[frozenset[str], str | None]:
        """Return which of the named groups somebody is in, and a doubt when one is unreadable."""
        named = sorted(self._policy.groups())
        found = await asyncio.gather(
            *(_look_up(self._groups, one, self._slack.members, fresh=fresh) for one in named),
            return_exceptions=True,
        )
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, SlackError):
                raise one
        groups = frozenset(
            group
            for group, members in zip(named, found, strict=True)
            if isinstance(members, frozenset) and slack_user_id in members
        )
        failed = any(isinstance(one, SlackError) for one in found)
        doubt = "Slack did not tell which groups you are in. Please try again." if failed else None
        return groups, doubt

    async def _named(self, holders: tuple[str, ...]) -> str:
        names = await asyncio.gather(*(self._label(one) for one in holders[:NAMED_HOLDERS]))
        rest = f" and {len(holders) - NAMED_HOLDERS} more" if len(holders) > NAMED_HOLDERS else ""
        return f"Ask {', '.join(names)}{rest}."

    async def _label(self, holder: str) -> str:
        if not holder.startswith("S"):
            return f"{await self.name(holder)} ({holder})"
        try:
            handles = await self._handles.get("", lambda _: self._slack.group_handles())
        except SlackError:
            return f"the group {holder}"
        return f"the group @{handles.get(holder, holder)} ({holder})"

    async def _record(self, slack_user_id: str, subject: str, detail: Mapping[str, Any]) -> None:
        entry = AuditEntry(slack_user_id, "permission.refused", subject, detail)
        try:
            async with self._database.transaction() as tx:
                await self._audit.append(tx, entry)
        except DatabaseUnavailable as error:
            # The refusal stands whether or not it could be written down.
            log.error("people.refusal_not_recorded", reason=error.sentence)  # noqa: TRY400 - expected


async def _look_up(
    cache: Flights[str, V], key: str, load: Callable[[str], Awaitable[V]], *, fresh: bool
) -> V:
    try:
        return await cache.get(key, load, fresh=fresh)
    except SlackError:
        cached = cache.cached(key)
        if cached is None:
            raise
        return cached
