"""The buttons of an alert: `Check now`, `Mute 1 h` and `Unmute`."""

from bot.errors import NotFound
from bot.permissions import Permission
from bot.quotas.messages import incidents, ratelimit_detail
from bot.slack.messages import ids
from bot.slack.messages.message import Message
from handlers.interactions import Context
from handlers.listeners import listens


@listens("action", ids.INCIDENT_CHECK, Permission.REFRESH)
async def check(context: Context) -> Message:
    """Answer `Check now` with one call, or from stored data while the organization is blocked."""
    key = await context.bot.alerts.key_of(_id(context))
    return ratelimit_detail.checked(await context.bot.ratelimits.check_at(context.person, key))


@listens("action", ids.INCIDENT_MUTE, Permission.REFRESH)
async def mute(context: Context) -> Message:
    """Handle a click on `Mute 1 h`."""
    name, until = await context.bot.alerts.mute(context.person, _id(context))
    return incidents.muted(name, until)


@listens("action", ids.INCIDENT_UNMUTE, Permission.REFRESH)
async def unmute(context: Context) -> Message:
    """Answer `Unmute`."""
    return incidents.unmuted(await context.bot.alerts.unmute(context.person, _id(context)))


def _id(context: Context) -> int:
    if not (
        context.value.isascii() and context.value.isdigit() and len(context.value) < len("1" * 19)
    ):
        raise NotFound("That alert no longer exists.")
    return int(context.value)
