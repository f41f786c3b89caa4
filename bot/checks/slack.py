"""Slack: the tokens, the scopes, the clock and the two channels."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from bot.checks.clocks import slack_clock
from bot.checks.findings import Finding, failed, well
from bot.checks.parts import Parts
from bot.errors import SlackError, SlackRefused, SlackUnreachable
from bot.ops.clock import since_boot
from bot.settings import revealed
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
    return [
        well("slack token", f"is accepted by the workspace {me.team_name} ({me.team_id})."),
        _scopes(me.scopes),
        *await slack_clock(parts, me.answered_at, asked_at),
    ]


def _scopes(granted: frozenset[str]) -> Finding:
    if not granted:
        return well("slack scopes", "are not reported by Slack.")
    missing = missing_scopes(granted)
    if missing:
        return Finding("slack scopes", "scope_missing", missing)
    return well("slack scopes", f"are complete ({len(SCOPES)}).")


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
    return mistakes or [well(setting, f"{channel_id} is there, and the bot is in it.")]
