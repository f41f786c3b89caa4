"""Reading a flow's list, which isn't believed if it's older than the bot's own changes."""

from collections.abc import Collection, Sequence

from bot.flows.client import FlowClient
from bot.flows.rules.flows import Flow
from bot.flows.rules.lists import FlowList, is_before
from bot.services.errors import ResponseUnreadable

STALE = "The list doesn't show a change that I made less than a minute ago. Try again in a minute."


async def read_current(
    service: FlowClient, flow: Flow, recent: Sequence[FlowList], in_doubt: Collection[str]
) -> tuple[str, ...]:
    """Read a list, and read it once more if it's older than the bot's changes in `recent`.

    Raise ResponseUnreadable if it's still outdated. `in_doubt` are the people in a POST in doubt.
    """
    for _ in range(2):
        listed = tuple(await service.read(flow.sid))
        if not is_before(recent, in_doubt, listed):
            return listed
    raise ResponseUnreadable("flow", STALE)
