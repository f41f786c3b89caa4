"""Looks up people, user groups and channels in Slack by name."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler

from bot.errors import SlackError, SlackRefused
from bot.ops.clock import SystemClock
from bot.services.http import open_session
from bot.setup.answers import SetupError
from bot.slack.client import SlackClient, slack_web_client

CHANNELS = ("alerts_channel", "approvals_channel")
EVERYBODY = "*"
# The settings tell people from channels.
SLACK_ID = re.compile(r"\*|[UWSCGD][A-Z0-9]{2,}")
PAGE = 500
SLACK_API_URL = "https://slack.com/api/"
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

    def ids(self, answers: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
        """Return the IDs for the names in the answers. IDs and `*` are returned unchanged.

        Raises:
            SetupError: Some names match no ID or several IDs. The error lists all of these names.
        """
        found: dict[str, list[str]] = {}
        problems = []
        for key, names in answers.items():
            is_channel = key in CHANNELS
            known = self.channels if is_channel else self.people
            found[key] = []
            for name in names:
                ids = {name} if SLACK_ID.fullmatch(name) else known.get(_plain(name), set())
                found[key] += ids
                if len(ids) > 1:
                    several = " and ".join(sorted(ids))
                    problems.append(f"{key}: “{name}” matches {several}. Use an ID instead.")
                elif not ids:
                    problem = NO_CHANNEL if is_channel else NO_PERSON
                    problems.append(f"{key}: {problem.format(name)}")
        if problems:
            raise SetupError(*problems)
        return found


async def look_up(token: str, rest: Mapping[str, object]) -> Workspace:
    """Find the people, groups and channels of the token's workspace."""
    async with open_session() as session:
        web = slack_web_client(token, str(rest.get("slack_api_url", SLACK_API_URL)), session)
        web.retry_handlers.append(AsyncRateLimitErrorRetryHandler(max_retry_count=5))
        try:
            return await _look_up(SlackClient(web, SystemClock()))
        except SlackRefused as error:
            raise SetupError(
                f"Slack refuses slack_bot_token ({error.error}). {error.sentence} Install the app"
                " from the manifest, and copy its Bot User OAuth Token."
            ) from None
        except SlackError as error:
            raise SetupError(f"{error.sentence} Check SLACK_API_URL and the network.") from None


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
