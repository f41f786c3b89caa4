"""Alerts about the bot's own surroundings, for the alerts channel."""

from datetime import datetime

from bot.checks.rules.health import NAMES, Part
from bot.slack.messages import block_kit, text
from bot.slack.messages.message import Message


def alert(part: Part, sentence: str, opened_at: datetime, ended_at: datetime | None) -> Message:
    """One trouble: open, or over since `ended_at`."""
    name = NAMES[part]
    reason = text.escape(sentence, 500)
    if ended_at is None:
        headline = f":warning: *Needs attention: {name}.* {reason}"
        small = f"Since {text.time(opened_at)}. `/gatehouse status` says more."
    else:
        headline = f":white_check_mark: *Working again: {name}.* It was: {reason}"
        small = f"From {text.time(opened_at)} to {text.time(ended_at)}."
    return Message(f"{headline}\n{small}", (block_kit.section(headline), block_kit.context(small)))
