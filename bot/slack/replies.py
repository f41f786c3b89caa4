"""Replies through response_urls (the only way to edit ephemeral messages) or direct messages."""

import json
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
import structlog
from yarl import URL

from bot.errors import SlackError, SlackRateLimited, SlackRefused, SlackUnreachable
from bot.ops.clock import Clock
from bot.ops.secrets import is_loopback
from bot.slack.client import SlackClient, error_of, in_plain_if_need_be
from bot.slack.messages.block_kit import Message

log = structlog.get_logger(__name__)

TIMEOUT_SECONDS = 10
TRIES = 3
LONGEST_RETRY_SECONDS = 30.0
HTTP_OK = 200
MOST_BYTES = 2_000
FOREIGN_URL = "response_url_of_somebody_else"
# The servers of response_urls (https://docs.slack.dev/interactivity/handling-user-interaction) in
# Slack and GovSlack.
HOOKS = (URL("https://hooks.slack.com"), URL("https://hooks.slack-gov.com"))
NAME = re.compile(r"[a-z_]{1,80}", re.ASCII)


@dataclass
class Replies:
    """Posts to response_urls, each of which accepts up to five posts within thirty minutes.

    If a URL no longer works, `slack` sends the answer as a direct message. URLs that belong to
    neither Slack nor `slack_api_url` are refused.
    """

    session: aiohttp.ClientSession
    clock: Clock
    slack: SlackClient
    slack_api_url: str

    async def say(
        self,
        response_url: str,
        message: Message,
        *,
        to: str,
        replace: bool = False,
        tries: int = TRIES,
    ) -> bool:
        """Send the message to the person with the ID `to`. Return True if Slack accepted it.

        If `replace` is True, replace the message that the URL belongs to. If there is no URL (as in
        the Home tab) or the URL has expired (as in a form left open), send a direct message. If
        `tries` is 1, skip the direct message, because the message would soon be replaced. Don't
        repeat a post that Slack might have accepted.
        """

        async def send(**payload: object) -> None:
            fields = {"response_type": "ephemeral", "replace_original": replace}
            post = partial(self._post, response_url, {**fields, **payload})
            await _retried(self.clock, post, tries)

        if response_url:
            error = await _refusal(in_plain_if_need_be(message, send))
            if error is None or isinstance(error, SlackUnreachable):
                return error is None
        if tries == 1:
            return False
        name = str(uuid.uuid4())
        direct = self.slack.post(to, message, thread_ts=None, client_msg_id=name)
        return await _refusal(direct) is None

    async def share(self, response_url: str, message: Message) -> None:
        """Post the message for everyone in the channel that the URL belongs to.

        Raises:
            SlackUnreachable: Slack might have posted the message.
            SlackError: Slack didn't post the message.
        """
        fields = {"response_type": "in_channel", "replace_original": False}
        previews = {"unfurl_links": False, "unfurl_media": False}
        await self._post(response_url, {**fields, **previews, **message.payload()})

    async def _post(self, response_url: str, body: Mapping[str, Any]) -> None:
        if not is_of_slack(response_url, URL(self.slack_api_url)):
            raise SlackRefused(FOREIGN_URL)
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        try:
            async with self.session.post(
                response_url, json=body, timeout=timeout, allow_redirects=False
            ) as response:
                said = b""
                # If the body is cut off, the status still counts.
                with suppress(aiohttp.ClientError, OSError):
                    said = await response.content.read(MOST_BYTES)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SlackUnreachable from error
        # The body is either JSON or just the name of an error.
        words = said.decode("utf-8", "replace").strip()
        answer: dict[str, object] = {}
        with suppress(ValueError, RecursionError):
            found = json.loads(words)
            answer = found if isinstance(found, dict) else {}
        if response.status != HTTP_OK or answer.get("ok") is False:
            name = words if NAME.fullmatch(words) else f"http_{response.status}"
            raise error_of(response.status, {"error": name, **answer}, response.headers)


@dataclass
class DirectReplies:
    """Answers a direct message. The answer replaces "Working on it"."""

    slack: SlackClient
    clock: Clock
    channel_id: str
    thread_ts: str | None
    posted: tuple[str, str] | None = None

    async def say(self, message: Message, *, replace: bool = False, tries: int = TRIES) -> bool:
        """Post the message, or replace the last one. Return True if Slack accepted it."""
        # With the same client_msg_id, a post repeated after a lost response appears only once.
        client_msg_id = str(uuid.uuid4())

        async def show() -> None:
            if replace and self.posted is not None:
                await self.slack.update(*self.posted, message)
            else:
                self.posted = await self.slack.post(
                    self.channel_id,
                    message,
                    thread_ts=self.thread_ts,
                    client_msg_id=client_msg_id,
                )

        return await _refusal(_retried(self.clock, show, tries)) is None


def is_of_slack(response_url: str, slack: URL) -> bool:
    """Return True if a response_url belongs to Slack or to the configured API server.

    If that server runs on this machine, as in tests, any local port is accepted.
    """
    try:
        url = URL(response_url)
        origin = url.origin()
    except ValueError:
        return False
    is_local = is_loopback(slack.host) and is_loopback(url.host)
    return url.user is None and (is_local or origin in {*HOOKS, slack.origin()})


async def _retried(clock: Clock, attempt: Callable[[], Awaitable[None]], tries: int) -> None:
    """Call `attempt` up to `tries` times. Give up early if Slack asks for a long wait."""
    number = 1
    while True:
        try:
            return await attempt()
        except (SlackUnreachable, SlackRateLimited) as error:
            wait = error.retry_after_seconds
            if number == tries or wait > LONGEST_RETRY_SECONDS:
                raise
            await clock.sleep(wait or 2.0 ** (number - 1))
            number += 1


async def _refusal(sending: Awaitable[object]) -> SlackError | None:
    try:
        await sending
    except SlackError as error:
        log.warning("reply.refused", outcome=error.outcome, reason=error.sentence)
        return error
    return None
