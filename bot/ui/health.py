"""What is broken in the bot's own surroundings, as the alerts channel reads it."""

from datetime import datetime

from bot.model.health import NAMES, Part
from bot.ui import block_kit, text
from bot.ui.message import Message


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
