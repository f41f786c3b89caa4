"""What every command says alike: errors, usage, and that it is working."""

from bot.errors import Ambiguous, GatehouseError, UsageError
from bot.ui import blocks, text
from bot.ui.message import Message

WORKING = Message("Working on it …")
# For where Slack lets nobody replace it.
WORKING_BELOW = Message("Working on it: the answer will stand below.")
NOTED = Message(
    "Your click is noted, but the database cannot be reached. It is followed as soon as it can be;"
    " you need not press again."
)
NOTHING_MORE = "If this stays, tell the operator of Gatehouse."


def sorry(error: GatehouseError) -> Message:
    """Say an expected error: first what is wrong, then what to do, then the notes added to it."""
    markup = text.escape(error.sentence, 1500)
    if isinstance(error, UsageError):
        markup += f"\nUsage: {text.code(error.usage)}\nExample: {text.code(error.example)}"
    if isinstance(error, Ambiguous):
        markup += "\n" + text.bullets([text.escape(one) for one in error.candidates])
    for note in getattr(error, "__notes__", ()):
        markup += f"\n{text.escape(note, 1000)}"
    return Message(text.cut(markup, 3000), (blocks.section(markup),))


def broken(reference: str) -> Message:
    """Say an error that nobody expected; the reference finds it in the log."""
    return Message(f"Something went wrong on our side. {NOTHING_MORE} Reference: `{reference}`")


def with_retry(message: Message, action_id: str, value: str) -> Message:
    """Add a button that does again what was clicked."""
    shown = message.slack_blocks or (blocks.section(message.text),)
    button = blocks.button("Try again", action_id, value)
    return Message(message.text, (*shown, blocks.actions(button)))
