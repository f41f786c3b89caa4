"""Help: the person's commands, or one sentence for people without a role."""

from collections.abc import Callable

from bot.permissions import Permission
from bot.slack.messages import replies
from bot.slack.messages.message import Message
from bot.workflows import Workflows
from handlers.listeners import Context

May = Callable[[Permission], bool]


async def helped(context: Context, workflows: Workflows, show: Callable[[May], Message]) -> Message:
    """Return `show` applied to the person's permissions."""
    without_access = await workflows.people.lacks_access(context.person)
    if without_access:
        return replies.said(without_access)
    return show(lambda permission: workflows.people.may(context.person, permission))
