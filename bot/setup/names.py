"""Looks up people, user groups and channels in Slack by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler

from bot.errors import SlackError, SlackRefused
from bot.ops.clock import SystemClock
from bot.permissions import Role
from bot.services.http import open_session
from bot.settings import SettingsError
from bot.slack.client import SlackClient, slack_web_client

# The keys in the settings whose values are channels, people or user groups.
CHANNELS = {"alerts_channel", "approvals_channel", "channel"}
PEOPLE = {
    *Role,
    "approvers",
    "notify",
    "escalate_to",
    "requesters",
    "from",
    "owner",
    "access_contact",
    "person",
}
PAGE = 500
KINDS = "public_channel,private_channel"
NO_PERSON = "No person or user group is named “{}” in Slack."
NO_CHANNEL = (
    "Gatehouse can't see a channel named “{}”. If the channel is private, type /invite @gatehouse"
    " in it first."
)


@dataclass(frozen=True)
class Workspace:
    """The people and channels of a workspace, as maps from lowercase names to IDs.

    `people` includes user groups.
    """

    people: dict[str, set[str]] = field(default_factory=dict)
    channels: dict[str, set[str]] = field(default_factory=dict)

    def with_ids(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings with IDs in place of `@name` and `#name`.

        Raises:
            SettingsError: Some names match no ID or several IDs. The error lists them all.
        """
        problems: list[str] = []

        def replaced(value: Any, place: tuple[str, ...]) -> Any:  # noqa: ANN401 - as in TOML
            if isinstance(value, dict):
                return {key: replaced(part, (*place, key)) for key, part in value.items()}
            if isinstance(value, list):
                return [replaced(part, place) for part in value]
            is_channel = str(value).startswith("#") and place[-1] in CHANNELS
            if not is_channel and not (str(value).startswith("@") and place[-1] in PEOPLE):
                return value
            ids, problem = (self.channels, NO_CHANNEL) if is_channel else (self.people, NO_PERSON)
            matches = sorted(ids.get(_plain(value), ()))
            if len(matches) == 1:
                return matches[0]
            if matches:
                problem = f"“{{}}” matches {' and '.join(matches)}. Use an ID instead."
            problems.append(f"{' → '.join(place)}: {problem.format(value)}")
            return value

        settings: dict[str, Any] = replaced(table, ())
        if problems:
            raise SettingsError(problems)
        return settings


async def look_up(token: str, slack_api_url: str) -> Workspace:
    """Find the people, groups and channels of the token's workspace."""
    async with open_session() as session:
        web = slack_web_client(token, slack_api_url, session)
        web.retry_handlers.append(AsyncRateLimitErrorRetryHandler(max_retry_count=5))
        try:
            return await _look_up(SlackClient(web, SystemClock()))
        except SlackRefused as error:
            problem = (
                f"Slack refuses slack_bot_token ({error.error}). {error.sentence} Install the app"
                " from the manifest, and copy its Bot User OAuth Token."
            )
        except SlackError as error:
            problem = f"{error.sentence} Check SLACK_API_URL and the network."
        raise SettingsError([problem])


async def _look_up(slack: SlackClient) -> Workspace:
    workspace = Workspace()
    people = await slack.rows("users_list", "members", limit=PAGE)
    try:
        people += await slack.rows("usergroups_list", "usergroups")
    except SlackRefused as error:
        # Only paid plans have user groups.
        if error.error != "plan_upgrade_required":
            raise
    for row in people:
        is_gone = row.get("deleted") or row.get("is_bot") or row.get("date_delete")
        profile = row.get("profile") or {}
        keys = ("name", "handle", "real_name")
        for name in (*map(row.get, keys), profile.get("display_name")):
            if name and not is_gone:
                workspace.people.setdefault(_plain(name), set()).add(row["id"])
    for row in await slack.rows(
        "conversations_list", "channels", types=KINDS, exclude_archived=True, limit=PAGE
    ):
        workspace.channels.setdefault(_plain(row["name"]), set()).add(row["id"])
    return workspace


def _plain(name: str) -> str:
    return name.strip().lstrip("@#").casefold()
