"""Replies by response_url: the only way to answer, and to edit, what only one person sees."""

from typing import Any

import aiohttp
import structlog

from bot.clock import Clock
from bot.errors import SlackUnreachable
from bot.ui.message import Message

log = structlog.get_logger(__name__)

TIMEOUT_SECONDS = 10
TRIES = 3
LONGEST_WAIT_SECONDS = 30.0
HTTP_TOO_MANY = 429
HTTP_SERVER_ERROR = 500
HTTP_OK = 200


class Replies:
    """Posts to a response_url: five times within thirty minutes each, says Slack."""

    def __init__(self, session: aiohttp.ClientSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    async def say(self, response_url: str, message: Message, *, replace: bool = False) -> bool:
        """Show the message to the person; return whether Slack took it.

        `replace` puts it in the place of the message that the URL belongs to.
        """
        return await self._send(response_url, _payload(message, replace=replace), TRIES)

    async def say_once(self, response_url: str, message: Message, *, replace: bool = False) -> bool:
        """As `say`, without trying again: for what is soon replaced."""
        return await self._send(response_url, _payload(message, replace=replace), 1)

    async def take_back(self, response_url: str) -> bool:
        """Delete the message that the URL belongs to; return whether Slack did."""
        return await self._send(response_url, {"delete_original": True}, TRIES)

    async def _send(self, response_url: str, payload: dict[str, Any], tries: int) -> bool:
        if not response_url:
            return False
        for attempt in range(1, tries + 1):
            status, wait = await self._post(response_url, payload)
            if status == HTTP_OK:
                return True
            is_passing = status == HTTP_TOO_MANY or status >= HTTP_SERVER_ERROR
            # Slack's wait is kept to; when it is longer than anybody waits, there is no answer.
            if not is_passing or attempt == tries or wait > LONGEST_WAIT_SECONDS:
                break
            await self._clock.sleep(wait or 2.0 ** (attempt - 1))
        log.warning("reply.refused", status=status)
        return False

    async def _post(self, response_url: str, payload: dict[str, Any]) -> tuple[int, float]:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        try:
            async with self._session.post(
                response_url, json=payload, timeout=timeout, allow_redirects=False
            ) as response:
                wait = response.headers.get("Retry-After", "0")
                return response.status, float(wait) if wait.isdigit() else 0.0
        except (aiohttp.ClientError, OSError, ValueError):
            log.warning("reply.failed", reason=SlackUnreachable().sentence)
            return HTTP_SERVER_ERROR, 0.0


def _payload(message: Message, *, replace: bool) -> dict[str, Any]:
    return {**message.payload(), "response_type": "ephemeral", "replace_original": replace}
