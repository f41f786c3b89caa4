"""The `/gatehouse` command: help, a person's roles, the status, and the audit log."""

from functools import partial

from bot.app import Gatehouse
from bot.audit import messages as audit
from bot.audit.reading import latest
from bot.checks import messages as checks
from bot.commands import GATEHOUSE
from bot.gatehouse import GatehouseRequest, parse_gatehouse, whoami
from bot.permissions import Permission, Person
from bot.slack.messages.block_kit import Message
from bot.testusers.reading import count_endless
from handlers.bolt import GatehouseApp
from handlers.payloads import Payload
from handlers.sharing import with_share


def register(app: GatehouseApp) -> None:
    """Register `/gatehouse`."""
    app.command("/gatehouse")(app.listening.command(GATEHOUSE, parse_gatehouse, answer))


async def answer(
    bot: Gatehouse, person: Person, typed: GatehouseRequest, payload: Payload
) -> Message:
    """Answer the `/gatehouse` command."""
    if typed.form == "whoami":
        without_access = await bot.slack.people.lacks_access(person)
        return whoami(person, partial(bot.slack.people.may, person), without_access)
    if typed.form == "status":
        is_admin = bot.slack.people.may(person, Permission.READ_AUDIT)
        status = checks.status(await bot.health.status(), is_for_admin=is_admin)
        status = status.plus(lines=await count_endless(bot.testusers))
        return with_share(status, "/gatehouse status", payload)
    entries, head = await latest(bot.database, typed.count)
    people = await bot.slack.people.names({entry.actor for entry in entries})
    return audit.audit(entries, head, {**people, **bot.testusers.flows.names})
