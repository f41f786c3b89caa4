"""`/emailkey`: does the key work, and which templates are there."""

import re
from functools import partial

from bot.commands import EMAILKEY
from bot.parsing.emailkey import EmailKeyRequest, parse_emailkey
from bot.permissions import Permission
from bot.ui import emailkey, ids, paging
from bot.ui import help as help_ui
from bot.ui.message import Message
from bot.workflows.workflows import Workflows
from handlers.helping import helped
from handlers.listeners import Context, Listeners


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to the command and its pages."""

    async def answer(context: Context, command: EmailKeyRequest) -> Message:
        """`/emailkey …`."""
        if command.form == "help":
            return await helped(context, workflows, partial(help_ui.of_command, EMAILKEY))
        if command.form == "check":
            return emailkey.verdict(await workflows.emailkey.check(command.resource))
        return emailkey.templates(await workflows.emailkey.templates())

    async def turn(context: Context) -> Message:
        """`Previous` and `Next`."""
        templates = await workflows.emailkey.templates(is_typed=False)
        return emailkey.templates(templates, paging.page_of(context.value))

    listeners.command(EMAILKEY, parse_emailkey, answer)
    page = re.compile(rf"{re.escape(ids.EMAILKEY_PAGE)}\.")
    listeners.action(page, Permission.READ, turn, replaces=True, name=ids.EMAILKEY_PAGE)
