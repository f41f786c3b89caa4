"""The `policy explain <flow> <user id>` command, which shows whether a person can approve requests.

It calls `Policy.judge`, which also checks every click.
"""

from dataclasses import fields

from bot.app import gatehouse
from bot.approvals.rules import AutomaticRule, FlowPolicy
from bot.approvals.times import spell_duration
from bot.errors import SlackError, UnknownPerson
from bot.flows.rules.flows import Flow, find_flow
from bot.ops.redaction import on_one_line
from bot.permissions import Permission
from bot.settings import Settings
from bot.slack.people import People


async def explain_policy(settings: Settings, typed_flow: str, slack_user_id: str) -> int:
    """Print a flow's rules, and say whether the person can approve its requests.

    Return the exit code: 0, or 1 if the flow or person is unknown or a Slack call fails.
    """
    flow = find_flow(typed_flow, settings.flow_aliases)
    if flow is None:
        known = ", ".join(sorted(settings.flow_aliases)) or "none"
        print(f"There's no flow {typed_flow}. Use a SID or an alias from FLOW_ALIASES: {known}.")
        return 1
    async with gatehouse(settings) as bot:
        people = bot.slack.people
        try:
            me = await bot.slack.client.who_am_i()
            people.meet(me.team_id, me.slack_user_id)
            # `People.find` would record an unknown person in the audit log, as if they had acted.
            await bot.slack.client.user(slack_user_id)
            lines = await explain(people, flow, slack_user_id)
        except (UnknownPerson, SlackError) as error:
            cause = error.__cause__ or error
            print(f"Can't look up {slack_user_id}: {cause}")
            return 1
    print("\n".join(map(on_one_line, lines)))
    return 0


async def explain(people: People, flow: Flow, slack_user_id: str) -> list[str]:
    """Return lines that list the flow's rules and say whether the person can approve requests.

    The rules have the names that they have in `FLOW_POLICIES`.
    """
    policy = people.policy
    rules = policy.of_flow(flow.sid)
    person = await people.find(slack_user_id, (people.team_id,))
    lines = [f"Flow {flow.name} ({flow.sid})"]
    shown = {rule.name: getattr(rules, rule.name) for rule in fields(FlowPolicy)}
    shown["approvers"] = policy.holders(Permission.DECIDE, flow.sid)
    shown["notify"] = policy.mentioned(flow.sid)
    for name, value in shown.items():
        key = name.removesuffix("_seconds")
        source = f" [{rules.sources[name]}]" if name in rules.sources else ""
        lines.append(f"{key}: {_shown(key, value)}{source}")
    who = f"{person.name} ({person.slack_user_id})"
    for permission, does in ((Permission.DECIDE, "approve"), (Permission.REQUEST, "ask")):
        decision = policy.judge(person, permission, flow.sid)
        if decision.is_granted:
            named = sorted({person.slack_user_id, *person.groups}.intersection(decision.holders))
            how = f"as {', '.join(named)}" if named else f"with the {person.role} role"
            lines.append(f"{who} can {does} {how} [{decision.setting}]")
        else:
            reason = await people.explain(person, decision)
            lines.append(f"{who} can't {does}. Gatehouse would reply: {reason}")
    may = "can" if policy.allow_self_approval else "can't"
    lines.append(f"People {may} approve their own requests [ALLOW_SELF_APPROVAL]")
    return lines


def _shown(key: str, value: object) -> str:
    match value:
        case AutomaticRule():
            longest = spell_duration(value.longest_seconds)
            asks = ", ".join(value.requesters)
            most = f"up to {value.a_day} per person per day"
            return f"requests from {asks} for at most {longest}, {most}"
        case None:
            return "not set"
        case tuple():
            return ", ".join(value) or "nobody"
        case int() if key in {"longest", "escalate_after"}:
            return spell_duration(value)
    return str(value)
