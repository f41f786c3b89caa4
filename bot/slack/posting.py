"""Posting to Slack with fallbacks: without charts and tables, then as plain text."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import structlog

from bot.errors import SlackRefused
from bot.slack.messages.block_kit import section
from bot.slack.messages.message import Message, SlackBlock
from bot.slack.messages.text import escape

log = structlog.get_logger(__name__)

T = TypeVar("T")

# Slack's error names for unacceptable blocks.
BAD_BLOCKS = frozenset(
    {
        *("invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"),
        *("only_one_table_allowed", "invalid_attachments"),
    }
)


# New kinds of blocks that Slack may not accept everywhere yet.
CHART, TABLES = "data_visualization", frozenset({"table", "data_table"})


async def in_plain_if_need_be(message: Message, send: Callable[[Message], Awaitable[T]]) -> T:
    """Send the message; if Slack refuses its blocks, send simpler versions.

    The second version has no charts and tables, the last only the text.

    Raises:
        SlackError: Slack accepts none of them.
    """
    try:
        return await send(message)
    except SlackRefused as error:
        _require_bad_blocks(error, message)
    kinds = {block["type"] for block in message.slack_blocks}
    if not kinds.isdisjoint({CHART, *TABLES}):
        shown = [
            _as_text(block) if block["type"] in TABLES else block
            for block in message.slack_blocks
            if block["type"] != CHART
        ]
        try:
            return await send(Message(message.text, shown))
        except SlackRefused as error:
            _require_bad_blocks(error, message)
    return await send(Message(message.text))


def _require_bad_blocks(error: SlackRefused, message: Message) -> None:
    if error.error not in BAD_BLOCKS or not message.slack_blocks:
        raise error
    log.warning("slack.bad_blocks", error=error.sentence)


def _as_text(table: SlackBlock) -> SlackBlock:
    lines = [" · ".join(filter(None, map(_cell, row))) for row in table["rows"]]
    return section("\n".join(lines))


def _cell(cell: Mapping[str, Any]) -> str:
    return escape(str(cell.get("text", cell.get("value", ""))), 100)
