"""Replies by response_url: the only way to answer, or edit, a message only one person sees."""

import json
import re
import uuid
from collections.abc import Awaitable
from typing import Protocol

import aiohttp
import structlog
from yarl import URL

from bot.errors import SlackError, SlackRateLimited, SlackRefused, SlackUnreachable
from bot.ops.clock import Clock
from bot.ops.secrets import is_loopback
from bot.slack.messages.message import Message
from bot.slack.posting import in_plain_if_need_be

log = structlog.get_logger(__name__)

TIMEOUT_SECONDS = 10
TRIES = 3
LONGEST_WAIT_SECONDS = 30.0
HTTP_TOO_MANY = 429
HTTP_SERVER_ERROR = 500
HTTP_OK = 200
MOST_BYTES = 2_000
NO_URL = "no_response_url"
FOREIGN_URL = "response_url_of_somebody_else"
# https://docs.slack.dev/interactivity/handling-user-interaction, and GovSlack's.
HOOKS = frozenset({"hooks.slack.com", "hooks.slack-gov.com"})
JSON = {"Content-Type": "application/json"}
DELETION = json.dumps({"delete_original": True})
NAME = re.compile(r"[a-z_]{1,80}", re.ASCII)


class DirectMessages(Protocol):
    """Posts direct messages. Raises `SlackError`s."""

    async def post(
        self, channel_id: str, message: Message, *, thread_ts: str | None, client_msg_id: str
    ) -> tuple[str, str]:
        """Post to a person's direct messages; the person's id serves as the channel's."""
        ...


class Replies:
    """Posts to response_urls; Slack accepts five posts within thirty minutes for each.

    Args:
        session: The HTTP session.
        clock: For pauses.
        direct: Sends the answer once a URL no longer works.
        slack_api_url: Slack's address; response_urls elsewhere are refused.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        clock: Clock,
        direct: DirectMessages,
        slack_api_url: str,
    ) -> None:
        self._slack = URL(slack_api_url)
        self._session = session
        self._clock = clock
        self._direct = direct

    async def say(
        self, response_url: str, message: Message, *, to: str, replace: bool = False
    ) -> bool:
        """Show the message to the person `to`; return True if Slack accepted it.

        `replace` replaces the message that the URL belongs to. A form may stay open longer than its
        URL is valid; the answer is then a direct message. If it's unknown whether Slack accepted a
        post, it isn't repeated as a direct message.
        """
        if not response_url:
            # Home tab, direct messages and shortcuts have no response_url.
            return await self._directly(to, message)
        try:
            await self._by_url(response_url, message, TRIES, replace=replace)
        except SlackUnreachable as error:
            _log_refusal(error)
            return False
        except SlackError as error:
            _log_refusal(error)
            return await self._directly(to, message)
        return True

    async def _directly(self, to: str, message: Message) -> bool:
        return await _is_taken(
            in_plain_if_need_be(
                message,
                lambda version: self._direct.post(
                    to, version, thread_ts=None, client_msg_id=str(uuid.uuid4())
                ),
            )
        )

    async def say_once(self, response_url: str, message: Message, *, replace: bool = False) -> bool:
        """Like `say`, without retries or a direct message: for messages soon replaced."""
        if not response_url:
            return False
        return await _is_taken(self._by_url(response_url, message, 1, replace=replace))

    async def take_back(self, response_url: str) -> bool:
        """Delete the message that the URL belongs to; return True if Slack did."""
        return await _is_taken(self._send(response_url, DELETION, TRIES))

    async def _by_url(
        self, response_url: str, message: Message, tries: int, *, replace: bool
    ) -> None:
        await in_plain_if_need_be(
            message,
            lambda version: self._send(response_url, _body(version, replace=replace), tries),
        )

    async def _send(self, response_url: str, body: str, tries: int) -> None:
        if not response_url:
            raise SlackRefused(NO_URL)
        if not is_of_slack(response_url, self._slack):
            raise SlackRefused(FOREIGN_URL)
        for attempt in range(1, tries + 1):
            try:
                await self._post(response_url, body)
            except (SlackUnreachable, SlackRateLimited) as error:
                wait = getattr(error, "retry_after_seconds", 0.0)
                # Respect Slack's wait; if it's longer than anyone waits, give up.
                if attempt == tries or wait > LONGEST_WAIT_SECONDS:
                    raise
                await self._clock.sleep(wait or 2.0 ** (attempt - 1))
            else:
                return

    async def _post(self, response_url: str, body: str) -> None:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        try:
            async with self._session.post(
                response_url, data=body, headers=JSON, timeout=timeout, allow_redirects=False
            ) as response:
                status, words = response.status, await _words(response)
                wait = response.headers.get("Retry-After", "0")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SlackUnreachable from error
        if status == HTTP_TOO_MANY:
            raise SlackRateLimited(float(wait) if wait.isdigit() else 0.0)
        if status >= HTTP_SERVER_ERROR:
            raise SlackUnreachable
        refusal = _refusal(status, words)
        if refusal:
            raise SlackRefused(refusal)


def is_of_slack(response_url: str, slack: URL) -> bool:
    """Return True if a response_url belongs to the configured Slack.

    A stand-in on this machine may use any port of this machine.
    """
    try:
        url = URL(response_url)
    except ValueError:
        return False
    if url.user or url.password or not url.host:
        return False
    if is_loopback(slack.host) and is_loopback(url.host):
        return url.scheme in {"http", "https"}
    is_known = url.host in HOOKS and url.explicit_port in {None, 443}
    return url.scheme == "https" and (is_known or url.origin() == slack.origin())


async def _is_taken(sending: Awaitable[object]) -> bool:
    try:
        await sending
    except SlackError as error:
        _log_refusal(error)
        return False
    return True


def _log_refusal(error: SlackError) -> None:
    log.warning("reply.refused", outcome=error.outcome, reason=error.sentence)


async def _words(response: aiohttp.ClientResponse) -> bytes:
    try:
        return await response.content.read(MOST_BYTES)
    except (aiohttp.ClientError, OSError):
        return b""


def _refusal(status: int, words: bytes) -> str:
    """Return Slack's error name, from JSON or plain text; "" on success.

    A 2xx is a success unless its JSON says otherwise.
    """
    said = words.decode("utf-8", "replace").strip()
    try:
        body = json.loads(said)
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict) and body.get("ok") is False:
        return str(body.get("error") or "unknown")
    if status == HTTP_OK:
        return ""
    return said if NAME.fullmatch(said) else f"http_{status}"


def _body(message: Message, *, replace: bool) -> str:
    fields = f'"response_type": "ephemeral", "replace_original": {json.dumps(replace)}'
    return f"{{{fields}, {message.json[1:]}"
