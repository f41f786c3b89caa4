"""People: identities, permission decisions, and records of refusals."""

import asyncio
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import structlog

from bot.approvals.rules.policies import FlowRules
from bot.errors import Refused, SlackError, SlackRateLimited, UnknownPerson
from bot.ops.clock import Clock
from bot.permissions import (
    EVERY_FULL_MEMBER,
    HIGHEST_ROLE,
    Circumstances,
    Decision,
    Permission,
    Person,
    Policy,
    Reason,
    Role,
    decide,
)
from bot.slack.client import SlackClient, SlackUser
from bot.slack.members import Members
from bot.slack.refusal_record import RefusalRecord

log = structlog.get_logger(__name__)

# A new process learns its identity from Slack within moments; requests wait for that.
MEET_SECONDS = 5.0
NOT_A_MEMBER = "You're from another workspace. Gatehouse only works for members of its own."
GROUPS_UNKNOWN = "I couldn't check your groups with Slack. Please try again in a moment."


class People:
    """Identifies people and decides on permissions.

    Args:
        slack: Looks up people and groups.
        policy: The permissions in the settings.
        refusals: Records refusals; None to only look up permissions.
        clock: Tells the age of cached entries.
    """

    def __init__(
        self,
        slack: SlackClient,
        policy: Policy,
        refusals: RefusalRecord | None,
        clock: Clock,
    ) -> None:
        self._members = Members(slack, clock)
        self.policy = policy
        self._refusals = refusals
        self.team_id: str | None = None
        self.bot_user_id: str | None = None
        self._met = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """True once the bot knows its workspace; before that, everyone is refused."""
        return self._met.is_set()

    def meet(self, team_id: str, bot_user_id: str) -> None:
        """Set the bot's identity. Before that, requests wait briefly and are then refused."""
        self.team_id, self.bot_user_id = team_id, bot_user_id
        self._met.set()

    async def write_down_refusals(self) -> None:
        """Record pending repeated refusals before the program stops."""
        if self._refusals is not None:
            await self._refusals.flush()

    async def find(
        self, slack_user_id: str, team_ids: Iterable[str | None] = (), *, fresh: bool = False
    ) -> Person:
        """Look up a person.

        Args:
            slack_user_id: The person's id.
            team_ids: The workspaces named in the payload.
            fresh: Ask Slack again; use the cache only if Slack doesn't answer.

        Raises:
            UnknownPerson: Slack can't identify the person.
        """
        if not self.is_ready:
            with suppress(TimeoutError):
                async with asyncio.timeout(MEET_SECONDS):
                    await self._met.wait()
        user = await self._user(slack_user_id, fresh=fresh)
        stranger = self._stranger(user, team_ids)
        if stranger is not None:
            return Person(slack_user_id, user.name, stranger=stranger)
        groups, is_sure = await self._members.groups_of(
            slack_user_id, self.policy.groups(), fresh=fresh
        )
        doubt = None if is_sure else GROUPS_UNKNOWN
        belongs = {*groups}
        if slack_user_id.startswith(("U", "W")):
            # Other ids don't belong to people, and might belong to groups.
            belongs.add(slack_user_id)
        if not (user.is_guest or user.is_bot):
            belongs.add(EVERY_FULL_MEMBER)
        roles = frozenset(
            role for role, ids in self.policy.roles.items() if not belongs.isdisjoint(ids)
        )
        return Person(slack_user_id, user.name, roles, groups, doubt, time_zone=user.time_zone)

    async def require(
        self,
        person: Person,
        permission: Permission,
        *,
        flow_sid: str | None = None,
        requester: str | None = None,
    ) -> None:
        """Return if the person has the permission; otherwise, record the refusal and raise.

        Raises:
            Refused: The person lacks the permission; the sentence explains why and names its
                holders.
        """
        decision = self.judge(person, permission, flow_sid, requester)
        if decision.is_granted:
            return
        detail = {"reason": decision.reason, "roles": sorted(person.roles)}
        await self._record(person, permission.name.lower(), detail)
        sentence = await self.explain(person, decision)
        raise UnknownPerson(sentence) if decision.reason is Reason.UNKNOWN else Refused(sentence)

    def may(
        self,
        person: Person,
        permission: Permission,
        flow_sid: str | None = None,
        requester: str | None = None,
    ) -> bool:
        """Return True if the person has the permission, to show or hide elements; not recorded."""
        return self.judge(person, permission, flow_sid, requester).is_granted

    def judge(
        self,
        person: Person,
        permission: Permission,
        flow_sid: str | None = None,
        requester: str | None = None,
    ) -> Decision:
        """Return the decision without recording it."""
        rules = self.policy.rules_of(flow_sid) if flow_sid else FlowRules()
        circumstances = Circumstances(
            rules.approvers,
            requester,
            self.policy.allow_self_approval,
            rules.sources.get("approvers", "ROLES"),
        )
        return decide(person, permission, self.policy.roles, circumstances)

    async def explain(self, person: Person, decision: Decision) -> str:
        """Return the sentences of a refusal: the missing permission and its holders."""
        if decision.reason is Reason.STRANGER:
            return person.stranger or NOT_A_MEMBER
        if decision.reason is Reason.NO_ROLE and EVERY_FULL_MEMBER not in decision.holders:
            holders = await self.access_contact(decision)
        else:
            is_own = decision.reason is Reason.OWN_REQUEST
            holders = await self._who(decision, person.slack_user_id if is_own else "")
        return f"{self._why(person, decision)} {holders}"

    async def lacks_access(self, person: Person) -> str | None:
        """Return the sentence for people who can use only the help; None for all others."""
        named = {person.slack_user_id, *person.groups}
        if person.roles or any(named.intersection(ids) for ids in self.policy.approver_lists()):
            return None
        doubt = f" {person.doubt}" if person.doubt else ""
        return f"You don't have access to Gatehouse yet. {await self.access_contact()}{doubt}"

    async def access_contact(self, decision: Decision | None = None) -> str:
        """Return the contact for people without a role: the configured contact or the admins."""
        contact = self.policy.access_contact
        managers = (contact,) if contact else self.policy.roles.get(Role.ADMIN, ())
        if managers and EVERY_FULL_MEMBER not in managers:
            verb = "manages" if len(managers) == 1 else "manage"
            return f"{await self._members.named(managers)} {verb} access."
        return await self._who(decision) if decision else "Whoever runs Gatehouse manages access."

    async def _who(self, decision: Decision, besides: str = "") -> str:
        """Name the people with the permission, except the requester if they may not decide."""
        holders = tuple(holder for holder in decision.holders if holder != besides)
        if EVERY_FULL_MEMBER in holders:
            other = "other " if besides else ""
            return f"Any {other}full member of this workspace can; guests can't."
        if holders:
            return f"People who can: {await self._members.named(holders)}."
        if besides:
            nobody, remedy = "Nobody else can yet.", "add somebody"
        else:
            nobody, remedy = "Nobody has this permission yet.", "assign it"
        return f"{nobody} Whoever runs Gatehouse can {remedy} (setting {decision.setting})."

    def _why(self, person: Person, decision: Decision) -> str:
        if decision.reason is Reason.UNKNOWN:
            return f"{person.doubt} Until then you can't {decision.permission}."
        if decision.reason is Reason.OWN_REQUEST:
            return "You can't approve, deny or retry your own request."
        if decision.reason is Reason.NOT_AN_APPROVER_OF_THIS_FLOW:
            return f"You can't {decision.permission} for this flow."
        if decision.reason is Reason.NO_ROLE:
            needed = f" (you need the {decision.role} role to {decision.permission})"
            return f"You don't have access to Gatehouse yet{needed if decision.role else ''}."
        higher = "" if decision.role is HIGHEST_ROLE else " (or a higher one)"
        sentence = f"You need the {decision.role} role{higher} to {decision.permission}."
        if decision.permission is Permission.OVERRIDE and self.may(person, Permission.REQUEST):
            return f"{sentence} Leave out “now” to ask for approval."
        return sentence

    async def named(self, ids: Iterable[str]) -> str:
        """Return the Slack names of people and groups, without mentioning them."""
        return await self._members.named(tuple(ids))

    async def name(self, slack_user_id: str) -> str:
        """Return a person's name in Slack, or the id if the look-up fails."""
        return await self._members.name(slack_user_id)

    async def names(self, actors: Iterable[str]) -> Mapping[str, str]:
        """Return the Slack name of each person among the actors, by id."""
        return await self._members.names(actors)

    async def _user(self, slack_user_id: str, *, fresh: bool) -> SlackUser:
        try:
            return await self._members.user(slack_user_id, fresh=fresh)
        except SlackError as error:
            log.warning("people.unknown", reason=error.sentence)
            nobody = Person(slack_user_id, slack_user_id)
            await self._record(nobody, "anything", {"reason": Reason.UNKNOWN})
            raise UnknownPerson(
                f"I couldn't verify who you are with Slack, so I did nothing. {_again(error)}"
            ) from error

    async def _record(self, person: Person, subject: str, detail: Mapping[str, Any]) -> None:
        if self._refusals is not None:
            await self._refusals.add(person, subject, detail)

    def _stranger(self, user: SlackUser, team_ids: Iterable[str | None]) -> str | None:
        if self.team_id is None:
            return "Gatehouse is still starting. Please try again in a moment."
        # The payload or `users.info` may omit the workspace, but not both.
        is_ours = {*filter(None, (*team_ids, user.team_id))} == {self.team_id}
        if user.is_stranger or not is_ours:
            return NOT_A_MEMBER
        if user.is_deleted:
            return "This account is deactivated."
        return None


def _again(error: SlackError) -> str:
    if isinstance(error, SlackRateLimited):
        return f"Please try again in {math.ceil(error.retry_after_seconds)} s."
    return "Please try again."
