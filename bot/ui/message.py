"""A message for Slack: a text that says it all, and Block Kit blocks that say it well."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from bot.dataclass import dataclass
from bot.ui.text import cut

SlackBlock = Mapping[str, Any]

# docs.slack.dev, Block Kit reference.
BLOCKS_A_MESSAGE = 50
# Slack advises at most 4,000 and refuses chat.update above it: msg_too_long.
TEXT_CHARACTERS = 3900
# Slack refuses messages of about 12,000 characters in all.
MESSAGE_CHARACTERS = 11_000


@dataclass(frozen=True)
class Message:
    """What Slack shows.

    Attributes:
        text: The fallback, in Slack's markup, already escaped: notifications and screen readers
            use it. Never empty; as much of it is sent as Slack takes.
        slack_blocks: Block Kit; may be empty.
    """

    text: str
    slack_blocks: Sequence[SlackBlock] = field(default_factory=tuple)

    def payload(self) -> dict[str, Any]:
        """Return it as the Web API and response_url take it."""
        blocks = [dict(one) for one in self.slack_blocks[:BLOCKS_A_MESSAGE]]
        fields: dict[str, Any] = {"text": cut(self.text, TEXT_CHARACTERS) or "…"}
        return {**fields, "blocks": blocks} if blocks else fields

    @cached_property
    def json(self) -> str:
        """The payload as JSON, written once: many people may get the same page of a list."""
        return json.dumps(self.payload())
