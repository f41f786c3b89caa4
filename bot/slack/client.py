"""A client for Slack's Web API that raises a `SlackError` for every failure."""

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import aiohttp
import structlog
from cachetools import LRUCache
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse
from yarl import URL

from bot.errors import SlackError, SlackRateLimited, SlackRefused, SlackUnreachable
from bot.ops.clock import Clock
from bot.services.errors import seconds_in
from bot.services.http import proxy_problem, tls_context
from bot.slack.messages.block_kit import FILLED_CHARACTERS, Message, section
from bot.slack.messages.text import cut
from bot.spelling import one_line

log = structlog.get_logger(__name__)

T = TypeVar("T")
Method = Callable[..., Awaitable[AsyncSlackResponse]]
"""A method of Slack's own client."""

HTTP_TOO_MANY = 429
LONGEST_WAIT_SECONDS = 3600.0
LIMITS_REMEMBERED = 1_000
PERMALINKS_REMEMBERED = 1_000
HTTP_SERVER_ERROR = 500
# Slack's names for temporary errors, after which the same call may succeed.
PASSING = frozenset(
    {
        "internal_error",
        "fatal_error",
        "service_unavailable",
        "request_timeout",
        # While a workspace or a channel moves to an Enterprise organization.
        "team_added_to_org",
        "org_login_required",
        "external_channel_migrating",
    }
)
# Slack's error names for a message with invalid blocks.
BAD_BLOCKS = frozenset(
    {
        "invalid_blocks",
        "invalid_blocks_format",
        "msg_blocks_too_long",
        "only_one_table_allowed",
        "invalid_attachments",
    }
)

# The fields that tell guests and bots from full members.
OTHER_THAN_MEMBERS = ("is_restricted", "is_ultra_restricted", "is_bot")
FAILURES = (
    SlackClientError,
    aiohttp.ClientError,
    OSError,
    ValueError,
    # Slack's client raises these two if a response isn't a JSON object.
    AttributeError,
    RecursionError,
)


@dataclass(frozen=True)
class BotIdentity:
    """The bot's IDs and scopes (`auth.test`). `answered_at` is the response's `Date` header.

    `is_organization_wide` is True if the app is installed in a whole Enterprise organization.
    """

    team_id: str
    slack_user_id: str
    team_name: str
    scopes: frozenset[str]
    answered_at: str
    is_organization_wide: bool


@dataclass(frozen=True)
class SlackUser:
    """A person, as returned by `users.info`."""

    team_id: str
    name: str
    is_full_member: bool
    is_deleted: bool
    is_stranger: bool
    time_zone: str


@dataclass
class SlackClient:
    """Calls Web API methods through the shared session in `_web`.

    After each call, `observe` receives the method's name and either "ok" or an error name.

    After a 429 response, calls to the same method for the same channel raise `SlackRateLimited`
    until the `Retry-After` time has passed. Slack limits messages per channel, so a busy channel
    doesn't delay alerts in other channels.
    """

    _web: AsyncWebClient
    clock: Clock
    observe: Callable[[str, str], None] = lambda _method, _outcome: None

    def __post_init__(self) -> None:
        self._quiet_until: LRUCache[tuple[str, str], float] = LRUCache(LIMITS_REMEMBERED)
        self._permalinks: LRUCache[tuple[str, str], str] = LRUCache(PERMALINKS_REMEMBERED)

    async def who_am_i(self) -> BotIdentity:
        """Return the identity that the token belongs to (`auth.test`)."""
        answer = await self._call(self._web.auth_test)
        scopes = answer.headers.get("X-OAuth-Scopes", "").replace(" ", "").split(",")
        return BotIdentity(
            team_id=answer.get("team_id", ""),
            slack_user_id=answer.get("user_id", ""),
            team_name=answer.get("team", ""),
            scopes=frozenset(filter(None, scopes)),
            answered_at=answer.headers.get("Date", ""),
            is_organization_wide=bool(answer.get("is_enterprise_install")),
        )

    async def try_app_token(self, app_token: str) -> None:
        """Raise SlackError if Slack refuses the Socket Mode token (`apps.connections.open`)."""
        await self._call(self._web.apps_connections_open, app_token=app_token)

    async def user(self, slack_user_id: str) -> SlackUser:
        """Return the person with this Slack user ID (`users.info`)."""
        answer = await self._call(self._web.users_info, user=slack_user_id)
        user = answer.get("user")
        if not isinstance(user, dict):
            raise SlackUnreachable
        name = str(user.get("real_name") or user.get("name") or "")
        return SlackUser(
            team_id=user.get("team_id") or "",
            # PostgreSQL can store neither NUL nor lone surrogates.
            name=name.replace("\0", "?").encode(errors="replace").decode()
            if one_line(name)
            else slack_user_id,
            is_full_member=not any(map(user.get, OTHER_THAN_MEMBERS)),
            is_deleted=bool(user.get("deleted")),
            is_stranger=bool(user.get("is_stranger")),
            time_zone=str(user.get("tz") or "UTC"),
        )

    async def members(self, group_id: str) -> frozenset[str]:
        """Return the user IDs of a user group's members (`usergroups.users.list`)."""
        answer = await self._call(self._web.usergroups_users_list, usergroup=group_id)
        users = answer.get("users")
        if not isinstance(users, list):
            raise SlackUnreachable
        return frozenset(users)

    async def rows(
        self,
        method: str,
        key: str,
        **arguments: Any,  # noqa: ANN401 - they depend on the method
    ) -> list[Mapping[str, Any]]:
        """Return all rows of a list, such as the `members` of `users_list`, from all pages."""
        found: list[Mapping[str, Any]] = []
        while True:
            answer = await self._call(getattr(self._web, method), **arguments)
            found += answer.get(key) or []
            arguments["cursor"] = (answer.get("response_metadata") or {}).get("next_cursor")
            if not arguments["cursor"]:
                return found

    async def group_handles(self) -> Mapping[str, str]:
        """Return each user group's handle by group ID (`usergroups.list`)."""
        groups = await self.rows("usergroups_list", "usergroups")
        return {group["id"]: group.get("handle") or group["id"] for group in groups}

    async def channel(self, channel_id: str) -> Mapping[str, Any]:
        """Return the channel with this ID (`conversations.info`)."""
        answer = await self._call(self._web.conversations_info, channel=channel_id)
        channel: Mapping[str, Any] = answer.get("channel") or {}
        return channel

    @staticmethod
    def is_shared(channel: Mapping[str, Any]) -> bool:
        """Return True if a channel is shared with another workspace, or soon will be.

        See https://docs.slack.dev/reference/objects/conversation-object.
        """
        shared = ("is_shared", "is_ext_shared", "is_org_shared", "is_pending_ext_shared")
        return any(channel.get(name) for name in shared)

    async def post(
        self, channel_id: str, message: Message, *, thread_ts: str | None, client_msg_id: str
    ) -> tuple[str, str]:
        """Post to a channel or direct message, and return the channel ID and message timestamp."""
        post = partial(
            self._call,
            self._web.chat_postMessage,
            channel=channel_id,
            thread_ts=thread_ts,
            client_msg_id=client_msg_id,
            unfurl_links=False,
            unfurl_media=False,
        )
        answer = await in_plain_if_need_be(message, post)
        return str(answer.get("channel") or channel_id), str(answer.get("ts"))

    async def update(self, channel_id: str, message_ts: str, message: Message) -> None:
        """Edit one of the bot's messages. If `message` has no blocks, remove the old blocks."""
        edit = partial(self._call, self._web.chat_update, channel=channel_id, ts=message_ts)
        await in_plain_if_need_be(message, edit)

    async def open_view(self, trigger_id: str, view: Mapping[str, Any]) -> None:
        """Open a modal (`views.open`). The trigger expires after three seconds."""
        await self._call(self._web.views_open, trigger_id=trigger_id, view=dict(view))

    async def permalink(self, channel_id: str, message_ts: str) -> str:
        """Return a message's URL, which never changes (`chat.getPermalink`)."""
        link = self._permalinks.get((channel_id, message_ts))
        if link is None:
            answer = await self._call(
                self._web.chat_getPermalink, channel=channel_id, message_ts=message_ts
            )
            link = str(answer.get("permalink") or "")
            if link:
                self._permalinks[channel_id, message_ts] = link
        return link

    async def publish_home(self, slack_user_id: str, view: Mapping[str, Any]) -> None:
        """Publish a person's Home tab (`views.publish`)."""
        await self._call(self._web.views_publish, user_id=slack_user_id, view=dict(view))

    async def _call(
        self,
        method: Method,
        **arguments: Any,  # noqa: ANN401 - they depend on the method
    ) -> AsyncSlackResponse:
        name = method.__name__
        limited = (name, str(arguments.get("channel") or ""))
        left = self._quiet_until.get(limited, 0.0) - self.clock.monotonic()
        if left > 0:
            raise SlackRateLimited(math.ceil(left))
        try:
            answer = await method(**arguments)
        except FAILURES as cause:
            error: SlackError = SlackUnreachable()
            response = getattr(cause, "response", None)
            if isinstance(response, AsyncSlackResponse):
                error = error_of(response.status_code, response.data, response.headers)
            # If Slack's answer isn't JSON, its client passes on the answer as aiohttp has it.
            elif isinstance(response, aiohttp.ClientResponse):
                error = error_of(response.status, None, response.headers)
            if problem := proxy_problem(URL(self._web.base_url), cause):
                error.sentence = f"Slack can't be reached, because {problem}"
            why = error.error if isinstance(error, SlackRefused) else error.outcome
            if isinstance(error, SlackRateLimited):
                self._quiet_until[limited] = self.clock.monotonic() + error.retry_after_seconds
                why = "ratelimited"
            self.observe(name, why)
            raise error from cause
        self.observe(name, "ok")
        return answer


def error_of(status: int, body: object, headers: Mapping[str, Any]) -> SlackError:
    """Return the error for a failed response from the Web API or a response_url."""
    given: Mapping[str, Any] = body if isinstance(body, dict) else {}
    name = given.get("error")
    if status == HTTP_TOO_MANY or name in {"ratelimited", "rate_limited"}:
        return SlackRateLimited(min(max(1.0, seconds_in(headers)), LONGEST_WAIT_SECONDS))
    if not isinstance(name, str) or status >= HTTP_SERVER_ERROR or name in PASSING:
        return SlackUnreachable()
    needed = given.get("needed")
    details = (given.get("response_metadata") or {}).get("messages") or []
    return SlackRefused(name, f"needs {needed}" if needed else "; ".join(map(str, details)))


async def in_plain_if_need_be(message: Message, send: Callable[..., Awaitable[T]]) -> T:
    """Send the message's payload. If Slack refuses the blocks, send the text with the buttons."""
    try:
        return await send(**message.payload())
    except SlackRefused as error:
        if error.error not in BAD_BLOCKS:
            raise
        log.warning("slack.bad_blocks", error=error.sentence)
    paragraph = section(cut(message.text, FILLED_CHARACTERS))
    buttons = [block for block in message.slack_blocks if block["type"] == "actions"]
    return await send(**Message(message.text, (paragraph, *buttons)).payload())


def slack_web_client(token: str, base_url: str, session: aiohttp.ClientSession) -> AsyncWebClient:
    """Return a Slack client that uses `session`, and therefore the bot's proxy settings.

    By default, Slack's client reads `HTTPS_PROXY` but ignores `NO_PROXY`.
    """
    client = AsyncWebClient(
        token=token,
        base_url=base_url.rstrip("/") + "/",
        session=session,
        ssl=tls_context(),
        # Callers retry calls themselves, because a blind retry could post a message twice.
        retry_handlers=[],
    )
    client.proxy = None
    return client
