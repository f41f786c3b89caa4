"""`/emailkey`: check the key and list the templates."""

import re
from functools import partial

from bot import emailkey
from bot.commands import EMAILKEY
from bot.emailkey import EmailKeyRequest, parse_emailkey
from bot.permissions import Permission
from bot.slack.messages import help as help_ui
from bot.slack.messages import ids, paging
from bot.slack.messages.message import Message
from bot.workflows import Workflows
from handlers.helping import helped
from handlers.listeners import Context, Listeners


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to the command and its pages."""

    async def answer(context: Context, command: EmailKeyRequest) -> Message:
        """Answer `/emailkey …`."""
        if command.form == "help":
            return await helped(context, workflows, partial(help_ui.of_command, EMAILKEY))
        if command.form == "check":
            return emailkey.verdicts(await workflows.emailkey.check(command.resources))
        return emailkey.templates(await workflows.emailkey.templates())

    async def turn(context: Context) -> Message:
        """Answer `Previous` and `Next`."""
        templates = await workflows.emailkey.templates(is_typed=False)
        return emailkey.templates(templates, paging.page_of(context.value))

    listeners.command(EMAILKEY, parse_emailkey, answer)
    page = re.compile(rf"{re.escape(ids.EMAILKEY_PAGE)}\.")
    listeners.action(page, Permission.READ, turn, replaces=True, name=ids.EMAILKEY_PAGE)
