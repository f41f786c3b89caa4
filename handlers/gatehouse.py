"""`/gatehouse`: help, your roles, the status, and the audit log."""

from functools import partial

from bot.audit import messages as audit
from bot.audit.reading import latest
from bot.checks import messages as gatehouse
from bot.checks.parse import GatehouseRequest, parse_gatehouse
from bot.commands import GATEHOUSE
from bot.slack.messages import help as help_ui
from bot.slack.messages.block_kit import Message
from handlers.listeners import Context, command, helped


@command(GATEHOUSE, lambda context: parse_gatehouse(context.text))
async def answer_gatehouse(context: Context, typed: GatehouseRequest) -> Message:
    """Answer `/gatehouse …`."""
    bot, person = context.bot, context.person
    match typed.form:
        case "help":
            return await helped(context, help_ui.of_all)
        case "whoami":
            without_access = await bot.people.lacks_access(person)
            return gatehouse.whoami(person, partial(bot.people.may, person), without_access)
        case "status":
            return gatehouse.status(await bot.health.status())
        case "audit":
            entries, head = await latest(bot.database, typed.count)
            people = await bot.people.names(audit.people_in(entries))
            names = audit.Names(people, bot.flows.names)
            return audit.audit(entries, head, names)
