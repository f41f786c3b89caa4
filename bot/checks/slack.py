"""Checks the Slack tokens, scopes and channels, the clock, and the people in the settings."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from bot.approvals.rules import EVERY_FLOW, FlowRules
from bot.checks.database import slack_clock
from bot.checks.findings import CheckParts, Finding, failed, well
from bot.checks.rules import Part, Severity
from bot.errors import OrganizationWideInstall, SlackError, SlackRefused
from bot.ops.clock import since_boot
from bot.permissions import EVERY_FULL_MEMBER, Permission, Policy
from bot.settings.model import revealed
from bot.slack.client import SlackClient
from bot.slack.manifest import missing_scopes
from bot.slack.messages.text import count

# Slack's errors for tokens that are invalid or no longer valid.
TOKEN_ERRORS = frozenset(
    {
        *("invalid_auth", "token_revoked", "token_expired", "account_inactive", "not_authed"),
        *("team_disabled", "app_uninstalled"),
    }
)
ROLES = "roles"


async def slack_token(parts: CheckParts) -> list[Finding]:
    """Check the bot token and its scopes, and compare this machine's clock with Slack's clock."""
    asked_at = since_boot()
    try:
        me = await parts.slack.who_am_i()
    except SlackRefused as error:
        sentence = (
            f"Slack refuses SLACK_BOT_TOKEN ({error.error}). Install the app in the workspace again"
            " and copy its Bot User OAuth Token."
        )
        code = "token_refused" if error.error in TOKEN_ERRORS else error.outcome
        return [Finding(Part.SLACK_TOKEN, code, sentence)]
    except SlackError as error:
        return [failed(Part.SLACK_TOKEN, error)]
    if me.is_organization_wide:
        return [failed(Part.SLACK_TOKEN, OrganizationWideInstall())]
    scopes = well(Part.SLACK_SCOPES, "are complete." if me.scopes else "are unknown.")
    if missing := missing_scopes(me.scopes):
        scopes = Finding(Part.SLACK_SCOPES, "scope_missing", missing)
    return [
        well(Part.SLACK_TOKEN, f"is accepted by the workspace {me.team_name} ({me.team_id})."),
        scopes,
        *await slack_clock(parts, me.answered_at, asked_at),
    ]


async def app_token(parts: CheckParts) -> list[Finding]:
    """Check the Socket Mode token, if it is set."""
    token = revealed(parts.settings.slack_app_token)
    if token is None:
        return []
    try:
        await parts.slack.try_app_token(token)
    except SlackRefused as error:
        sentence = (
            f"Slack refuses SLACK_APP_TOKEN ({error.error}). Create an app-level token with the "
            "scope connections:write, and turn on Socket Mode."
        )
        return [Finding("slack app token", "app_token_refused", sentence)]
    except SlackError as error:
        return [failed("slack app token", error)]
    return [well("slack app token", "can open Socket Mode connections.")]


async def channels(parts: CheckParts) -> list[Finding]:
    """Check that the bot can post to all channels, and that those for cards are private."""
    settings = parts.settings
    of_flows = {policy.channel for policy in settings.flow_policies.values() if policy.channel}
    found = await asyncio.gather(
        _channel(parts, Part.ALERTS_CHANNEL, settings.alerts_channel),
        _channel(parts, Part.APPROVALS_CHANNEL, settings.approvals_channel),
        *(
            _channel(parts, Part.APPROVALS_CHANNEL, channel, " (in FLOW_POLICIES)")
            for channel in sorted(of_flows)
        ),
    )
    return [*chain(*found)]


async def _channel(
    parts: CheckParts, setting: Part, channel_id: str, source: str = ""
) -> list[Finding]:
    def mistake(code: str, words: str) -> Finding:
        return Finding(setting, code, f"{channel_id}{source} {words}")

    try:
        channel = await parts.slack.channel(channel_id)
    except SlackError as error:
        name = error.error if isinstance(error, SlackRefused) else ""
        if name == "missing_scope":
            return [mistake("scope_missing", "cannot be looked up: a scope is missing.")]
        if name not in {"channel_not_found", "not_in_channel"}:
            return [failed(setting, error)]
        words = (
            f"was not found ({name}): the ID is incorrect, or the channel is private and the bot is"
            " not in it. Copy the ID from the channel's details, or use /invite to add the bot."
        )
        return [mistake("channel_unknown", words)]
    found = []
    if channel.get("is_archived"):
        found.append(mistake("channel_archived", "is archived. Choose another channel."))
    elif channel.get("is_member") is False:
        words = "exists, but the bot is not in it. Use /invite to add the bot."
        found.append(mistake("bot_not_in_channel", words))
    is_open = not (channel.get("is_private") or channel.get("is_im"))
    if setting is Part.APPROVALS_CHANNEL and is_open:
        words = "is public, but its cards show identities. Make it private."
        found.append(mistake("channel_public", words))
    return found or [well(setting, f"{channel_id}{source} exists, and the bot is in it.")]


async def roles(parts: CheckParts) -> list[Finding]:
    """Return a finding for each invalid ID, and for each flow that too few people can change."""
    slack, settings, policy = parts.slack, parts.settings, parts.settings.policy
    try:
        team_id = (await slack.who_am_i()).team_id
    except SlackError as error:
        return [failed(ROLES, error)]
    lists = {
        "ROLES": policy.roles.values(),
        "FLOW_APPROVERS": policy.flow_approvers.values(),
        "FLOW_POLICIES": (rules.named for rules in policy.flow_policies.values()),
    }
    named = {name: key for key, values in lists.items() for name in chain(*values)}
    named.pop(EVERY_FULL_MEMBER, None)
    if policy.access_contact:
        named.setdefault(policy.access_contact, "ACCESS_CONTACT")
    people: dict[str, frozenset[str]] = {}
    wrong = []
    for name, setting in named.items():
        found = await _look_up(slack, team_id, name, f"correct {setting}")
        if isinstance(found, Finding):
            wrong.append(found)
        else:
            people[name] = found
    # Without the flow service, there is nothing to approve.
    is_sure = all(finding.severity is not Severity.UNSURE for finding in wrong)
    if is_sure and not settings.missing_for("flow"):
        wrong += _deciders(policy, people)
    return wrong or [well(ROLES, f"All {len(named)} people and groups exist.")]


async def _look_up(
    slack: SlackClient, team_id: str, slack_id: str, advice: str
) -> frozenset[str] | Finding:
    """Return the user ID or the group's member IDs, or a finding if the ID can't be confirmed."""
    try:
        if slack_id.startswith("S"):
            return await slack.members(slack_id)
        user = await slack.user(slack_id)
    except SlackRefused as error:
        kind = "group" if slack_id.startswith("S") else "user"
        code, problem = f"{kind}_unknown", f"There is no {kind} {slack_id} ({error.error})"
        if error.error == "plan_upgrade_required":
            code, problem = "groups_not_in_plan", "This workspace's plan excludes user groups"
        elif error.error == "missing_scope":
            code, problem = "scope_missing", f"{slack_id} cannot be looked up"
            advice = "update the app from the manifest"
    except SlackError as error:
        return failed(ROLES, error)
    else:
        if user.is_deleted:
            code, problem = "user_deactivated", f"{slack_id} belongs to a deactivated account"
        elif user.team_id not in ("", team_id):
            code = "user_of_another_workspace"
            problem = f"{slack_id} belongs to another workspace"
        else:
            return frozenset({slack_id})
    return _mistake(code, problem, advice)


def _deciders(policy: Policy, people: Mapping[str, frozenset[str]]) -> Iterator[Finding]:
    """Yield a finding for each flow whose changes too few people can ask for or approve."""
    for flow_sid in dict.fromkeys((EVERY_FLOW, *policy.flow_approvers, *policy.flow_policies)):
        rules = policy.of_flow(flow_sid)
        target = f"requests for flow {flow_sid}"
        if flow_sid == EVERY_FLOW:
            target = "requests for any other flow" if policy.flow_policies else "requests"
        for key, listed in (("requesters", rules.requesters), ("auto", rules.automatic)):
            is_known = listed is not None and people.keys() >= set(listed)
            if is_known and not _can_ask(policy, people, _all_of(people, listed or ())):
                problem = f"Nobody in “{key}” can make {target}"
                yield _mistake("nobody_can_ask", problem, "give them the operator role in ROLES")
        holders = rules.approvers or policy.holders(Permission.DECIDE)
        if EVERY_FULL_MEMBER not in holders:
            yield from _approvers(policy, rules, target, _all_of(people, holders), people)


def _approvers(
    policy: Policy,
    rules: FlowRules,
    target: str,
    approvers: frozenset[str],
    people: Mapping[str, frozenset[str]],
) -> Iterator[Finding]:
    needed, others = rules.approvals_needed, len(approvers) - 1
    source = rules.sources.get("approvers")
    advice = f"see {source}" if source else "give someone the approver role in ROLES"
    asking = _can_ask(policy, people, approvers)
    if rules.requesters is not None:
        asking &= _all_of(people, rules.requesters)
    if not approvers:
        yield _mistake("nobody_can_approve", f"Nobody can approve {target}", advice)
    elif len(approvers) < needed:
        problem = f"{needed} people must approve {target}, but only {len(approvers)} can"
        yield _mistake("too_few_approvers", problem, advice)
    elif asking and others < needed and not policy.allow_self_approval:
        owner = f"{min(asking)}'s" if len(asking) == 1 else "Approvers'"
        all_others = count(needed, "other person", "other people")
        problem = (
            f"{owner} own {target} can never be approved, because {all_others} must approve them,"
            f" and {others or 'nobody'} can"
        )
        yield _mistake("lonely_approver", problem, advice)


def _all_of(people: Mapping[str, frozenset[str]], holders: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(people.get(holder, ()) for holder in holders))


def _can_ask(
    policy: Policy, people: Mapping[str, frozenset[str]], among: frozenset[str]
) -> frozenset[str]:
    operators = policy.holders(Permission.REQUEST)
    return among if EVERY_FULL_MEMBER in operators else among & _all_of(people, operators)


def _mistake(code: str, problem: str, advice: str) -> Finding:
    return Finding(ROLES, code, f"{problem}: {advice}.")
