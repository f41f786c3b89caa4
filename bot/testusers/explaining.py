"""The lines of `python -m bot policy explain`: who decides on a flow's requests, and why.

The verdict comes from `People.judge`, which decides on every click.
"""

from collections.abc import Sequence

from bot.approvals.rules.durations import spell_duration
from bot.approvals.rules.policies import FlowRules
from bot.permissions import Decision, Permission, Person, who_may
from bot.slack.people import People
from bot.testusers.rules.changes import Flow

NOT_SET = "not set"


async def explain(
    people: People, flow: Flow, slack_user_id: str, approvals_needed: int
) -> list[str]:
    """Return the flow's rules as lines, and whether the person may approve its requests.

    Args:
        people: Knows the people, and decides.
        flow: The flow.
        slack_user_id: The person.
        approvals_needed: The general setting.

    Raises:
        UnknownPerson: Slack doesn't say who the person is.
    """
    rules = people.policy.rules_of(flow.sid, approvals_needed)
    person = await people.find(slack_user_id, (people.team_id,))
    decision = people.judge(person, Permission.DECIDE, flow.sid)
    own = people.judge(person, Permission.DECIDE, flow.sid, slack_user_id)
    return [
        f"Flow {flow.name} ({flow.sid})",
        *_rule_lines(people, flow, rules),
        await _verdict(people, person, decision),
        *_own_line(decision, own),
    ]


def _rule_lines(people: People, flow: Flow, rules: FlowRules) -> list[str]:
    policy = people.policy
    approvers = rules.approvers or who_may(Permission.DECIDE, policy.roles)
    longest = spell_duration(rules.longest_seconds) if rules.longest_seconds else NOT_SET
    after = rules.escalate_after_seconds
    escalation = (
        f"after {spell_duration(after)}, to {_ids(rules.escalate_to)}" if after else NOT_SET
    )
    auto = rules.auto
    automatic = (
        f"{'additions and removals' if rules.auto_remove else 'additions'} asked for by"
        f" {_ids(auto.requesters)}, at most {spell_duration(auto.longest_seconds)},"
        f" {auto.a_day} a person and day"
        if auto
        else NOT_SET
    )
    lines = (
        ("Approvers", _ids(approvers), rules.sources.get("approvers", "ROLES")),
        ("Approvals needed", str(rules.approvals_needed), rules.sources.get("approvals_needed")),
        ("Card mentions", _ids(policy.mentioned(flow.sid, "")), rules.sources.get("notify")),
        ("Longest access", longest, rules.sources.get("longest_seconds")),
        ("Escalation", escalation, rules.sources.get("escalate_after_seconds")),
        ("Automatic approval", automatic, rules.sources.get("auto")),
    )
    return [f"{name}: {value}{f' [{source}]' if source else ''}" for name, value, source in lines]


async def _verdict(people: People, person: Person, decision: Decision) -> str:
    who = f"{person.name} ({person.slack_user_id})"
    if decision.is_granted:
        return f"{who} can approve: {_why(person, decision)}."
    return f"{who} can't approve and would read: {await people.explain(person, decision)}"


def _why(person: Person, decision: Decision) -> str:
    if decision.setting != "ROLES":
        if person.slack_user_id in decision.holders:
            return f"named in {decision.setting}"
        groups = sorted(person.groups.intersection(decision.holders))
        return f"in {_ids(groups)}, which {decision.setting} names"
    return f"has the role {person.role} [ROLES]"


def _own_line(decision: Decision, own: Decision) -> list[str]:
    if not decision.is_granted:
        return []
    allowed = "can" if own.is_granted else "can't"
    return [f"They {allowed} approve their own requests [ALLOW_SELF_APPROVAL]"]


def _ids(ids: Sequence[str]) -> str:
    return ", ".join(ids) or "nobody"
