"""The `policy explain <flow> <user id>` command, which shows whether a person can approve requests.

It calls `Policy.judge`, which also checks every click.
"""

from collections.abc import Sequence

from bot.approvals.parse import spell_duration
from bot.errors import SlackError, UnknownPerson
from bot.ops.clock import SystemClock
from bot.ops.redaction import on_one_line
from bot.permissions import Permission
from bot.services.http import open_session
from bot.settings import Settings
from bot.slack.client import SlackClient, slack_web_client
from bot.slack.people import People, is_not_found
from bot.testusers.rules.changes import Flow, find_flow

SLACK_SECONDS = 10


async def explain_policy(settings: Settings, typed_flow: str, slack_user_id: str) -> int:
    """Print a flow's rules, and say whether the person can approve its requests.

    Return the exit code: 0, or 1 if the flow or person is unknown or a Slack call fails.
    """
    flow = find_flow(typed_flow, settings.flow_aliases)
    if flow is None:
        known = ", ".join(sorted(settings.flow_aliases)) or "none"
        print(f"There's no flow {typed_flow}. Use a SID or an alias from FLOW_ALIASES: {known}.")
        return 1
    async with open_session() as session:
        token = settings.slack_bot_token.get_secret_value()
        web = slack_web_client(token, settings.slack_api_url, session, SLACK_SECONDS)
        clock = SystemClock()
        slack = SlackClient(web, clock)
        people = People(slack, settings.policy, clock)
        try:
            me = await slack.who_am_i()
            people.meet(me.team_id, me.slack_user_id)
            lines = await explain(people, flow, slack_user_id)
        except (UnknownPerson, SlackError) as error:
            cause = error.__cause__ if isinstance(error, UnknownPerson) else error
            if is_not_found(cause):
                print(f"Slack doesn't have a user with the ID {slack_user_id}.")
            else:
                print(cause)
            return 1
    print("\n".join(map(on_one_line, lines)))
    return 0


async def explain(people: People, flow: Flow, slack_user_id: str) -> list[str]:
    """Return lines that list the flow's rules and say whether the person can approve requests."""
    policy, rules = people.policy, people.policy.of_flow(flow.sid)
    person = await people.find(slack_user_id, (people.team_id,))
    decision = policy.judge(person, Permission.DECIDE, flow.sid)
    who = f"{person.name} ({person.slack_user_id})"
    if decision.is_granted:
        own = policy.judge(person, Permission.DECIDE, flow.sid, slack_user_id)
        allowed = "can" if own.is_granted else "can't"
        groups = sorted(person.groups.intersection(decision.holders))
        why = f"as a member of {_ids(groups)}"
        if decision.setting == "ROLES":
            why = f"with the {person.role} role"
        elif person.slack_user_id in decision.holders:
            why = "as a named approver"
        verdict = [
            f"{who} can approve {why} [{decision.setting}]",
            f"They {allowed} approve their own requests [ALLOW_SELF_APPROVAL]",
        ]
    else:
        reason = await people.explain(person, decision)
        verdict = [f"{who} can't approve. Gatehouse would tell them: {reason}"]
    asks = policy.judge(person, Permission.REQUEST, flow.sid)
    if asks.is_granted:
        verdict.append(f"{who} can request changes [{asks.setting}]")
    else:
        reason = await people.explain(person, asks)
        verdict.append(f"{who} can't request changes. Gatehouse would tell them: {reason}")
    longest, after, auto = rules.longest_seconds, rules.escalate_after_seconds, rules.auto
    escalate_to = _ids(rules.escalate_to or ())
    changes = "additions and removals" if rules.auto_remove else "additions"
    values = (
        ("Approvers", "approvers", _ids(policy.holders(Permission.DECIDE, flow.sid))),
        ("Approvals needed", "approvals_needed", str(rules.approvals_needed)),
        ("Card mentions", "notify", _ids(policy.mentioned(flow.sid))),
        ("Requesters", "requesters", _ids(rules.requesters) if rules.requesters else None),
        ("Channel", "channel", rules.channel),
        ("Longest access", "longest_seconds", longest and spell_duration(longest)),
        (
            "Escalation",
            "escalate_after_seconds",
            after and f"after {spell_duration(after)}, to {escalate_to}",
        ),
        (
            "Automatic approval",
            "auto",
            auto
            and f"{changes} requested by {_ids(auto.requesters)}, for at most"
            f" {spell_duration(auto.longest_seconds)}, up to {auto.a_day} per person per day",
        ),
    )
    lines = []
    for name, key, value in values:
        source = rules.sources.get(key, "ROLES" if key == "approvers" else "")
        lines.append(f"{name}: {value or 'not set'}{f' [{source}]' if source else ''}")
    return [f"Flow {flow.name} ({flow.sid})", *lines, *verdict]


def _ids(ids: Sequence[str]) -> str:
    return ", ".join(ids) or "nobody"
