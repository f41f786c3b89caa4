"""The `/gatehouse` command: help, a person's roles, the status, and the audit log."""

from functools import partial

from bot.audit import messages as audit
from bot.audit.reading import latest
from bot.checks import messages as gatehouse
from bot.checks.parse import GatehouseRequest, parse_gatehouse
from bot.commands import GATEHOUSE
from bot.permissions import Permission
from bot.slack.messages.block_kit import Message
from handlers.listeners import Context, command


@command(GATEHOUSE, lambda context: parse_gatehouse(context.text))
async def answer_gatehouse(context: Context, typed: GatehouseRequest) -> Message:
    """Answer `/gatehouse whoami`, `status` and `audit`."""
    bot, person = context.bot, context.person
    if typed.form == "whoami":
        without_access = await bot.people.lacks_access(person)
        return gatehouse.whoami(person, partial(bot.people.may, person), without_access)
    if typed.form == "status":
        is_admin = bot.people.may(person, Permission.READ_AUDIT)
        return gatehouse.status(await bot.health.status(), is_for_admin=is_admin)
    entries, head = await latest(bot.database, typed.count)
    people = await bot.people.names(audit.people_in(entries))
    return audit.audit(entries, head, audit.Names(people, bot.flows.names))
