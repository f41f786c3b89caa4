"""Slack: the tokens, the scopes, the clock, the two channels, and the people in the settings."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from bot.approvals.rules import EVERY_FLOW
from bot.checks.database import slack_clock
from bot.checks.findings import Finding, Parts, failed, well
from bot.errors import SlackError, SlackRefused, SlackUnreachable
from bot.ops.clock import since_boot
from bot.permissions import EVERY_FULL_MEMBER, Permission, Policy
from bot.settings.model import revealed
from bot.slack.manifest import SCOPES, missing_scopes

SLACK_SECONDS = 10
# Slack's names for a token that is no longer valid.
TOKEN_ERRORS = frozenset(
    {
        *("invalid_auth", "token_revoked", "token_expired", "account_inactive", "not_authed"),
        *("team_disabled", "app_uninstalled"),
    }
)
NO_CHANNEL = frozenset({"channel_not_found", "not_in_channel"})
ROLES, CONTACT = "roles", "ACCESS_CONTACT"
ADVICE = {
    ROLES: "correct ROLES or FLOW_APPROVERS",
    CONTACT: "correct it, or leave it out to name the admins",
}

T = TypeVar("T")


async def in_time(call: Awaitable[T]) -> T:
    """Return Slack's response.

    Raises:
        SlackError: Slack refuses the call, or does not respond within 10 s.
    """
    try:
        async with asyncio.timeout(SLACK_SECONDS):
            return await call
    except TimeoutError as error:
        raise SlackUnreachable from error


async def slack_token(parts: Parts) -> list[Finding]:
    """Check the bot token, its scopes against the manifest's, and the clock against Slack's."""
    asked_at = since_boot()
    try:
        me = await in_time(parts.slack.who_am_i())
    except SlackRefused as error:
        sentence = (
            f"Slack refuses SLACK_BOT_TOKEN ({error.error}). Install the app in the workspace again"
            " and copy its Bot User OAuth Token."
        )
        code = "token_refused" if error.error in TOKEN_ERRORS else error.outcome
        return [Finding("slack token", code, sentence)]
    except SlackError as error:
        return [failed("slack token", error)]
    scopes = well("slack scopes", f"are complete ({len(SCOPES)}).")
    if not me.scopes:
        scopes = well("slack scopes", "are not reported by Slack.")
    elif missing := missing_scopes(me.scopes):
        scopes = Finding("slack scopes", "scope_missing", missing)
    return [
        well("slack token", f"is accepted by the workspace {me.team_name} ({me.team_id})."),
        scopes,
        *await slack_clock(parts, me.answered_at, asked_at),
    ]


async def app_token(parts: Parts) -> list[Finding]:
    """Check the Socket Mode token, if it is set."""
    token = revealed(parts.settings.slack_app_token)
    if token is None:
        return []
    try:
        await in_time(parts.slack.try_app_token(token))
    except SlackRefused as error:
        sentence = (
            f"Slack refuses SLACK_APP_TOKEN ({error.error}). Make an app-level token with the scope"
            " connections:write, and turn Socket Mode on."
        )
        return [Finding("slack app token", "app_token_refused", sentence)]
    except SlackError as error:
        return [failed("slack app token", error)]
    return [well("slack app token", "opens Socket Mode.")]


async def channels(parts: Parts) -> list[Finding]:
    """Check that the bot can post to both channels; each problem is a finding."""
    settings = parts.settings
    alerts, approvals = await asyncio.gather(
        _channel(parts, "ALERTS_CHANNEL", settings.alerts_channel),
        _channel(parts, "APPROVALS_CHANNEL", settings.approvals_channel),
    )
    return [*alerts, *approvals]


async def _channel(parts: Parts, setting: str, channel_id: str) -> list[Finding]:
    def mistake(code: str, words: str) -> Finding:
        return Finding(setting, code, f"{channel_id} {words}")

    try:
        channel = await in_time(parts.slack.channel(channel_id))
    except SlackRefused as error:
        if error.error == "missing_scope":
            return [mistake("scope_missing", "cannot be looked up: a scope is missing.")]
        if error.error not in NO_CHANNEL:
            return [failed(setting, error)]
        words = (
            f"is not known to Slack ({error.error}): the id is wrong, or it is a private channel"
            " that the bot is not in. Copy the id from the channel's details; /invite the bot."
        )
        return [mistake("channel_unknown", words)]
    except SlackError as error:
        return [failed(setting, error)]
    mistakes = []
    if channel.get("is_archived"):
        mistakes.append(mistake("channel_archived", "is archived: choose another one."))
    elif channel.get("is_member") is False:
        words = "is a channel that the bot is not in: /invite it there."
        mistakes.append(mistake("bot_not_in_channel", words))
    is_open = not (channel.get("is_private") or channel.get("is_im"))
    if setting == "APPROVALS_CHANNEL" and is_open:
        words = "is public, but its cards show identities: make it private."
        mistakes.append(mistake("channel_public", words))
    return mistakes or [well(setting, f"{channel_id} exists, and the bot is in it.")]


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
            return [failed(ROLES, error)]
        policy = self._policy
        policies = policy.flow_policies.values()
        told = [ids for rules in policies for ids in (rules.notify, rules.escalate_to) if ids]
        lists = (*policy.roles.values(), *policy.approver_lists(), *told, *policy.automatic_lists())
        named = dict.fromkeys(slack_id for ids in lists for slack_id in ids)
        named.pop(EVERY_FULL_MEMBER, None)
        found = [await self._look_up(slack_id, ROLES) for slack_id in named]
        wrong = [finding for finding in found if finding]
        if self._is_complete:
            wrong += self._deciders()
        answer = wrong or [well(ROLES, f"All {len(named)} people and groups exist.")]
        if contact := self._policy.access_contact:
            is_there = well(CONTACT, f"{contact} exists.")
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
        advice = "give somebody the approver role in ROLES"
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
            return [_mistake(ROLES, "nobody_can_approve", f"nobody can approve {target}", advice)]
        problem = f"{len(people)} can approve {target}, but {needed} approvals are needed"
        return [_mistake(ROLES, "too_few_approvers", problem, advice)]

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
            f"{owner} own requests for {target} can never be approved: besides them,"
            f" {others} can approve, and APPROVALS_NEEDED is {self._needed}"
        )
        return [_mistake(ROLES, "lonely_approver", problem, advice)]

    def _all_of(self, holders: Iterable[str]) -> frozenset[str]:
        return frozenset[str]().union(*(self._people.get(holder, ()) for holder in holders))


def _mistake(subject: str, code: str, problem: str, advice: str = "") -> Finding:
    sentence = f"{problem[:1].upper()}{problem[1:]}: {advice or ADVICE[subject]}."
    return Finding(subject, code, sentence)
