"""`/gatehouse`: help, who you are, whether everything works, and the audit."""

from bot.parsing.gatehouse import parse_gatehouse
from bot.permissions import Permission
from bot.ui import gatehouse
from bot.ui import help as help_ui
from bot.ui.message import Message
from bot.workflows.desk import Desk
from handlers.entry import Ask, Frame


def register(frame: Frame, desk: Desk) -> None:
    """Listen to the command."""

    async def command(ask: Ask) -> Message:
        """`/gatehouse …`."""
        wish = parse_gatehouse(ask.text)
        match wish.kind:
            case "help":
                return help_ui.of_all(lambda one: desk.people.may(ask.person, one))
            case "whoami":
                return gatehouse.whoami(ask.person, lambda one: desk.people.may(ask.person, one))
            case "status":
                await desk.people.admit(ask.person, Permission.READ)
                return gatehouse.status(await desk.status.status())
            case "audit":
                await desk.people.admit(ask.person, Permission.READ_AUDIT)
                entries, head = await desk.audit.latest(wish.count)
                names = await desk.people.names({entry.actor for entry in entries})
                return gatehouse.audit(entries, head, names)

    frame.command("/gatehouse", command)
