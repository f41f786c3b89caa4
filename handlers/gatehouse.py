"""`/gatehouse`: help, your roles, the status, and the audit."""

from functools import partial

from bot.audit import messages as audit
from bot.checks.messages import status as gatehouse
from bot.checks.parse import GatehouseRequest, parse_gatehouse
from bot.commands import GATEHOUSE
from bot.slack.messages import help as help_ui
from bot.slack.messages.message import Message
from bot.workflows import Workflows
from handlers.helping import helped
from handlers.listeners import Context, Listeners


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to the command."""

    async def answer(context: Context, command: GatehouseRequest) -> Message:
        """Answer `/gatehouse …`."""
        match command.form:
            case "help":
                return await helped(context, workflows, help_ui.of_all)
            case "whoami":
                without_access = await workflows.people.lacks_access(context.person)
                may = partial(workflows.people.may, context.person)
                return gatehouse.whoami(context.person, may, without_access)
            case "status":
                return gatehouse.status(await workflows.status.status())
            case "audit":
                entries, head = await workflows.audit.latest(command.count)
                people = await workflows.people.names(audit.people_in(entries))
                names = audit.Names(people, workflows.testusers.reading.flow_names)
                return audit.audit(entries, head, names)

    listeners.command(GATEHOUSE, parse_gatehouse, answer)
