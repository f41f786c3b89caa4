"""The buttons of an alert: `Check now`, `Mute 1 h` and `Unmute`."""

from bot.errors import NotFound
from bot.permissions import Permission
from bot.quotas.messages import incidents, ratelimit_detail
from bot.slack.messages import ids
from bot.slack.messages.message import Message
from bot.workflows import Workflows
from handlers.listeners import Context, Listeners


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to the buttons; only the person who clicks sees the answer."""

    async def check(context: Context) -> Message:
        """Answer `Check now`: from memory while the organization is blocked, else one call."""
        key = await workflows.alerts.key_of(_id(context))
        return ratelimit_detail.checked(await workflows.ratelimits.check_at(context.person, key))

    async def mute(context: Context) -> Message:
        """Answer `Mute 1 h`."""
        name, until = await workflows.alerts.mute(context.person, _id(context))
        return incidents.muted(name, until)

    async def unmute(context: Context) -> Message:
        """Answer `Unmute`."""
        return incidents.unmuted(await workflows.alerts.unmute(context.person, _id(context)))

    listeners.action(ids.INCIDENT_CHECK, Permission.REFRESH, check)
    listeners.action(ids.INCIDENT_MUTE, Permission.REFRESH, mute)
    listeners.action(ids.INCIDENT_UNMUTE, Permission.REFRESH, unmute)


def _id(context: Context) -> int:
    if not (
        context.value.isascii() and context.value.isdigit() and len(context.value) < len("1" * 19)
    ):
        raise NotFound("That alert no longer exists.")
    return int(context.value)
