"""Replies by response_url: the only way to answer, and to edit, what only one person sees."""

import json
import re
import uuid
from collections.abc import Awaitable
from typing import Any, Protocol

import aiohttp
import structlog

from bot.clock import Clock
from bot.errors import SlackError, SlackRateLimited, SlackRefused, SlackUnreachable
from bot.posting import in_plain_if_need_be
from bot.ui.message import Message

log = structlog.get_logger(__name__)

TIMEOUT_SECONDS = 10
TRIES = 3
LONGEST_WAIT_SECONDS = 30.0
HTTP_TOO_MANY = 429
HTTP_SERVER_ERROR = 500
HTTP_OK = 200
MOST_BYTES = 2_000
NO_URL = "no_response_url"
NAME = re.compile(r"[a-z_]{1,80}", re.ASCII)


class DirectMessages(Protocol):
    """Writes to a person. Raises `SlackError`s."""

    async def post(
        self, channel_id: str, message: Message, *, thread_ts: str | None, client_msg_id: str
    ) -> tuple[str, str]:
        """Post to a person's direct messages, whose id stands for the channel's."""
        ...


class Replies:
    """Posts to a response_url: five times within thirty minutes each, says Slack.

    Args:
        session: Posts.
        clock: Waits.
        direct: Where an answer goes that no URL takes any more.
    """

    def __init__(
        self, session: aiohttp.ClientSession, clock: Clock, direct: DirectMessages
    ) -> None:
        self._session = session
        self._clock = clock
        self._direct = direct

    async def say(
        self, response_url: str, message: Message, *, to: str, replace: bool = False
    ) -> bool:
        """Show the message to the person `to`; return whether Slack took it.

        `replace` puts it in the place of the message that the URL belongs to. A form may be left
        open for longer than a URL is good for: the answer is then a direct message. Where nobody
        knows whether Slack took it, it is not said again elsewhere.
        """
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
                lambda one: self._direct.post(
                    to, one, thread_ts=None, client_msg_id=str(uuid.uuid4())
                ),
            )
        )

    async def say_once(self, response_url: str, message: Message, *, replace: bool = False) -> bool:
        """As `say`, without trying again, nor elsewhere: for what is soon replaced."""
        return await _is_taken(self._by_url(response_url, message, 1, replace=replace))

    async def take_back(self, response_url: str) -> bool:
        """Delete the message that the URL belongs to; return whether Slack did."""
        return await _is_taken(self._send(response_url, {"delete_original": True}, TRIES))

    async def _by_url(
        self, response_url: str, message: Message, tries: int, *, replace: bool
    ) -> None:
        await in_plain_if_need_be(
            message,
            lambda one: self._send(response_url, _payload(one, replace=replace), tries),
        )

    async def _send(self, response_url: str, payload: dict[str, Any], tries: int) -> None:
        if not response_url:
            raise SlackRefused(NO_URL)
        for attempt in range(1, tries + 1):
            try:
                await self._post(response_url, payload)
            except (SlackUnreachable, SlackRateLimited) as error:
                wait = getattr(error, "retry_after_seconds", 0.0)
                # Slack's wait is kept to; when it is longer than anybody waits, that is that.
                if attempt == tries or wait > LONGEST_WAIT_SECONDS:
                    raise
                await self._clock.sleep(wait or 2.0 ** (attempt - 1))
            else:
                return

    async def _post(self, response_url: str, payload: dict[str, Any]) -> None:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        try:
            async with self._session.post(
                response_url, json=payload, timeout=timeout, allow_redirects=False
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
    """What Slack says besides its status, as far as it comes: the status alone says enough."""
    try:
        return await response.content.read(MOST_BYTES)
    except (aiohttp.ClientError, OSError):
        return b""


def _refusal(status: int, words: bytes) -> str:
    """Slack's name for why not, which comes as JSON or as it is; "" where it was taken.

    A success is a success whatever its text says, unless it is JSON that says otherwise.
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


def _payload(message: Message, *, replace: bool) -> dict[str, Any]:
    return {**message.payload(), "response_type": "ephemeral", "replace_original": replace}
