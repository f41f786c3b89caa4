"""Checks the Slack tokens, scopes and channels, the clock, and the people in the settings."""

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from bot.approvals.rules import EVERY_FLOW
from bot.checks.database import slack_clock
from bot.checks.findings import WELL, CheckParts, Finding, failed, well
from bot.checks.rules import Part, Severity
from bot.errors import OrganizationWideInstall, SlackError, SlackRefused, SlackUnreachable
from bot.ops.clock import since_boot
from bot.permissions import EVERY_FULL_MEMBER, Permission, Policy
from bot.settings.model import revealed
from bot.slack.client import SlackClient
from bot.slack.manifest import SCOPES, missing_scopes

SLACK_SECONDS = 10
# Slack's errors for tokens that are invalid or no longer valid.
TOKEN_ERRORS = frozenset(
    {
        *("invalid_auth", "token_revoked", "token_expired", "account_inactive", "not_authed"),
        *("team_disabled", "app_uninstalled"),
    }
)
ROLES, CONTACT = "roles", "ACCESS_CONTACT"
ADVICE = {
    ROLES: "correct ROLES or FLOW_APPROVERS",
    CONTACT: "correct it, or remove it to list the admins instead",
}

T = TypeVar("T")


async def _in_time(call: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(SLACK_SECONDS):
            return await call
    except TimeoutError as error:
        raise SlackUnreachable from error


async def slack_token(parts: CheckParts) -> list[Finding]:
    """Check the bot token and its scopes, and compare this machine's clock with Slack's clock."""
    asked_at = since_boot()
    try:
        me = await _in_time(parts.slack.who_am_i())
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
    told = f"are complete ({len(SCOPES)})." if me.scopes else "are not reported by Slack."
    missing = missing_scopes(me.scopes)
    scopes = Finding(Part.SLACK_SCOPES, "scope_missing" if missing else WELL, missing or told)
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
        await _in_time(parts.slack.try_app_token(token))
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
        channel = await _in_time(parts.slack.channel(channel_id))
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
    """Return a finding for each invalid ID and each flow that has too few approvers."""
    slack, settings, policy = parts.slack, parts.settings, parts.settings.policy
    try:
        team_id = (await _in_time(slack.who_am_i())).team_id
    except SlackError as error:
        return [failed(ROLES, error)]
    told = [
        (rules.notify or (), rules.escalate_to or ()) for rules in policy.flow_policies.values()
    ]
    deciding = (
        *policy.approver_lists(),
        *policy.automatic_lists(),
        *policy.requester_lists(),
    )
    named = dict.fromkeys(chain(*policy.roles.values(), *deciding, *chain(*told)))
    named.pop(EVERY_FULL_MEMBER, None)
    found = {name: await _look_up(slack, team_id, name, ROLES) for name in named}
    wrong = [finding for finding in found.values() if isinstance(finding, Finding)]
    # Without the flow service, there is nothing to approve.
    if not settings.missing_for("flow") and not any(
        finding.severity is Severity.UNSURE for finding in wrong
    ):
        people = {name: ids for name, ids in found.items() if not isinstance(ids, Finding)}
        wrong += _deciders(policy, people)
    findings = wrong or [well(ROLES, f"All {len(named)} people and groups exist.")]
    if contact := policy.access_contact:
        known = await _look_up(slack, team_id, contact, CONTACT)
        is_there = well(CONTACT, f"{contact} exists.")
        findings.append(known if isinstance(known, Finding) else is_there)
    return findings


async def _look_up(
    slack: SlackClient, team_id: str, slack_id: str, subject: str
) -> frozenset[str] | Finding:
    """Return the user ID or the group's member IDs, or a finding if the ID can't be confirmed."""
    try:
        if slack_id.startswith("S"):
            return await _in_time(slack.members(slack_id))
        user = await _in_time(slack.user(slack_id))
    except SlackRefused as error:
        kind = "group" if slack_id.startswith("S") else "user"
        code, problem = f"{kind}_unknown", f"There is no {kind} {slack_id} ({error.error})"
        if error.error == "missing_scope":
            code, problem = "scope_missing", f"{slack_id} cannot be looked up: a scope is missing"
        if error.error == "plan_upgrade_required":
            code, problem = "groups_not_in_plan", "This workspace's plan excludes user groups"
        advice = "update the app from the manifest" if code == "scope_missing" else ""
        return _mistake(subject, code, problem, advice)
    except SlackError as error:
        return failed(subject, error)
    if user.is_deleted:
        problem = f"{slack_id} belongs to a deactivated account"
        return _mistake(subject, "user_deactivated", problem)
    if user.team_id not in ("", team_id):
        problem = f"{slack_id} belongs to another workspace"
        return _mistake(subject, "user_of_another_workspace", problem)
    return frozenset({slack_id})


def _deciders(policy: Policy, people: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """Yield a finding for each flow with too few people who can approve requests."""

    def all_of(holders: Iterable[str]) -> set[str]:
        return {person for holder in holders for person in people.get(holder, ())}

    general, may_ask = policy.approvals_needed, policy.holders(Permission.REQUEST)
    advice = "give someone the approver role in ROLES"
    targets = [("requests", policy.holders(Permission.DECIDE), general, advice)]
    for flow_sid in dict.fromkeys((*policy.flow_approvers, *policy.flow_policies)):
        rules = policy.of_flow(flow_sid)
        flow = "any other flow" if flow_sid == EVERY_FLOW else f"flow {flow_sid}"
        advice = f"see {rules.sources.get('approvers', 'ROLES')}"
        holders = policy.holders(Permission.DECIDE, flow_sid)
        targets.append((f"requests for {flow}", holders, rules.approvals_needed, advice))
    for target, holders, needed, advice in targets:
        if EVERY_FULL_MEMBER in holders:
            continue
        approvers = all_of(holders)
        others = len(approvers) - 1
        asking = approvers if EVERY_FULL_MEMBER in may_ask else approvers & all_of(may_ask)
        if not approvers:
            yield _mistake(ROLES, "nobody_can_approve", f"Nobody can approve {target}", advice)
        elif len(approvers) < needed:
            problem = f"{needed} people must approve {target}, but only {len(approvers)} can"
            yield _mistake(ROLES, "too_few_approvers", problem, advice)
        elif asking and others < general and not policy.allow_self_approval:
            owner = f"{min(asking)}'s" if len(asking) == 1 else "Approvers'"
            problem = (
                f"{owner} own {target} can never be approved, because"
                f" APPROVALS_NEEDED is {general} and {others or 'no'} other"
                f" {'person' if others == 1 else 'people'} can approve them"
            )
            yield _mistake(ROLES, "lonely_approver", problem, advice)


def _mistake(subject: str, code: str, problem: str, advice: str = "") -> Finding:
    return Finding(subject, code, f"{problem}: {advice or ADVICE[subject]}.")
