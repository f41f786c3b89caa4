"""Checks the Slack tokens, scopes and channels, the clock, and the people in the settings."""

import asyncio
from collections.abc import Iterable, Mapping
from itertools import chain

from bot.approvals.rules import EVERY_FLOW
from bot.checks.database import slack_clock
from bot.checks.parts import CheckParts
from bot.checks.rules import Finding, Part, failed, well
from bot.errors import NotFound, OrganizationWideInstall, SlackError, SlackRefused
from bot.permissions import EVERY_FULL_MEMBER, Permission, Policy
from bot.settings.model import revealed
from bot.slack.client import SlackClient
from bot.slack.manifest import missing_scopes
from bot.slack.messages.text import count
from bot.slack.people import is_not_found

ROLES = "roles"


async def slack_token(parts: CheckParts) -> list[Finding]:
    """Check the bot token and its scopes, and compare this machine's clock with Slack's clock."""
    try:
        me = await parts.slack.who_am_i()
    except SlackRefused as error:
        sentence = (
            f"Slack refuses SLACK_BOT_TOKEN ({error.error}). Install the app in the workspace again"
            " and copy its Bot User OAuth Token."
        )
        return [Finding(Part.SLACK_TOKEN, "token_refused", sentence)]
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
        *slack_clock(parts, me.answered_at),
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
    cards = filter(None, (policy.channel for policy in settings.flow_policies.values()))
    return await asyncio.gather(
        _channel(parts, Part.ALERTS_CHANNEL, settings.alerts_channel),
        *(
            _channel(parts, Part.APPROVALS_CHANNEL, channel)
            for channel in sorted({settings.approvals_channel, *cards})
        ),
    )


async def _channel(parts: CheckParts, setting: Part, channel_id: str) -> Finding:
    try:
        channel = await parts.slack.channel(channel_id)
    except SlackError as error:
        name = error.error if isinstance(error, SlackRefused) else ""
        if name not in {"channel_not_found", "not_in_channel"}:
            return failed(setting, error)
        sentence = (
            f"Slack can't find {channel_id} ({name}). Either the ID is incorrect, or the channel is"
            " private and the bot is not in it. Copy the ID from the channel's details, or use"
            " /invite to add the bot."
        )
        return Finding(setting, "channel_unknown", sentence)
    is_open = not (channel.get("is_private") or channel.get("is_im"))
    if channel.get("is_archived"):
        code = "channel_archived"
        problem = "is archived. Choose another channel."
    elif channel.get("is_member") is False:
        code = "bot_not_in_channel"
        problem = "exists, but the bot is not in it. Use /invite to add the bot."
    elif parts.slack.is_shared(channel):
        code = "channel_shared"
        problem = (
            "is shared with another workspace or organization, whose members can read what"
            " Gatehouse posts. Choose a channel that isn't shared."
        )
    elif setting is Part.APPROVALS_CHANNEL and is_open:
        code = "channel_public"
        problem = "is public, but the cards in it show identities. Make the channel private."
    else:
        return well(setting, f"{channel_id} exists, and the bot is in it.")
    return Finding(setting, code, f"{channel_id} {problem}")


async def roles(parts: CheckParts) -> list[Finding]:
    """Return a finding for each invalid ID, and for each flow without approvers."""
    settings, policy = parts.settings, parts.settings.policy
    try:
        team_id = (await parts.slack.who_am_i()).team_id
    except SlackError as error:
        return [failed(ROLES, error)]
    places = dict.fromkeys(chain(*policy.roles.values()), "ROLES")
    for rules in policy.flow_policies.values():
        places |= dict.fromkeys(rules.named, "FLOW_POLICIES")
    places.pop(EVERY_FULL_MEMBER, None)
    if policy.access_contact:
        places.setdefault(policy.access_contact, "ACCESS_CONTACT")
    people: dict[str, frozenset[str]] = {}
    findings = []
    for slack_id, setting in places.items():
        try:
            people[slack_id] = await _members(parts.slack, team_id, slack_id)
        except (SlackError, NotFound) as error:
            code = error.outcome
            if isinstance(error, NotFound) or is_not_found(error):
                code = "group_unknown" if slack_id.startswith("S") else "user_unknown"
            people[slack_id] = frozenset()
            findings.append(Finding(ROLES, code, f"{slack_id} in {setting}: {error.sentence}"))
    # Everybody counts as one person without a name.
    people[EVERY_FULL_MEMBER] = _all_of(people, places) | {EVERY_FULL_MEMBER}
    are_known = all(finding.code.endswith("_unknown") for finding in findings)
    # Without the flow service, there is nothing to approve.
    if are_known and not settings.missing_for("flow"):
        aliases = {settings.sid_of(alias): alias for alias in settings.flow_aliases}
        others = ", ".join(aliases[sid] for sid in aliases if sid not in policy.flow_policies)
        names = {EVERY_FLOW: f"flows without their own policy{others and f' ({others})'}"}
        for sid in dict.fromkeys((EVERY_FLOW, *policy.flow_policies)):
            name = names.get(sid, f"flow {aliases.get(sid, sid)}")
            findings += _unapprovable(policy, sid, name, people)
    return findings or [
        well(ROLES, f"{count(len(places), 'person or group', 'people and groups')} found.")
    ]


async def _members(slack: SlackClient, team_id: str, slack_id: str) -> frozenset[str]:
    """Return the user IDs of a group's members, or of one person who can use the bot."""
    if slack_id.startswith("S"):
        return await slack.members(slack_id)
    user = await slack.user(slack_id)
    if user.is_deleted:
        raise NotFound("This account is deactivated.")
    if user.team_id not in ("", team_id):
        raise NotFound("This account belongs to another workspace.")
    return frozenset({slack_id})


def _unapprovable(
    policy: Policy, flow_sid: str, name: str, people: Mapping[str, frozenset[str]]
) -> list[Finding]:
    """Return a finding if nobody could ask for changes to a flow, or nobody could approve them."""
    rules = policy.of_flow(flow_sid)
    operators = _all_of(people, policy.with_role[Permission.REQUEST])
    for key, listed in (("requesters", rules.requesters), ("auto", rules.automatic)):
        if listed and operators.isdisjoint(_all_of(people, listed)):
            sentence = (
                f"None of the people in “{key}” for {name} can make requests. Give them the"
                " operator role in ROLES."
            )
            return [Finding(ROLES, "nobody_can_ask", sentence)]
    askers = operators & _all_of(people, rules.requesters or people)
    approvers = _all_of(people, policy.approvers(flow_sid))
    own = 0 if policy.allow_self_approval else 1
    most = max((len(approvers) - own * (asker in approvers) for asker in askers), default=0)
    if most >= rules.approvals_needed:
        return []
    who = "Nobody can approve"
    if approvers:
        who = f"Only {', '.join(sorted(approvers)[:5])} can approve, but not their own requests"
    sentence = (
        f"No request for {name} could be approved, because each needs"
        f" {count(rules.approvals_needed, 'approval')}. {who}. Add people who can approve to"
        f" {rules.sources.get('approvers', 'ROLES')}."
    )
    return [Finding(ROLES, "too_few_approvers", sentence)]


def _all_of(people: Mapping[str, frozenset[str]], holders: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(people[holder] for holder in holders))
