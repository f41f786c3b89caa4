"""Reading a flow's list for a command."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.flows.client import read_current
from bot.flows.rules import Flow, stored_spellings
from bot.testusers import store
from bot.testusers.parts import Parts
from bot.testusers.rules.people import Access, CurrentList
from bot.testusers.work import put_apply_job

IN_DOUBT = -1


@dataclass(frozen=True)
class ReadList:
    """A flow's list, and what was stored about it at the time `at`, just before it was read.

    `access` maps spellings to people's access. `known_id` is the ID of the flow's latest stored
    list at that time, or 0 if there was none. It's `IN_DOUBT` if a POST was in doubt, because the
    list may or may not include its change. `arriving` are the people whom that POST adds.
    """

    identities: tuple[str, ...]
    access: Mapping[str, Access]
    at: datetime
    known_id: int
    arriving: Collection[str] = ()

    @property
    def current(self) -> CurrentList:
        """The list with the ends of access, for comparing it with what is wanted."""
        return CurrentList.of(self.identities, self.access)


async def read_list(bot: Parts, flow: Flow) -> ReadList:
    """Read a flow's list for a command.

    The bot's own changes are read first, so that they can't look like someone else's changes. If
    someone with access is missing from the list, the flow's apply job checks that again.

    Raises:
        ServiceError: The list can't be read, or is older than the bot's latest changes.
    """
    async with bot.database.read_only() as tx:
        at, access, recent, post = await store.access_and_lists(tx, flow.key)
    in_doubt = post.change.identities if post else ()
    listed = await read_current(bot.flows.service(), flow, recent, in_doubt)
    if missing := access.keys() - {*listed}:
        async with bot.database.transaction() as tx:
            await put_apply_job(tx, flow)
        spellings = stored_spellings(missing, {*listed} - access.keys())
        access = {spellings.get(one, one): given for one, given in access.items()}
    if post is None:
        return ReadList(listed, access, at, recent[-1].id if recent else 0)
    arriving = post.change.spelled(post.spellings_on(listed)).additions
    return ReadList(listed, access, at, IN_DOUBT, arriving)
