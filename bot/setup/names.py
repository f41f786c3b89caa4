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
        found: dict[str, Any] = self._with_ids(table, (), problems)
        if problems:
            raise SettingsError(problems)
        return found

    def _with_ids(self, value: Any, place: tuple[str, ...], problems: list[str]) -> Any:  # noqa: ANN401 - as in TOML
        if isinstance(value, dict):
            return {
                key: self._with_ids(part, (*place, key), problems) for key, part in value.items()
            }
        if isinstance(value, list):
            return [self._with_ids(part, place, problems) for part in value]
        is_channel = str(value).startswith("#") and place[-1] in CHANNELS
        if not is_channel and not (str(value).startswith("@") and place[-1] in PEOPLE):
            return value
        known, problem = (self.channels, NO_CHANNEL) if is_channel else (self.people, NO_PERSON)
        ids = known.get(_plain(value), set())
        if len(ids) == 1:
            return next(iter(ids))
        if ids:
            problem = f"“{{}}” matches {' and '.join(sorted(ids))}. Use an ID instead."
        problems.append(f"{' → '.join(place)}: {problem.format(value)}")
        return value


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
            raise SettingsError([problem]) from None
        except SlackError as error:
            problem = f"{error.sentence} Check SLACK_API_URL and the network."
            raise SettingsError([problem]) from None


async def _look_up(slack: SlackClient) -> Workspace:
    found = Workspace()
    people = await slack.rows("users_list", "members", limit=PAGE)
    try:
        people += await slack.rows("usergroups_list", "usergroups")
    except SlackRefused as error:
        # Only paid plans have user groups.
        if error.error != "plan_upgrade_required":
            raise
    for row in people:
        _add(found, row)
    for row in await slack.rows(
        "conversations_list", "channels", types=KINDS, exclude_archived=True, limit=PAGE
    ):
        found.channels.setdefault(_plain(row["name"]), set()).add(row["id"])
    return found


def _add(found: Workspace, row: Mapping[str, Any]) -> None:
    """Add a person or a user group to `found`. Ignore bots and deleted people and groups."""
    if row.get("deleted") or row.get("is_bot") or row.get("date_delete"):
        return
    keys = ("name", "handle", "real_name")
    names = (*map(row.get, keys), (row.get("profile") or {}).get("display_name"))
    for name in filter(None, names):
        found.people.setdefault(_plain(name), set()).add(row["id"])


def _plain(name: str) -> str:
    return name.strip().lstrip("@#").casefold()
