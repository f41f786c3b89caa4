"""ROLES and FLOW_APPROVERS: are the people and groups there, and can anybody approve."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from bot.approvals.rules.policies import EVERY_FLOW
from bot.checks.doctor.findings import Finding, failed, well
from bot.errors import SlackError, SlackRefused
from bot.permissions import EVERY_FULL_MEMBER, Circumstances, Permission, Policy, who_may

SUBJECT = "roles"


@dataclass(frozen=True, slots=True)
class Naming:
    """Where people and groups are named: the findings' subject, and what to do about a mistake."""

    subject: str
    advice: str

    def mistake(self, code: str, what: str, advice: str = "") -> Finding:
        """The finding for something that is wrong with it."""
        sentence = f"{what[:1].upper()}{what[1:]}: {advice or self.advice}."
        return Finding(self.subject, code, sentence)


IN_ROLES = Naming(SUBJECT, "correct ROLES or FLOW_APPROVERS")
AS_CONTACT = Naming("ACCESS_CONTACT", "correct it, or leave it out to name the admins")


class SlackUserFacts(Protocol):
    """The part of a person that the doctor needs."""

    @property
    def team_id(self) -> str: ...  # noqa: D102
    @property
    def is_deleted(self) -> bool: ...  # noqa: D102


class SlackPeople(Protocol):
    """The Slack calls that the doctor needs. Every method raises `SlackError`s."""

    async def user(self, slack_user_id: str) -> SlackUserFacts:
        """Return a person."""
        ...

    async def members(self, group_id: str) -> frozenset[str]:
        """Return the user ids of a user group."""
        ...


class RolesExam:
    """Looks every id of a policy up, once.

    Args:
        slack: Looks people and groups up.
        policy: What the settings say.
        team_id: The bot's workspace.
        needed: `APPROVALS_NEEDED`.
    """

    def __init__(self, slack: SlackPeople, policy: Policy, team_id: str, needed: int) -> None:
        self._slack = slack
        self._policy = policy
        self._team_id = team_id
        self._needed = needed
        self._people: dict[str, frozenset[str]] = {}
        self._is_complete = True

    async def run(self) -> list[Finding]:
        """Every id that is wrong, then every flow that nobody, or too few, can approve for."""
        named = _named(self._policy)
        wrong = [
            finding for slack_id in named for finding in await self._look_up(slack_id, IN_ROLES)
        ]
        if self._is_complete:
            wrong += self._deciders()
        everybody = well(SUBJECT, f"All {len(named)} people and groups are there.")
        return [*(wrong or [everybody]), *await self._contact()]

    async def _contact(self) -> list[Finding]:
        """Check the contact for people without a role."""
        contact = self._policy.access_contact
        if contact is None:
            return []
        wrong = await self._look_up(contact, AS_CONTACT)
        return wrong or [well(AS_CONTACT.subject, f"{contact} is there.")]

    async def _look_up(self, slack_id: str, naming: Naming) -> list[Finding]:
        is_group = slack_id.startswith("S")
        try:
            wrong = await (self._group(slack_id) if is_group else self._user(slack_id, naming))
        except SlackRefused as error:
            return [self._refused(slack_id, error, naming)]
        except SlackError as error:
            self._is_complete = False
            return [failed(naming.subject, error)]
        return wrong

    async def _group(self, group_id: str) -> list[Finding]:
        self._people[group_id] = await self._slack.members(group_id)
        return []

    async def _user(self, user_id: str, naming: Naming) -> list[Finding]:
        user = await self._slack.user(user_id)
        if user.is_deleted:
            return [naming.mistake("user_deactivated", f"{user_id} is a deactivated account")]
        if user.team_id not in ("", self._team_id):
            what = f"{user_id} is of another workspace"
            return [naming.mistake("user_of_another_workspace", what)]
        self._people[user_id] = frozenset({user_id})
        return []

    def _refused(self, slack_id: str, error: SlackRefused, naming: Naming) -> Finding:
        if error.error == "missing_scope":
            self._is_complete = False
            sentence = f"{slack_id} cannot be looked up: a scope is missing."
            return Finding(naming.subject, "scope_missing", sentence)
        if error.error == "plan_upgrade_required":
            what = "this workspace's plan has no user groups"
            return naming.mistake("groups_not_in_plan", what)
        kind = "group" if slack_id.startswith("S") else "user"
        return naming.mistake(f"{kind}_unknown", f"there is no {kind} {slack_id} ({error.error})")

    def _deciders(self) -> list[Finding]:
        everywhere = who_may(Permission.DECIDE, self._policy.roles)
        found = self._too_few(everywhere, "anything", "give somebody the role approver in ROLES")
        for flow_sid in dict.fromkeys((*self._policy.flow_approvers, *self._policy.flow_policies)):
            rules = self._policy.rules_of(flow_sid, self._needed)
            named = who_may(Permission.DECIDE, self._policy.roles, Circumstances(rules.approvers))
            what = "any other flow" if flow_sid == EVERY_FLOW else f"flow {flow_sid}"
            advice = f"see {rules.sources.get('approvers', 'ROLES')}"
            found += self._too_few(named, what, advice, rules.approvals_needed)
        return found

    def _too_few(
        self, holders: Iterable[str], what: str, advice: str, needed: int | None = None
    ) -> list[Finding]:
        needed = self._needed if needed is None or not self._needed else needed
        if EVERY_FULL_MEMBER in holders:
            return []
        people = frozenset[str]().union(*(self._people.get(holder, ()) for holder in holders))
        if len(people) >= needed:
            return self._lonely(people, what, advice)
        if not people:
            return [IN_ROLES.mistake("nobody_can_approve", f"nobody can approve {what}", advice)]
        sentence = f"{len(people)} can approve {what}, and {needed} have to"
        return [IN_ROLES.mistake("too_few_approvers", sentence, advice)]

    def _lonely(self, people: frozenset[str], what: str, advice: str) -> list[Finding]:
        """Approvers whose own requests too few others can approve."""
        others = len(people) - 1
        if self._policy.allow_self_approval or others >= self._needed or not self._needed:
            return []
        may_ask = who_may(Permission.REQUEST, self._policy.roles)
        askers = frozenset[str]().union(*(self._people.get(asker, ()) for asker in may_ask))
        lonely = people if EVERY_FULL_MEMBER in may_ask else people & askers
        if not lonely:
            return []
        whose = f"{min(lonely)}'s own requests" if len(lonely) == 1 else "approvers' own requests"
        sentence = (
            f"{whose} for {what} can never be approved: {others} other{'' if others == 1 else 's'}"
            f" can approve, and APPROVALS_NEEDED is {self._needed}"
        )
        return [IN_ROLES.mistake("lonely_approver", sentence, advice)]


def _named(policy: Policy) -> list[str]:
    policies = policy.flow_policies.values()
    told = [ids for policy in policies for ids in (policy.notify, policy.escalate_to) if ids]
    lists = [*policy.roles.values(), *policy.approver_lists(), *told, *policy.automatic_lists()]
    ids = (slack_id for named in lists for slack_id in named)
    return [slack_id for slack_id in dict.fromkeys(ids) if slack_id != EVERY_FULL_MEMBER]
