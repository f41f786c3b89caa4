"""A fallback for all other interactions: acknowledges and explains them."""

import re

from slack_bolt.async_app import AsyncAck

from bot.slack.messages.message import Message
from bot.workflows import Workflows
from handlers.listeners import Context, Listeners

ANYTHING = re.compile(r".*")
OUTDATED = Message("This button is from an older version of Gatehouse and no longer works.")
NO_SUCH_COMMAND = Message("Unknown command. Try `/gatehouse help`.")


def register(listeners: Listeners, workflows: Workflows) -> None:  # noqa: ARG001 - as every other is called
    """Listen to everything else; to be registered last."""

    async def outdated(_: Context) -> Message:
        """Answer a button or menu that no longer exists."""
        return OUTDATED

    async def no_such_command(_: Context) -> Message:
        """Answer a command in the manifest that this version doesn't have."""
        return NO_SUCH_COMMAND

    async def nothing(ack: AsyncAck) -> None:
        await ack()

    async def no_options(ack: AsyncAck) -> None:
        await ack(options=[])

    listeners.other_commands(ANYTHING, no_such_command, name="unknown")
    listeners.action(ANYTHING, None, outdated, name="unknown")
    listeners.app.options(ANYTHING)(no_options)
    for listen in (
        listeners.app.view,
        listeners.app.view_closed,
        listeners.app.shortcut,
        listeners.app.event,
    ):
        listen(ANYTHING)(nothing)
