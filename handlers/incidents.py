"""The buttons of an alert: `Check now` and `Mute 1 h`."""

from bot.errors import NotFound
from bot.permissions import Permission
from bot.ui import ids, incidents, ratelimit_detail
from bot.ui.message import Message
from bot.workflows.desk import Desk
from handlers.entry import Ask, Frame


def register(frame: Frame, desk: Desk) -> None:
    """Listen to both; the answers are only seen by who clicks."""

    async def check(ask: Ask) -> Message:
        """`Check now`: from memory while the organization is blocked, else one call."""
        await desk.people.admit(ask.person, Permission.REFRESH)
        key = await desk.alerts.key_of(_id(ask))
        return ratelimit_detail.checked(await desk.ratelimits.check_at(ask.person, key))

    async def mute(ask: Ask) -> Message:
        """`Mute 1 h`."""
        await desk.people.admit(ask.person, Permission.REFRESH)
        name, until = await desk.alerts.mute(ask.person, _id(ask))
        return incidents.muted(name, until)

    frame.action(ids.INCIDENT_CHECK, check)
    frame.action(ids.INCIDENT_MUTE, mute)


def _id(ask: Ask) -> int:
    if not (ask.value.isascii() and ask.value.isdigit() and len(ask.value) < len("1" * 19)):
        raise NotFound("That alert is not known any more.")
    return int(ask.value)
