"""Posting to Slack: in plain text rather than not at all."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from bot.errors import SlackRefused
from bot.ui.message import Message

log = structlog.get_logger(__name__)

T = TypeVar("T")

# Names by which Slack says that the blocks, not the place, are what is wrong.
BAD_BLOCKS = frozenset(
    {
        *("invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"),
        *("only_one_table_allowed", "invalid_attachments"),
    }
)


async def in_plain_if_need_be(message: Message, send: Callable[[Message], Awaitable[T]]) -> T:
    """Send; when Slack refuses the blocks, send the text alone rather than nothing.

    Raises:
        SlackError: Slack takes neither.
    """
    try:
        return await send(message)
    except SlackRefused as error:
        if error.error not in BAD_BLOCKS or not message.slack_blocks:
            raise
        log.warning("slack.bad_blocks", error=error.sentence)
        return await send(Message(message.text))
