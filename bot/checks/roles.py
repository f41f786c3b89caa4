"""Checks that people and groups in ROLES and FLOW_APPROVERS exist, and that some can approve."""

from collections.abc import Iterable

from bot.approvals.rules import EVERY_FLOW
from bot.checks.findings import Finding, failed, well
from bot.checks.parts import Parts
from bot.checks.slack import in_time
from bot.errors import SlackError, SlackRefused
from bot.permissions import EVERY_FULL_MEMBER, Permission, Policy

SUBJECT, CONTACT = "roles", "ACCESS_CONTACT"
ADVICE = {
    SUBJECT: "correct ROLES or FLOW_APPROVERS",
    CONTACT: "correct it, or leave it out to name the admins",
}


async def roles(parts: Parts) -> list[Finding]:
    """Report each wrong id, and each flow with too few approvers."""
    settings = parts.settings
    # Without the flow service there is nothing to approve.
    needed = 0 if settings.missing_for("flow") else settings.approvals_needed
    return await _RolesCheck(parts, settings.policy, needed).run()


class _RolesCheck:
    def __init__(self, parts: Parts, policy: Policy, needed: int) -> None:
        self._slack = parts.slack
        self._policy = policy
        self._needed = needed
        self._team_id = ""
        self._people: dict[str, frozenset[str]] = {}
        self._is_complete = True

    async def run(self) -> list[Finding]:
        try:
            self._team_id = (await in_time(self._slack.who_am_i())).team_id
        except SlackError as error:
            return [failed(SUBJECT, error)]
        named = _named(self._policy)
        found = [await self._look_up(slack_id, SUBJECT) for slack_id in named]
        wrong = [finding for finding in found if finding]
        if self._is_complete:
            wrong += self._deciders()
        answer = wrong or [well(SUBJECT, f"All {len(named)} people and groups are there.")]
        if contact := self._policy.access_contact:
            is_there = well(CONTACT, f"{contact} is there.")
            answer.append(await self._look_up(contact, CONTACT) or is_there)
        return answer

    async def _look_up(self, slack_id: str, subject: str) -> Finding | None:
        try:
            if slack_id.startswith("S"):
                self._people[slack_id] = await in_time(self._slack.members(slack_id))
                return None
            user = await in_time(self._slack.user(slack_id))
        except SlackRefused as error:
            return self._refused(slack_id, subject, error.error)
        except SlackError as error:
            self._is_complete = False
            return failed(subject, error)
        if user.is_deleted:
            problem = f"{slack_id} belongs to a deactivated account"
            return _mistake(subject, "user_deactivated", problem)
        if user.team_id not in ("", self._team_id):
            problem = f"{slack_id} belongs to another workspace"
            return _mistake(subject, "user_of_another_workspace", problem)
        self._people[slack_id] = frozenset({slack_id})
        return None

    def _refused(self, slack_id: str, subject: str, error: str) -> Finding:
        if error == "missing_scope":
            self._is_complete = False
            sentence = f"{slack_id} cannot be looked up: a scope is missing."
            return Finding(subject, "scope_missing", sentence)
        if error == "plan_upgrade_required":
            problem = "this workspace's plan has no user groups"
            return _mistake(subject, "groups_not_in_plan", problem)
        kind = "group" if slack_id.startswith("S") else "user"
        return _mistake(subject, f"{kind}_unknown", f"there is no {kind} {slack_id} ({error})")

    def _deciders(self) -> list[Finding]:
        policy = self._policy
        advice = "give somebody the role approver in ROLES"
        everywhere = policy.holders(Permission.DECIDE)
        found = self._too_few(everywhere, "anything", advice, self._needed)
        for flow_sid in dict.fromkeys((*policy.flow_approvers, *policy.flow_policies)):
            rules = policy.of_flow(flow_sid)
            named = policy.holders(Permission.DECIDE, flow_sid)
            target = "any other flow" if flow_sid == EVERY_FLOW else f"flow {flow_sid}"
            advice = f"see {rules.sources.get('approvers', 'ROLES')}"
            found += self._too_few(named, target, advice, rules.approvals_needed)
        return found

    def _too_few(
        self, holders: Iterable[str], target: str, advice: str, needed: int
    ) -> list[Finding]:
        if EVERY_FULL_MEMBER in holders:
            return []
        needed = needed if self._needed else 0
        people = self._all_of(holders)
        if len(people) >= needed:
            return self._lonely(people, target, advice)
        if not people:
            return [_mistake(SUBJECT, "nobody_can_approve", f"nobody can approve {target}", advice)]
        problem = f"{len(people)} can approve {target}, but {needed} approvals are needed"
        return [_mistake(SUBJECT, "too_few_approvers", problem, advice)]

    def _lonely(self, people: frozenset[str], target: str, advice: str) -> list[Finding]:
        """Return the approvers whose own requests too few other people can approve."""
        others = len(people) - 1
        if self._policy.allow_self_approval or others >= self._needed or not self._needed:
            return []
        may_ask = self._policy.holders(Permission.REQUEST)
        lonely = people if EVERY_FULL_MEMBER in may_ask else people & self._all_of(may_ask)
        if not lonely:
            return []
        owner = f"{min(lonely)}'s" if len(lonely) == 1 else "approvers'"
        problem = (
            f"{owner} own requests for {target} can never be approved: {others} other"
            f"{'' if others == 1 else 's'} can approve, and APPROVALS_NEEDED is {self._needed}"
        )
        return [_mistake(SUBJECT, "lonely_approver", problem, advice)]

    def _all_of(self, holders: Iterable[str]) -> frozenset[str]:
        return frozenset[str]().union(*(self._people.get(holder, ()) for holder in holders))


def _mistake(subject: str, code: str, problem: str, advice: str = "") -> Finding:
    sentence = f"{problem[:1].upper()}{problem[1:]}: {advice or ADVICE[subject]}."
    return Finding(subject, code, sentence)


def _named(policy: Policy) -> list[str]:
    policies = policy.flow_policies.values()
    told = [ids for policy in policies for ids in (policy.notify, policy.escalate_to) if ids]
    lists = [*policy.roles.values(), *policy.approver_lists(), *told, *policy.automatic_lists()]
    ids = (slack_id for named in lists for slack_id in named)
    return [slack_id for slack_id in dict.fromkeys(ids) if slack_id != EVERY_FULL_MEMBER]
