"""Whatever nobody else listens to: acknowledged and explained, so that no click meets silence."""

import re

from slack_bolt.async_app import AsyncAck

from bot.ui.message import Message
from bot.workflows.desk import Desk
from handlers.entry import Ask, Frame

ANYTHING = re.compile(r".*")
OUTDATED = Message("This button is of an older version of Gatehouse and does nothing any more.")
NO_SUCH_COMMAND = Message("Gatehouse has no such command. `/gatehouse help` shows what it can do.")


def register(frame: Frame, desk: Desk) -> None:  # noqa: ARG001 - as every other is called
    """Listen to the rest; to be registered last."""

    async def outdated(_: Ask) -> Message:
        """A button or menu that is no more."""
        return OUTDATED

    async def no_such_command(_: Ask) -> Message:
        """A command that the manifest has and this version does not."""
        return NO_SUCH_COMMAND

    async def nothing(ack: AsyncAck) -> None:
        await ack()

    async def no_options(ack: AsyncAck) -> None:
        await ack(options=[])

    frame.command(ANYTHING, no_such_command, name="unknown")
    frame.action(ANYTHING, outdated, name="unknown")
    frame.app.options(ANYTHING)(no_options)
    for listen in (frame.app.view, frame.app.view_closed, frame.app.shortcut, frame.app.event):
        listen(ANYTHING)(nothing)
