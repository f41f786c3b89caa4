"""Reading a flow's list, which isn't believed if it's older than the bot's own changes."""

from collections.abc import Sequence

from bot.flows.client import FlowClient
from bot.flows.rules.flows import Flow
from bot.flows.rules.lists import Change
from bot.services.errors import ResponseUnreadable
from bot.testusers import store
from bot.testusers.parts import Parts
from bot.testusers.rules.applying import CONFIRMED, Post, is_before
from bot.testusers.rules.requests import ReadList
from bot.testusers.transitions import put_apply_job

STALE = "The list doesn't show a change that I made less than a minute ago. Try again in a minute."


async def read_list(bot: Parts, flow: Flow) -> ReadList:
    """Read a flow's list for a command.

    The bot's own changes are read first, so that they can't look like someone else's changes. If
    someone with a grant is missing from the list, the flow's apply job checks that again.

    Raises:
        ServiceError: The list can't be read, or is older than the bot's latest changes.
    """
    async with bot.database.read_only() as tx:
        grants = await store.grants_of_flow(tx, flow.key)
        at = await tx.now()
        recent, change_id = await store.recent_changes(tx, flow.key, at - CONFIRMED)
        await tx.end_with_next()
        post = await store.post_of(tx, flow.key)
    listed = await read_current(bot.flows.service(), flow, recent, post)
    if not grants.keys() <= set(listed):
        async with bot.database.transaction() as tx:
            await put_apply_job(tx, flow.key)
    return ReadList(listed, at, change_id, grants)


async def read_current(
    service: FlowClient, flow: Flow, recent: Sequence[Change], post: Post | None
) -> tuple[str, ...]:
    """Read a list, and read it once more if it's older than the bot's `recent` changes.

    Raise ResponseUnreadable if it's still outdated. `post` is the POST in doubt, if any.
    """
    for _ in range(2):
        listed = tuple(await service.read(flow.sid))
        if not is_before(recent, post, listed):
            return listed
    raise ResponseUnreadable("flow", STALE)
