"""What every command says alike: errors, usage, and that it is working."""

from bot.errors import Ambiguous, GatehouseError, UsageError
from bot.ui import blocks, text
from bot.ui.message import TEXT_CHARACTERS, Message

WORKING = Message("Working on it …")
# For where Slack lets nobody replace it.
WORKING_BELOW = Message("Working on it: the answer will stand below.")
NOTED = Message(
    "Your click is noted, but the database cannot be reached. It is followed as soon as it can be;"
    " you need not press again."
)
TO_ASK_AGAIN = "To ask again, type:"
FILL_IN_AGAIN = (
    "What you filled in cannot be shown here so that it could be typed: to ask again, please fill"
    " in the form once more."
)
COMMAND_CHARACTERS = 2900
NOTHING_MORE = "If this stays, tell the operator of Gatehouse."


def sorry(error: GatehouseError) -> Message:
    """Say an expected error: first what is wrong, then what to do."""
    markup = text.sentence(error.sentence, 1500)
    if isinstance(error, UsageError):
        markup += f"\nUsage: {text.code(error.usage)}\nExample: {text.code(error.example)}"
    if isinstance(error, Ambiguous):
        markup += "\n" + text.bullets([text.escape(one) for one in error.candidates])
    return Message(text.cut(markup, 3000), (blocks.section(markup),))


def with_command(message: Message, command: str) -> Message:
    """Add what to type for the same, where a form is lost; "" where nothing typed says the same."""
    shown = message.slack_blocks or (blocks.section(message.text),)
    typed = text.exact(command, COMMAND_CHARACTERS)
    # In a section of its own nothing is cut off it, and all of it is quickly copied.
    lines = (TO_ASK_AGAIN, typed) if typed else (FILL_IN_AGAIN,)
    fallback = text.cut("\n".join((message.text, *lines)), TEXT_CHARACTERS)
    return Message(fallback, (*shown, *(blocks.section(line) for line in lines)))


def choice(several: Ambiguous, action_id: str) -> Message:
    """Say that several fit, with a menu that does for the chosen one what was asked for."""
    told = sorry(several)
    options = [(label, value) for value, label in several.choices.items()]
    menu = blocks.select("Choose one …", action_id, options)
    return Message(told.text, (*told.slack_blocks, blocks.actions(menu)))


def broken(reference: str) -> Message:
    """Say an error that nobody expected; the reference finds it in the log."""
    return Message(f"Something went wrong on our side. {NOTHING_MORE} Reference: `{reference}`")


def with_retry(message: Message, action_id: str, value: str) -> Message:
    """Add a button that does again what was clicked."""
    shown = message.slack_blocks or (blocks.section(message.text),)
    button = blocks.button("Try again", action_id, value)
    return Message(message.text, (*shown, blocks.actions(button)))
