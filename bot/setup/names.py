"""Looks up people, user groups, and channels by name with Slack's Web API."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.services.http import open_session
from bot.setup.answers import SetupError
from bot.slack.client import slack_web_client

EVERYBODY = "*"
PERSON_ID = re.compile(r"[UWS][A-Z0-9]{2,}")
CHANNEL_ID = re.compile(r"[CGD][A-Z0-9]{2,}")
PAGE = 500
SECONDS = 30

# Lowercase names, each with the matching IDs.
Ids = dict[str, set[str]]


@dataclass(frozen=True)
class Workspace:
    """A workspace's people, user groups, and channels, by name; `shown` has the names by ID."""

    people: Ids = field(default_factory=dict)
    channels: Ids = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)

    def ids_of(self, names: Iterable[str], problems: list[str], prefix: str = "") -> list[str]:
        """Return the IDs of people and groups, and add the problems; `*` and IDs are kept."""
        return [self._id_of(name, problems, prefix) for name in names]

    def _id_of(self, name: str, problems: list[str], prefix: str) -> str:
        found = self.people.get(_plain(name), set())
        if name == EVERYBODY or PERSON_ID.fullmatch(name):
            found = {name}
        elif len(found) > 1:
            ids = " and ".join(sorted(found))
            problems.append(f"{prefix}“{name}” matches {ids}. Use an ID instead.")
        elif not found:
            problem = f"There is no person or user group “{name}” in Slack."
            problems.append(f"{prefix}{problem}{_suggestion(self.people, name, '@')}")
        return min(found, default="")

    def channel_id(self, name: str, problems: list[str], prefix: str = "") -> str:
        """Return a channel's ID, or add the problem. An ID is kept."""
        found = {name} if CHANNEL_ID.fullmatch(name) else self.channels.get(_plain(name), set())
        if len(found) != 1:
            problems.append(
                f"{prefix}There is no channel “{name}” that Gatehouse can see."
                f"{_suggestion(self.channels, name, '#')} For a private channel,"
                " type /invite @gatehouse in it first."
            )
        return min(found, default="")


def refuse(problems: Iterable[str]) -> None:
    """Raise SetupError if there are problems."""
    if named := [*problems]:
        raise SetupError(*named)


async def team_of(token: str, api_url: str) -> str:
    """Return the name of the token's workspace."""
    async with open_session() as session:
        answer = await _called(_client(token, api_url, session).auth_test())
    return str(answer.get("team") or answer.get("team_id") or "")


async def workspace_names(token: str, api_url: str) -> Workspace:
    """Find all people, groups and channels of the workspace."""
    async with open_session() as session:
        web = _client(token, api_url, session)
        found = Workspace()
        users = await _pages(web.users_list(limit=PAGE), "members")
        groups = (await _called(web.usergroups_list())).get("usergroups") or []
        for row in (*users, *groups):
            found.shown[str(row["id"])] = str(row.get("real_name") or row.get("name"))
            for name in _names_of(row):
                found.people.setdefault(name, set()).add(str(row["id"]))
        kinds = "public_channel,private_channel"
        listing = web.conversations_list(types=kinds, exclude_archived=True, limit=PAGE)
        for row in await _pages(listing, "channels"):
            found.channels.setdefault(_plain(str(row["name"])), set()).add(str(row["id"]))
    return found


def _client(token: str, api_url: str, session: aiohttp.ClientSession) -> AsyncWebClient:
    client = slack_web_client(token, api_url, session, SECONDS)
    client.retry_handlers.append(AsyncRateLimitErrorRetryHandler(max_retry_count=5))
    return client


async def _called(call: Any) -> AsyncSlackResponse:  # noqa: ANN401 - an awaitable of slack_sdk
    try:
        answer: AsyncSlackResponse = await call
    except SlackApiError as error:
        raise SetupError(_refusal(error)) from None
    except (SlackClientError, aiohttp.ClientError, OSError, ValueError, AttributeError):
        raise SetupError("Slack can't be reached. Check SLACK_API_URL and the network.") from None
    return answer


def _refusal(error: SlackApiError) -> str:
    data = error.response.data if isinstance(error.response.data, dict) else {}
    if data.get("error") == "missing_scope":
        return (
            f"slack_bot_token lacks the scope {data.get('needed')}: update the app from the"
            " manifest and install it again."
        )
    return (
        f"Slack refuses slack_bot_token ({data.get('error')}): copy the Bot User OAuth Token from"
        " the app's Install App page."
    )


async def _pages(call: Any, name: str) -> list[Mapping[str, Any]]:  # noqa: ANN401 - as `_called`
    pages = await _called(call)
    rows: list[Mapping[str, Any]] = []
    try:
        async for page in pages:
            rows += page.get(name) or []
    except SlackApiError as error:
        raise SetupError(_refusal(error)) from None
    return rows


def _names_of(row: Mapping[str, Any]) -> set[str]:
    if row.get("deleted") or row.get("is_bot") or row.get("date_delete"):
        return set()
    profile = row.get("profile") or {}
    names = (row.get("name"), row.get("handle"), row.get("real_name"), profile.get("display_name"))
    return {_plain(str(name)) for name in names if name}


def _plain(name: str) -> str:
    return name.strip().lstrip("@#").casefold()


def _suggestion(known: Ids, name: str, mark: str) -> str:
    near = get_close_matches(_plain(name), known, 1)
    return f" Did you mean {mark}{near[0]}?" if near else ""
