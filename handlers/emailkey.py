"""`/emailkey`: does the key work, and which templates are there."""

import re

from bot.parsing.emailkey import parse_emailkey
from bot.permissions import Permission
from bot.ui import emailkey, ids, paging
from bot.ui import help as help_ui
from bot.ui.message import Message
from bot.workflows.desk import Desk
from handlers.entry import Ask, Frame


def register(frame: Frame, desk: Desk) -> None:
    """Listen to the command and its pages."""

    async def command(ask: Ask) -> Message:
        """`/emailkey …`."""
        wish = parse_emailkey(ask.text)
        if wish.kind == "help":
            return help_ui.of_command("/emailkey", lambda one: desk.people.may(ask.person, one))
        await desk.people.admit(ask.person, Permission.READ)
        if wish.kind == "check":
            return emailkey.verdict(await desk.emailkey.check(wish.resource))
        return emailkey.templates(await desk.emailkey.templates())

    async def turn(ask: Ask) -> Message:
        """`Previous` and `Next`."""
        await desk.people.admit(ask.person, Permission.READ)
        return emailkey.templates(await desk.emailkey.templates(), paging.page_of(ask.value))

    frame.command("/emailkey", command)
    frame.action(re.compile(rf"{re.escape(ids.EMAILKEY_PAGE)}\."), turn, replaces=True)
