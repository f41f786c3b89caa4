"""The `/emailkey` command: tests the email API key and lists the templates."""

from bot import emailkey
from bot.app import Gatehouse
from bot.commands import EMAILKEY
from bot.emailkey import EmailKeyRequest, parse_emailkey
from bot.permissions import Person
from bot.slack.messages import ids
from bot.slack.messages.block_kit import Message, Wanted
from handlers.bolt import GatehouseApp
from handlers.listening import TURN
from handlers.payloads import Payload
from handlers.sharing import with_share


def register(app: GatehouseApp) -> None:
    """Register `/emailkey` and the buttons of its template list."""
    app.command("/emailkey")(app.listening.command(EMAILKEY, parse_emailkey, answer))
    app.action(ids.row_of(ids.EMAILKEY_PAGE))(app.listening.listener(turn, TURN))


async def answer(
    bot: Gatehouse, _person: Person, typed: EmailKeyRequest, payload: Payload
) -> Message:
    """Answer the `/emailkey` command."""
    if typed.form == "check":
        result = await bot.emailkey.check(typed.resource)
        return with_share(result, f"/emailkey check {typed.resource}", payload)
    return emailkey.templates(await bot.emailkey.get("templates"))


async def turn(bot: Gatehouse, _person: Person, payload: Payload) -> Message:
    """Handle the `Previous` and `Next` buttons of the template list."""
    templates = await bot.emailkey.get("templates")
    return emailkey.templates(templates, Wanted.of(payload.value))
