"""The `/emailkey` command: tests the email API key and lists the templates."""

from bot import emailkey
from bot.commands import EMAILKEY
from bot.emailkey import EmailKeyRequest, parse_emailkey
from bot.permissions import Permission
from bot.slack.messages import block_kit, ids
from bot.slack.messages.block_kit import Message
from handlers.listeners import Context, Place, command, listens


@command(EMAILKEY, lambda context: parse_emailkey(context.text))
async def answer_emailkey(context: Context, typed: EmailKeyRequest) -> Message:
    """Answer the `/emailkey` command."""
    if typed.form == "check":
        return emailkey.verdicts(await context.bot.emailkey.check(typed.resources))
    return emailkey.templates(await context.bot.emailkey.templates())


@listens("action", ids.EMAILKEY_PAGE, Permission.READ, place=Place.CLICKED)
async def turn(context: Context) -> Message:
    """Handle the `Previous` and `Next` buttons of the template list."""
    templates = await context.bot.emailkey.templates()
    return emailkey.templates(templates, block_kit.page_of(context.value))
