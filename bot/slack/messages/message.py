"""A message for Slack: fallback text and Block Kit blocks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bot.slack.messages.text import cut

SlackBlock = Mapping[str, Any]

# docs.slack.dev, Block Kit reference.
BLOCKS_A_MESSAGE = 50
# Slack advises at most 4,000 and refuses chat.update above it: msg_too_long.
TEXT_CHARACTERS = 3900
# Slack refuses messages of about 12,000 characters in all.
MESSAGE_CHARACTERS = 11_000


@dataclass(frozen=True)
class Message:
    """A message for Slack.

    Attributes:
        text: The fallback for notifications and screen readers, in escaped Slack markup. It is
            never empty, and is shortened to Slack's limit when sent.
        slack_blocks: Block Kit; may be empty.
    """

    text: str
    slack_blocks: Sequence[SlackBlock] = field(default_factory=tuple)

    def payload(self) -> dict[str, Any]:
        """Return the message as the Web API and response_url expect it."""
        blocks = [dict(block) for block in self.slack_blocks[:BLOCKS_A_MESSAGE]]
        fields: dict[str, Any] = {"text": cut(self.text, TEXT_CHARACTERS) or "…"}
        return {**fields, "blocks": blocks} if blocks else fields

    @cached_property
    def json(self) -> str:
        """Return the payload as JSON, cached: many people may get the same page of a list."""
        return json.dumps(self.payload())
