"""Replies by response_url: the only way to answer, and to edit, what only one person sees."""

import json
import re
import uuid
from collections.abc import Awaitable
from typing import Protocol

import aiohttp
import structlog
from yarl import URL

from bot.clients.posting import in_plain_if_need_be
from bot.errors import SlackError, SlackRateLimited, SlackRefused, SlackUnreachable
from bot.ops.clock import Clock
from bot.settings.secrets import is_loopback
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
FOREIGN_URL = "response_url_of_somebody_else"
# https://docs.slack.dev/interactivity/handling-user-interaction, and GovSlack's.
HOOKS = frozenset({"hooks.slack.com", "hooks.slack-gov.com"})
JSON = {"Content-Type": "application/json"}
DELETION = json.dumps({"delete_original": True})
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
        slack_api_url: Where Slack is; a URL of anybody else is not posted to.
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
        """Show the message to the person `to`; return whether Slack took it.

        `replace` puts it in the place of the message that the URL belongs to. A form may be left
        open for longer than a URL is good for: the answer is then a direct message. Where nobody
        knows whether Slack took it, it is not said again elsewhere.
        """
        if not response_url:
            # What was done in the Home tab, in a direct message or in a shortcut.
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
                lambda one: self._direct.post(
                    to, one, thread_ts=None, client_msg_id=str(uuid.uuid4())
                ),
            )
        )

    async def say_once(self, response_url: str, message: Message, *, replace: bool = False) -> bool:
        """As `say`, without trying again, nor elsewhere: for what is soon replaced."""
        if not response_url:
            return False
        return await _is_taken(self._by_url(response_url, message, 1, replace=replace))

    async def take_back(self, response_url: str) -> bool:
        """Delete the message that the URL belongs to; return whether Slack did."""
        return await _is_taken(self._send(response_url, DELETION, TRIES))

    async def _by_url(
        self, response_url: str, message: Message, tries: int, *, replace: bool
    ) -> None:
        await in_plain_if_need_be(
            message,
            lambda one: self._send(response_url, _body(one, replace=replace), tries),
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
                # Slack's wait is kept to; when it is longer than anybody waits, that is that.
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
    """Return whether a response_url is one of Slack's, or of the Slack that the bot is set to.

    A stand-in on this machine may have its response_urls anywhere on this machine.
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


def _body(message: Message, *, replace: bool) -> str:
    fields = f'"response_type": "ephemeral", "replace_original": {json.dumps(replace)}'
    return f"{{{fields}, {message.json[1:]}"
