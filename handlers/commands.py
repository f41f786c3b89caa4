"""Buttons that run a command, and interactions without another listener."""

from dataclasses import replace

from bot.errors import NotFound
from bot.slack.messages import ids
from bot.slack.messages.message import Message
from handlers.interactions import Context
from handlers.listeners import ANYTHING, LISTENERS, Place, listens

OUTDATED = "This button is from an older version of Gatehouse and no longer works."


@listens("action", ids.RUN_COMMAND, None, place=Place.CLICKED, is_prefix=True)
async def run_command(context: Context) -> Message | None:
    """Run the command in the button's value; each command requires its own permission."""
    name, _, text = context.value.partition(" ")
    command = LISTENERS.get(("command", name))
    if command is None:
        raise NotFound(OUTDATED)
    typed = replace(context.interaction, name=name, text=text)
    answer: Message | None = await command.answer(replace(context, interaction=typed))
    return answer


@listens("action", ANYTHING, None)
async def outdated(_: Context) -> Message:
    """Answer a button or menu that no longer exists."""
    return Message(OUTDATED)


@listens("command", ANYTHING, None, place=Place.NEW)
async def no_such_command(_: Context) -> Message:
    """Answer a command in the manifest that this version doesn't have."""
    return Message("Unknown command. Try `/gatehouse help`.")
