"""People in Slack: identities, groups, audited permission checks, and rate limits."""

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from typing import Any

import structlog
from cachetools import TTLCache

from bot.errors import (
    DatabaseUnavailable,
    Refused,
    SlackError,
    SlackRefused,
    TooManyCommands,
    UnknownPerson,
)
from bot.ops.clock import Clock
from bot.permissions import (
    EVERY_FULL_MEMBER,
    Decision,
    Permission,
    Person,
    Policy,
    Reason,
    Role,
)
from bot.slack.client import SlackClient, SlackUser
from bot.slack.received_events import is_due
from bot.store import audit
from bot.store.audit_entry import REFUSED, AuditEntry
from bot.store.engine import Database
from bot.tasks import SingleFlight

log = structlog.get_logger(__name__)

# Contract, section 4: group membership is cached for at most five minutes.
CACHE_SECONDS = 240
# Slack's errors for people and groups that don't exist.
NOT_FOUND = {"user_not_found", "user_not_visible", "users_not_found", "no_such_subteam"}
HIDDEN = "Slack doesn't show your profile to Gatehouse, so trying again won't help."
NOT_SET_UP = (
    "Gatehouse's Slack app isn't set up correctly. Please ask whoever runs Gatehouse to run"
    " gatehouse check."
)
NAMED_HOLDERS = 8
WINDOW_SECONDS = 60.0
PEOPLE_COUNTED = 10_000
# The limit for each kind of action, as a multiple of the command limit.
FACTORS = {"commands": 1, "clicks": 2, "requests": 1, "questions": 2}
NOT_A_MEMBER = (
    "You're from another workspace. Only members of Gatehouse's workspace can use Gatehouse."
)
GROUPS_UNKNOWN = "I couldn't check the user groups with Slack."


def is_not_found(error: BaseException | None) -> bool:
    """Return True if Slack says that the person or the group doesn't exist."""
    return isinstance(error, SlackRefused) and error.error in NOT_FOUND


def advice_after(error: BaseException | None) -> str:
    """Return a sentence on what to do after a failed lookup of a person or a group."""
    if is_not_found(error):
        return HIDDEN
    # Slack would refuse the same call again: a scope is missing, or groups need a paid plan.
    return NOT_SET_UP if isinstance(error, SlackRefused) else "Please try again."


def _reason_of(person: Person, decision: Decision) -> str:
    """Return the reason for a refusal, without the names of people who have the permission."""
    permission, role = decision.permission, decision.role
    match decision.reason:
        case Reason.STRANGER:
            return person.stranger or NOT_A_MEMBER
        case Reason.UNKNOWN:
            return f"{person.doubt} Until this check works, you can't {permission}."
        case Reason.OWN_REQUEST:
            return "You can't approve your own request."
        case Reason.NOT_AN_APPROVER_OF_THIS_FLOW | Reason.NOT_A_REQUESTER_OF_THIS_FLOW:
            return f"You can't {permission} for this flow."
        case Reason.NO_ROLE:
            needed = f" (you need the {role} role to {permission})" if role else ""
            return f"You don't have access to Gatehouse yet{needed}."
        case _:
            return f"You need the {role} role to {permission}."


class Pace:
    """Limits how many actions of each kind a person can take per minute.

    `limit` is the maximum number of commands per minute. A value of 0 means no limit.
    """

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._recent: TTLCache[tuple[str, str], deque[float]] = TTLCache(
            PEOPLE_COUNTED, WINDOW_SECONDS, timer=clock.monotonic
        )

    def require(self, slack_user_id: str, kind: str) -> None:
        """Count an action, or raise TooManyCommands if the limit has been reached."""
        if not self._limit:
            return
        now = self._clock.monotonic()
        key = (slack_user_id, kind)
        # The times of the last actions, as many as are allowed per minute.
        times = self._recent.get(key) or deque(maxlen=self._limit * FACTORS[kind])
        if len(times) == times.maxlen and times[0] > now - WINDOW_SECONDS:
            raise TooManyCommands(times[0] + WINDOW_SECONDS - now, kind)
        times.append(now)
        self._recent[key] = times


@dataclass
class People:
    """Identifies people and checks their permissions. Simultaneous lookups share one call."""

    slack: SlackClient
    policy: Policy
    clock: Clock
    database: Database
    team_id: str | None = None
    bot_user_id: str | None = None

    def __post_init__(self) -> None:
        seconds, timer = CACHE_SECONDS, self.clock.monotonic
        self._users = SingleFlight(self.slack.user, seconds, timer, size=10_000)
        self._groups = SingleFlight(self._members, seconds, timer, size=1_000)
        self._handles = SingleFlight(self.slack.group_handles, seconds, timer)

    @property
    def is_ready(self) -> bool:
        """True once the bot knows its workspace. Before that, everyone is refused."""
        return self.team_id is not None

    def meet(self, team_id: str, bot_user_id: str) -> None:
        """Set the workspace and the bot's user ID."""
        self.team_id = team_id
        self.bot_user_id = bot_user_id

    async def find(
        self, slack_user_id: str, team_ids: Iterable[str | None] = (), *, fresh: bool = False
    ) -> Person:
        """Look up a person. `team_ids` are the workspace IDs in the Slack payload.

        A failure is recorded in the audit log. `fresh` is for somebody other than the person who
        acts now: cached people and groups aren't used, and a failure isn't recorded.

        Raises:
            UnknownPerson: Slack can't identify the person or doesn't respond.
        """
        try:
            return await self._person(slack_user_id, team_ids, fresh=fresh)
        except SlackError as error:
            log.warning("people.unknown", reason=error.sentence)
            if not fresh:
                await self.record_refusal(slack_user_id, "anything", {"reason": Reason.UNKNOWN})
            raise UnknownPerson(
                f"I couldn't verify who you are, so I didn't do anything. {advice_after(error)}"
            ) from error

    async def able(
        self,
        holders: Iterable[str],
        permission: Permission,
        flow_sid: str,
        requester: str,
        besides: Collection[str],
    ) -> list[str]:
        """Return the people and groups among `holders` who have the permission now.

        A group counts if one of its members does. People in `besides` don't count. Everyone whom
        Slack doesn't tell about does.
        """

        async def is_able(holder: str) -> bool:
            if holder == EVERY_FULL_MEMBER:
                return True
            members = await self._group(holder) if holder.startswith("S") else {holder}
            if isinstance(members, SlackError):
                return True
            for member in sorted(members.difference(besides)):
                try:
                    person = await self._person(member, (self.team_id,))
                except SlackError as error:
                    if is_not_found(error):
                        continue
                    return True
                if person.doubt or self.may(person, permission, flow_sid, requester):
                    return True
            return False

        asked = list(holders)
        found = await asyncio.gather(*map(is_able, asked))
        return list(compress(asked, found))

    async def _person(
        self, slack_user_id: str, team_ids: Iterable[str | None], *, fresh: bool = False
    ) -> Person:
        user = await self._users.get(slack_user_id, fresh=fresh)
        if stranger := self._stranger(user, team_ids):
            return Person(slack_user_id, user.name, stranger=stranger)
        named = self.policy.groups
        found = await asyncio.gather(*(self._group(group, fresh=fresh) for group in named))
        groups = set[str]()
        doubt = None
        for name, members in zip(named, found, strict=True):
            if isinstance(members, SlackError):
                doubt = f"{GROUPS_UNKNOWN} {advice_after(members)}"
            elif slack_user_id in members:
                groups.add(name)
        # IDs that begin with other letters don't belong to people, and could be group IDs.
        belongs = set(groups)
        if slack_user_id.startswith(("U", "W")):
            belongs.add(slack_user_id)
        if user.is_full_member:
            belongs.add(EVERY_FULL_MEMBER)
        roles = frozenset(
            role for role, ids in self.policy.roles.items() if not belongs.isdisjoint(ids)
        )
        return Person(
            slack_user_id, user.name, roles, frozenset(groups), doubt, time_zone=user.time_zone
        )

    def _stranger(self, user: SlackUser, team_ids: Iterable[str | None]) -> str | None:
        """Return a sentence that says why the person can't use Gatehouse at all, or None."""
        # Either the payload or `users.info` can omit the workspace, but not both.
        is_ours = {*filter(None, (*team_ids, user.team_id))} == {self.team_id}
        if self.team_id is None:
            return "Gatehouse is still starting. Please try again in a moment."
        if user.is_stranger or not is_ours:
            return NOT_A_MEMBER
        return "This account is deactivated." if user.is_deleted else None

    async def require(
        self,
        person: Person,
        permission: Permission,
        *,
        flow_sid: str | None = None,
        requester: str | None = None,
        is_brief: bool = False,
    ) -> None:
        """Check that the person has the permission. If not, record and raise a refusal.

        If `is_brief` is True, nothing is recorded, and the message names nobody.

        Raises:
            Refused: The person lacks the permission. The message says why and who has it.
        """
        decision = self.policy.judge(person, permission, flow_sid, requester)
        if decision.is_granted:
            return
        if is_brief:
            sentence = _reason_of(person, decision)
        else:
            detail = {"reason": decision.reason, "roles": sorted(person.roles)}
            await self.record_refusal(person.slack_user_id, permission.name.lower(), detail)
            sentence = await self.explain(person, decision)
        raise UnknownPerson(sentence) if decision.reason is Reason.UNKNOWN else Refused(sentence)

    def may(
        self,
        person: Person,
        permission: Permission,
        flow_sid: str | None = None,
        requester: str | None = None,
    ) -> bool:
        """Return True if the person has the permission. Unlike `require`, record nothing."""
        return self.policy.judge(person, permission, flow_sid, requester).is_granted

    async def explain(self, person: Person, decision: Decision) -> str:
        """Return an explanation of a refusal: the missing permission and who has it."""
        why = _reason_of(person, decision)
        if decision.reason is Reason.STRANGER:
            return why
        if EVERY_FULL_MEMBER in decision.holders:
            who = "All full members of this workspace have this permission, but guests don't."
        elif decision.reason is Reason.NO_ROLE:
            who = await self.access_contact(person)
        elif names := await self._names(decision.holders, person):
            who = f"People with this permission: {_listed(names)}."
        else:
            nobody = "Nobody else" if person.slack_user_id in decision.holders else "Nobody"
            who = (
                f"{nobody} has this permission yet. Whoever runs Gatehouse can assign it (setting"
                f" {decision.setting})."
            )
        return f"{why} {who}"

    async def lacks_access(self, person: Person) -> str | None:
        """Return a sentence saying that the person has no access, or None if they have access."""
        named = {person.slack_user_id, *person.groups}
        policies = self.policy.flow_policies.values()
        if person.roles or any(named.intersection(policy.approvers or ()) for policy in policies):
            return None
        doubt = f" {person.doubt}" if person.doubt else ""
        return f"You don't have access to Gatehouse yet. {await self.access_contact(person)}{doubt}"

    async def access_contact(self, person: Person) -> str:
        """Return a sentence that names the people who manage access: the contact or the admins."""
        contact = self.policy.access_contact
        admins = self.policy.roles.get(Role.ADMIN, ())
        for managers in ([contact] if contact else [], admins):
            if EVERY_FULL_MEMBER not in managers and (names := await self._names(managers, person)):
                verb = "manages" if len(names) == 1 else "manage"
                return f"{_listed(names)} {verb} access."
        return "Whoever runs Gatehouse manages access."

    async def named(self, ids: Iterable[str]) -> str:
        """List people and groups by name, without notifying them."""
        return _listed(await self._names(ids))

    async def _names(self, ids: Iterable[str], besides: Person | None = None) -> list[str]:
        """Return the names of people and groups, without `besides` and those who have left.

        Only the first names are needed, so people after these aren't looked up.
        """
        holders = [holder for holder in ids if besides is None or holder != besides.slack_user_id]
        names = list[str]()
        while holders and len(names) <= NAMED_HOLDERS:
            looked_up, holders = holders[:NAMED_HOLDERS], holders[NAMED_HOLDERS:]
            found = await asyncio.gather(*map(self._name_if_there, looked_up))
            names += filter(None, found)
        return names + holders

    async def _name_if_there(self, holder: str) -> str:
        """Return the name of a person or a group, or "" for one that has left or is a stranger."""
        is_gone = False
        try:
            if holder.startswith("S"):
                is_gone = await self._group(holder) == frozenset()
            elif holder != EVERY_FULL_MEMBER:
                user = await self._users.get(holder)
                is_gone = self._stranger(user, (self.team_id,)) is not None
        except SlackError as error:
            is_gone = is_not_found(error)
        return "" if is_gone else await self.name(holder)

    async def name(self, holder: str) -> str:
        """Return the name of a person or a group, or the ID if the lookup fails."""
        if holder == EVERY_FULL_MEMBER:
            return "any full member"
        with suppress(SlackError):
            if not holder.startswith("S"):
                return (await self._users.get(holder)).name
            handles = await self._handles.get()
            return f"@{handles[holder]}" if holder in handles else f"the group {holder}"
        return holder

    async def names(self, actors: Iterable[str]) -> Mapping[str, str]:
        """Return the actors' names by Slack user ID, leaving out actors that aren't people."""
        people = [actor for actor in actors if actor.startswith(("U", "W"))]
        names = await asyncio.gather(*map(self.name, people))
        return dict(zip(people, names, strict=True))

    async def _group(self, group_id: str, *, fresh: bool = False) -> frozenset[str] | SlackError:
        """Return a group's members, an empty set for a deleted group, or the error on failure."""
        try:
            return await self._groups.get(group_id, fresh=fresh)
        except SlackError as error:
            return error

    async def _members(self, group_id: str) -> frozenset[str]:
        try:
            return await self.slack.members(group_id)
        except SlackRefused as error:
            if error.error != "no_such_subteam":
                raise
            log.warning("people.no_such_group", group=group_id)
            return frozenset()

    async def record_refusal(
        self, slack_user_id: str, subject: str, detail: Mapping[str, Any], *, is_rare: bool = False
    ) -> None:
        """Record a refusal in the audit log, unless the database is unavailable.

        With `is_rare`, the same refusal is recorded at most once a minute, over all processes.
        """
        entry = AuditEntry(slack_user_id, REFUSED, subject, detail)
        try:
            async with self.database.transaction() as tx:
                if not is_rare or await is_due(tx, f"{REFUSED}:{entry}"):
                    await audit.append(tx, entry)
        except DatabaseUnavailable as error:
            # The person is refused even if the refusal can't be recorded.
            log.error("people.refusal_not_recorded", reason=error.sentence)  # noqa: TRY400 - expected


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_HOLDERS} more" if len(names) > NAMED_HOLDERS else ""
    return f"{', '.join(names[:NAMED_HOLDERS])}{more}"
