"""Grants that end: who asked for one is told an hour before, with the way to extend it."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from bot.background.jobs import Lease
from bot.background.outbox import Note
from bot.model.testusers.requests import Grant
from bot.store import grants, jobs, outbox, requests
from bot.store.engine import Transaction
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.ui.testusers import notes
from bot.workflows.testusers.setup import Setup

ENDING = "testusers.ending"
BEFORE = timedelta(hours=1)
# Who is let in for a short while remembers it.
LEAST = timedelta(hours=3)


async def put_announcements(
    tx: Transaction, granted: Mapping[str, Iterable[Grant]], *, ensure: bool = False
) -> None:
    """Have the ends of these grants announced, by the request that made them."""
    for request_id, made in sorted(granted.items()):
        ends = [one.ends_at for one in made if one.ends_at and one.ends_at - one.granted_at > LEAST]
        if ends:
            job = Job(f"ending:{request_id}", ENDING, request_id, min(ends) - BEFORE)
            await (jobs.ensure(tx, job) if ensure else jobs.put(tx, job))


class Endings:
    """Announces them."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def plan(self, tx: Transaction) -> None:
        """See that there is such a job for every grant that ends later."""
        after = await tx.now() + BEFORE
        await put_announcements(tx, await grants.ending_after(tx, after), ensure=True)

    async def run(self, job: Job, _lease: Lease) -> None:
        """Run a job `ending`: tell who asked, once, unless another request is in force by now."""
        async with self._setup.database.transaction() as tx:
            if await self._ending(tx, job.subject) and not await outbox.has(tx, _key(job), ENDING):
                await outbox.put(tx, OutboxMessage(_key(job), ENDING, job.subject))

    async def message(self, outbox_message: OutboxMessage) -> Note | None:
        """The announcement, as long as it is true."""
        async with self._setup.database.read_only() as tx:
            request = await requests.load(tx, outbox_message.subject)
            ending = await self._ending(tx, outbox_message.subject)
        if request is None or not ending:
            return None
        message = notes.ending(request, [one.identity for one in ending], _first(ending))
        return Note(request.requester.slack_user_id, message)

    async def _ending(self, tx: Transaction, request_id: str) -> list[Grant]:
        """The grants of a request that end within the hour."""
        now = await tx.now()
        made = await grants.of_request(tx, request_id)
        return [one for one in made if one.ends_at and now < one.ends_at <= now + BEFORE]


def _first(ending: Iterable[Grant]) -> datetime:
    return min(one.ends_at for one in ending if one.ends_at is not None)


def _key(job: Job) -> str:
    return f"requester:{job.subject}"
