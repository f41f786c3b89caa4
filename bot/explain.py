"""The `policy explain <flow> [person]` command, which shows who decides, and why.

It calls `Policy.judge`, which also checks every click.
"""

from dataclasses import fields

from bot.app import gatehouse
from bot.approvals.rules import AutomaticRule, FlowPolicy
from bot.approvals.times import spell_duration
from bot.errors import SlackError, UnknownPerson
from bot.flows.rules import Flow, find_flow
from bot.ops.redaction import on_one_line
from bot.permissions import Permission
from bot.settings import Settings, SettingsError
from bot.setup.names import look_up
from bot.slack.people import People

# Where a rule comes from if no policy sets it.
SOURCES = {"approvers": "ROLES", "notify": "ROLES", "channel": "APPROVALS_CHANNEL"}


async def explain_policy(settings: Settings, typed_flow: str, typed_person: str | None) -> int:
    """Print a flow's rules, and say whether the person, if given, can approve its requests.

    Return the exit code: 0, or 1 if the flow or person is unknown or a Slack call fails.
    """
    flow = find_flow(typed_flow, settings.flow_aliases)
    if flow is None:
        aliases = ", ".join(sorted(settings.flow_aliases)) or "none"
        print(f"There's no flow {typed_flow}. Use a SID or an alias from FLOW_ALIASES: {aliases}.")
        return 1
    async with gatehouse(settings) as bot:
        people, slack_user_id = bot.slack.people, typed_person
        try:
            if typed_person and typed_person.startswith("@"):
                token = settings.slack_bot_token.get_secret_value()
                workspace = await look_up(token, settings.slack_api_url)
                slack_user_id = workspace.with_ids({"person": typed_person})["person"]
            if slack_user_id:
                me = await bot.slack.client.who_am_i()
                people.meet(me.team_id, me.slack_user_id)
                # `People.find` would record an unknown person in the audit log.
                await bot.slack.client.user(slack_user_id)
            lines = await explain(people, flow, slack_user_id)
        except (SettingsError, UnknownPerson, SlackError) as error:
            print(on_one_line(f"Can't look up {typed_person}: {error}"))
            return 1
    print("\n".join(map(on_one_line, lines)))
    return 0


async def explain(people: People, flow: Flow, slack_user_id: str | None) -> list[str]:
    """Return lines that list the flow's rules and say whether the person can approve requests.

    The rules have the names that they have in `FLOW_POLICIES`. Each line ends in its setting, but
    a flow without an alias has none.
    """
    policy = people.policy
    rules = policy.of_flow(flow.sid)
    lines = [f"Flow {flow.name} ({flow.sid}) [FLOW_ALIASES]" if flow.alias else f"Flow {flow.sid}"]
    values = {rule.name: getattr(rules, rule.name) for rule in fields(FlowPolicy)}
    values["approvers"] = policy.approvers(flow.sid)
    values["notify"] = policy.mentioned(flow.sid)
    sources = {**SOURCES, **rules.sources}
    if rules.notify is None:
        sources["notify"] = sources["approvers"]
    for name, value in values.items():
        key = name.removesuffix("_seconds")
        lines.append(f"{key}: {_shown(key, value)} [{sources.get(name, 'FLOW_POLICIES')}]")
    if slack_user_id is not None:
        person = await people.find(slack_user_id, (people.team_id,))
        who = f"{person.name} ({person.slack_user_id})"
        for permission, does in ((Permission.DECIDE, "approve"), (Permission.REQUEST, "ask")):
            decision = policy.judge(person, permission, flow.sid)
            holders = sorted({person.slack_user_id, *person.groups}.intersection(decision.holders))
            how = f"as {', '.join(holders)}" if holders else f"with the {person.role} role"
            verdict = f"can {does} {how}"
            if not decision.is_granted:
                reason = await people.explain(person, decision)
                verdict = f"can't {does}. Gatehouse would reply: {reason}"
            lines.append(f"{who} {verdict} [{decision.setting}]")
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
        case bool():
            return str(value).lower()
        case int() if key in {"longest", "escalate_after"}:
            return spell_duration(value)
    return str(value)
