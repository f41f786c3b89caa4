"""Slack: the tokens, the scopes, the clock and the two channels."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from bot.checks.doctor.findings import Finding, failed, well
from bot.checks.rules.clocks import ahead_or_behind, is_wrong, time_in
from bot.errors import SlackError, SlackRefused
from bot.slack.manifest import SCOPES, missing_scopes


class Identity(Protocol):
    """The bot that the token belongs to."""

    @property
    def team_id(self) -> str: ...  # noqa: D102
    @property
    def team_name(self) -> str: ...  # noqa: D102
    @property
    def scopes(self) -> frozenset[str]: ...  # noqa: D102
    @property
    def answered_at(self) -> str: ...  # noqa: D102


class SlackChannels(Protocol):
    """The Slack calls that the doctor needs. Every method raises `SlackError`s."""

    async def try_app_token(self, app_token: str) -> None:
        """Return if Slack takes the token of Socket Mode."""
        ...

    async def channel(self, channel_id: str) -> Mapping[str, Any]:
        """Return a channel."""
        ...


def refused_token(error: SlackError) -> Finding:
    """Why nothing else can be asked of Slack."""
    if not isinstance(error, SlackRefused):
        return failed("slack token", error)
    return Finding(
        "slack token",
        "token_refused",
        f"Slack refuses SLACK_BOT_TOKEN ({error.error}). Install the app in the workspace again"
        " and copy its Bot User OAuth Token.",
    )


def examine_identity(me: Identity, now: datetime) -> list[Finding]:
    """The token's workspace, its scopes against the manifest's, and the clock against Slack's."""
    token = well("slack token", f"is taken by the workspace {me.team_name} ({me.team_id}).")
    return [token, _scopes(me.scopes), *_clock(me.answered_at, now)]


def _scopes(granted: frozenset[str]) -> Finding:
    if not granted:
        return well("slack scopes", "are not told by Slack.")
    missing = missing_scopes(granted)
    if missing:
        return Finding("slack scopes", "scope_missing", missing)
    return well("slack scopes", f"are all there ({len(SCOPES)}).")


def _clock(reported: str, now: datetime) -> list[Finding]:
    there = time_in(reported)
    if there is None:
        return []
    skew = now.timestamp() - there
    if not is_wrong(skew):
        return [well("clock", "agrees with Slack's.")]
    return [
        Finding(
            "clock",
            "clock_off",
            f"This machine's clock is {ahead_or_behind(skew)} Slack's;"
            " at 300 s every request of Slack's is refused. Turn time synchronisation on.",
        )
    ]


async def examine_app_token(slack: SlackChannels, app_token: str | None) -> list[Finding]:
    """The token of Socket Mode, where one is set."""
    if app_token is None:
        return []
    try:
        await slack.try_app_token(app_token)
    except SlackRefused as error:
        sentence = (
            f"Slack refuses SLACK_APP_TOKEN ({error.error}). Make an app-level token with the scope"
            " connections:write, and turn Socket Mode on."
        )
        return [Finding("slack app token", "app_token_refused", sentence)]
    except SlackError as error:
        return [failed("slack app token", error)]
    return [well("slack app token", "opens Socket Mode.")]


async def examine_channel(
    slack: SlackChannels, setting: str, channel_id: str, *, is_private_wanted: bool
) -> Sequence[Finding]:
    """One of the two channels; each thing that is wrong with it is a finding."""
    try:
        channel = await slack.channel(channel_id)
    except SlackRefused as error:
        return [_unreachable_channel(setting, channel_id, error)]
    except SlackError as error:
        return [failed(setting, error)]
    wrong = [
        Finding(setting, code, f"{channel_id} {what}")
        for code, is_so, what in _channel_mistakes(channel, is_private_wanted=is_private_wanted)
        if is_so
    ]
    return wrong or [well(setting, f"{channel_id} is there, and the bot is in it.")]


def _unreachable_channel(setting: str, channel_id: str, error: SlackRefused) -> Finding:
    if error.error == "missing_scope":
        sentence = f"{channel_id} cannot be looked up: a scope is missing."
        return Finding(setting, "scope_missing", sentence)
    return Finding(
        setting,
        "channel_unknown",
        f"{channel_id} is not known to Slack ({error.error}): the id is wrong, or it is a private"
        " channel that the bot is not in. Copy the id from the channel's details; /invite the bot.",
    )


def _channel_mistakes(
    channel: Mapping[str, Any], *, is_private_wanted: bool
) -> list[tuple[str, bool, str]]:
    is_public = is_private_wanted and not (channel.get("is_private") or channel.get("is_im"))
    return [
        ("channel_archived", bool(channel.get("is_archived")), "is archived: choose another one."),
        (
            "bot_not_in_channel",
            channel.get("is_member") is False and not channel.get("is_archived"),
            "is a channel that the bot is not in: /invite it there.",
        ),
        (
            "channel_public",
            is_public,
            "is public, and cards in it show identities: make it private.",
        ),
    ]
