"""Help: what the asker can type, or one sentence for somebody who has no role."""

from collections.abc import Callable

from bot.permissions import Permission
from bot.ui import replies
from bot.ui.message import Message
from bot.workflows.workflows import Workflows
from handlers.listeners import Context

May = Callable[[Permission], bool]


async def helped(context: Context, workflows: Workflows, show: Callable[[May], Message]) -> Message:
    """Return what `show` makes of what the asker can do."""
    without_access = await workflows.people.lacks_access(context.person)
    if without_access:
        return replies.said(without_access)
    return show(lambda permission: workflows.people.may(context.person, permission))
