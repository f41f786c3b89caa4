"""ROLES and FLOW_APPROVERS: are the people and groups there, and can anybody approve."""

from collections.abc import Iterable
from typing import Protocol

from bot.doctor.findings import Finding, failed, well
from bot.errors import SlackError, SlackRefused
from bot.permissions import (
    EVERY_FULL_MEMBER,
    Circumstances,
    Permission,
    Policy,
    who_may,
)

SUBJECT = "roles"


class SlackUserFacts(Protocol):
    """What is needed of a person."""

    @property
    def team_id(self) -> str: ...  # noqa: D102
    @property
    def is_deleted(self) -> bool: ...  # noqa: D102


class SlackPeople(Protocol):
    """What is needed of Slack here. Every method raises `SlackError`s."""

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
        wrong = [finding for one in named for finding in await self._look_up(one)]
        if self._is_complete:
            wrong += self._deciders()
        return wrong or [well(SUBJECT, f"All {len(named)} people and groups are there.")]

    async def _look_up(self, slack_id: str) -> list[Finding]:
        is_group = slack_id.startswith("S")
        try:
            wrong = await (self._group(slack_id) if is_group else self._user(slack_id))
        except SlackRefused as error:
            return [self._refused(slack_id, error)]
        except SlackError as error:
            self._is_complete = False
            return [failed(SUBJECT, error)]
        return wrong

    async def _group(self, group_id: str) -> list[Finding]:
        self._people[group_id] = await self._slack.members(group_id)
        return []

    async def _user(self, user_id: str) -> list[Finding]:
        user = await self._slack.user(user_id)
        if user.is_deleted:
            return [_wrong("user_deactivated", f"{user_id} is a deactivated account")]
        if user.team_id not in ("", self._team_id):
            return [_wrong("user_of_another_workspace", f"{user_id} is of another workspace")]
        self._people[user_id] = frozenset({user_id})
        return []

    def _refused(self, slack_id: str, error: SlackRefused) -> Finding:
        if error.error == "missing_scope":
            self._is_complete = False
            sentence = f"{slack_id} cannot be looked up: a scope is missing."
            return Finding(SUBJECT, "scope_missing", sentence)
        if error.error == "plan_upgrade_required":
            return _wrong("groups_not_in_plan", "this workspace's plan has no user groups")
        kind = "group" if slack_id.startswith("S") else "user"
        return _wrong(f"{kind}_unknown", f"there is no {kind} {slack_id} ({error.error})")

    def _deciders(self) -> list[Finding]:
        everywhere = who_may(Permission.DECIDE, self._policy.roles)
        found = self._too_few(everywhere, "anything", "give somebody the role approver in ROLES")
        for flow_sid, approvers in self._policy.flow_approvers.items():
            named = who_may(Permission.DECIDE, self._policy.roles, Circumstances(approvers))
            found += self._too_few(named, f"flow {flow_sid}", "see FLOW_APPROVERS")
        return found

    def _too_few(self, holders: Iterable[str], what: str, advice: str) -> list[Finding]:
        if EVERY_FULL_MEMBER in holders:
            return []
        people = frozenset[str]().union(*(self._people.get(one, ()) for one in holders))
        if len(people) >= self._needed:
            return []
        if not people:
            return [_wrong("nobody_can_approve", f"nobody can approve {what}", advice)]
        sentence = f"{len(people)} can approve {what}, and APPROVALS_NEEDED is {self._needed}"
        return [_wrong("too_few_approvers", sentence, advice)]


def _wrong(code: str, what: str, advice: str = "correct ROLES or FLOW_APPROVERS") -> Finding:
    return Finding(SUBJECT, code, f"{what[:1].upper()}{what[1:]}: {advice}.")


def _named(policy: Policy) -> list[str]:
    lists = [*policy.roles.values(), *policy.flow_approvers.values()]
    ids = (one for named in lists for one in named)
    return [one for one in dict.fromkeys(ids) if one != EVERY_FULL_MEMBER]
