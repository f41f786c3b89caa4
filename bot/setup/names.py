"""Looks up people, user groups and channels in Slack by name."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient
from yarl import URL

from bot.services.http import open_session, proxy_problem
from bot.setup.answers import SetupError
from bot.slack.client import slack_web_client
from bot.spelling import closest

CHANNELS = ("alerts_channel", "approvals_channel")
EVERYBODY = "*"
PERSON_ID = re.compile(r"\*|[UWS][A-Z0-9]{2,}")
CHANNEL_ID = re.compile(r"[CGD][A-Z0-9]{2,}")
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

    `people` includes user groups. `shown` maps the IDs of people and groups to display names.
    """

    name: str = ""
    people: dict[str, set[str]] = field(default_factory=dict)
    channels: dict[str, set[str]] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)

    def ids(self, answers: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
        """Return the IDs for the names in the answers. IDs and `*` are returned unchanged.

        Raises:
            SetupError: Some names match no ID or several IDs. The error lists all of these names.
        """
        found: dict[str, list[str]] = {key: [] for key in answers}
        problems = []
        for key, name in ((key, name) for key, names in answers.items() for name in names):
            known, pattern, mark, problem = self.people, PERSON_ID, "@", NO_PERSON
            if key in CHANNELS:
                known, pattern, mark, problem = self.channels, CHANNEL_ID, "#", NO_CHANNEL
            ids = {name} if pattern.fullmatch(name) else known.get(_plain(name), set())
            if len(ids) > 1:
                several = " and ".join(sorted(ids))
                problems.append(f"{key}: “{name}” matches {several}. Use an ID instead.")
            elif not ids:
                near = closest(_plain(name), known)
                hint = f" Did you mean {mark}{near[0]}?" if near else ""
                problems.append(f"{key}: {problem.format(name)}{hint}")
            found[key] += ids
        if problems:
            raise SetupError(*problems)
        return found


async def look_up(token: str, rest: Mapping[str, str]) -> Workspace:
    """Find the people, groups and channels of the token's workspace."""
    api_url = rest.get("SLACK_API_URL") or "https://slack.com/api/"
    async with open_session() as session:
        web = slack_web_client(token, api_url, session)
        web.retry_handlers.append(AsyncRateLimitErrorRetryHandler(max_retry_count=5))
        try:
            team = await web.auth_test()
            found = Workspace(str(team.get("team") or team.get("team_id")))
            for group in await _groups(web):
                _add(found, group)
            async for page in await web.users_list(limit=PAGE):
                for user in page.get("members") or []:
                    _add(found, user)
            listing = web.conversations_list(types=KINDS, exclude_archived=True, limit=PAGE)
            async for page in await listing:
                for row in page.get("channels") or []:
                    found.channels.setdefault(_plain(row["name"]), set()).add(row["id"])
        except SlackApiError as error:
            data = error.response.data if isinstance(error.response.data, dict) else {}
            raise SetupError(
                f"slack_bot_token lacks the scope {data.get('needed')}: update the app from the"
                " manifest and install it again."
                if data.get("error") == "missing_scope"
                else f"Slack refuses slack_bot_token ({data.get('error')}): copy the Bot User OAuth"
                " Token from the app's Install App page."
            ) from None
        except (
            SlackClientError,
            aiohttp.ClientError,
            OSError,
            ValueError,
            AttributeError,
        ) as error:
            cause = proxy_problem(URL(api_url), error)
            problem = f", because {cause}" if cause else ". Check SLACK_API_URL and the network."
            raise SetupError(f"Slack can't be reached{problem}") from None
    return found


async def _groups(web: AsyncWebClient) -> list[dict[str, Any]]:
    try:
        return (await web.usergroups_list()).get("usergroups") or []
    except SlackApiError as error:
        # Only paid plans have user groups.
        if error.response.get("error") != "plan_upgrade_required":
            raise
        return []


def _add(found: Workspace, row: Mapping[str, Any]) -> None:
    """Add a person or a user group to `found`. Ignore bots and deleted people and groups."""
    if row.get("deleted") or row.get("is_bot") or row.get("date_delete"):
        return
    found.shown[row["id"]] = str(row.get("real_name") or row.get("name"))
    keys = ("name", "handle", "real_name")
    names = (*map(row.get, keys), (row.get("profile") or {}).get("display_name"))
    for name in filter(None, names):
        found.people.setdefault(_plain(name), set()).add(row["id"])


def _plain(name: str) -> str:
    return name.strip().lstrip("@#").casefold()
