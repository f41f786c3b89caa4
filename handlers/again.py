"""Buttons that run a command: a suggested correction, or the same again."""

import re
from dataclasses import replace

from bot.errors import NotFound
from bot.slack.messages import ids
from bot.slack.messages.message import Message
from bot.workflows import Workflows
from handlers.listeners import Context, Listeners

GONE = "This button is from an older version of Gatehouse and no longer works."


def register(listeners: Listeners, workflows: Workflows) -> None:  # noqa: ARG001 - as every other is called
    """Listen to the buttons; each command requires its own permission."""

    async def run(context: Context) -> Message | None:
        """Run the command in the button's value."""
        name, _, text = context.value.partition(" ")
        answer = listeners.commands.get(name)
        if answer is None:
            raise NotFound(GONE)
        typed = replace(context.interaction, name=name, text=text)
        return await answer(replace(context, interaction=typed))

    pattern = re.compile(rf"{re.escape(ids.RUN_COMMAND)}\.")
    listeners.action(pattern, None, run, replaces=True, name=ids.RUN_COMMAND)
