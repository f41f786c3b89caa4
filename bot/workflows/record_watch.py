"""The record: what decides and was edited is told of, and the audit's head is shown to people."""

from datetime import datetime, timedelta

import structlog

from bot.background.jobs import Lease
from bot.background.outbox import Note
from bot.model.audit import BOT, AuditEntry
from bot.model.testusers.requests import Request
from bot.store import jobs, outbox, requests, seals
from bot.store.audit import AuditStore
from bot.store.engine import Database, Transaction
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.store.seals import EditedRow
from bot.ui import record
from bot.workflows.testusers.transitions import is_allowed, write_card

log = structlog.get_logger(__name__)

RECORD_KIND, WITNESS_KIND = "record", "audit_witness"
EDITED, HEAD = "record.edited", "audit.head"
EVERY = timedelta(seconds=10)
A_DAY = timedelta(days=1)


class RecordWatch:
    """Runs the jobs `record` and `audit_witness`.

    Args:
        database: Where the record stands.
        audit: The chain.
        alerts_channel: Where people are told.
        is_witnessed: Whether the head is posted once a day.
    """

    def __init__(
        self, database: Database, audit: AuditStore, alerts_channel: str, *, is_witnessed: bool
    ) -> None:
        self._database = database
        self._audit = audit
        self._channel = alerts_channel
        self._is_witnessed = is_witnessed

    async def plan(self, tx: Transaction) -> None:
        """See that there are such jobs, as far as they are wanted."""
        now = await tx.now()
        if tx.seal.is_set:
            await jobs.put(tx, Job(RECORD_KIND, RECORD_KIND, RECORD_KIND, now))
        else:
            await jobs.drop(tx, RECORD_KIND)
        if self._is_witnessed:
            await jobs.ensure(tx, Job(WITNESS_KIND, WITNESS_KIND, WITNESS_KIND, now + A_DAY))
        else:
            await jobs.drop(tx, WITNESS_KIND)

    async def look(self, _job: Job, _lease: Lease) -> datetime:
        """Tell of what was edited since the last look; return when to look again."""
        async with self._database.read_only() as tx:
            rows = await seals.edited(tx, all_requests=False)
            rows += [_unapproved(one) for one in await self._unapproved(tx)]
            now = await tx.now()
        for row in rows:
            await self.tell(row)
        return now + EVERY

    async def tell_of_job(self, job: Job) -> None:
        """Tell of a job that somebody else put or edited, and take it away."""
        await self.tell(EditedRow("job", job.key, str(job.generation)))
        async with self._database.transaction() as tx:
            await jobs.drop(tx, job.key)

    async def tell(self, row: EditedRow) -> None:
        """Put an edited row on record, and have it told, once."""
        key = f"edited:{row.noun}:{row.name}"[:220] + f":{row.mark}"
        async with self._database.transaction() as tx:
            if await outbox.has(tx, key, EDITED):
                return
            log.error("record.edited", noun=row.noun, name=row.name)
            await self._audit.append(tx, AuditEntry(BOT, EDITED, row.name, {"row": row.noun}))
            payload = {"noun": row.noun, "name": row.name}
            await outbox.put(tx, OutboxMessage(key, EDITED, row.name, payload))
            if row.noun == "request":
                await write_card(tx, row.name)

    async def witness(self, _job: Job, _lease: Lease) -> datetime:
        """Post the head of the audit; return when to do so again."""
        async with self._database.transaction() as tx:
            position, head = await self._audit.head(tx)
            payload = {"position": position, "head": head}
            await outbox.put(tx, OutboxMessage(f"{HEAD}:{position}", HEAD, "audit", payload))
            return await tx.now() + A_DAY

    async def edited_note(self, message: OutboxMessage) -> Note:
        """The alert of an edited row."""
        return Note(self._channel, record.edited(**message.payload))

    async def head_note(self, message: OutboxMessage) -> Note:
        """The head of the audit, for people to compare later."""
        return Note(self._channel, record.head(**message.payload))

    async def _unapproved(self, tx: Transaction) -> list[Request]:
        if not tx.seal.is_set:
            return []
        under_way = await requests.all_applying(tx)
        return [one for one in under_way if not await is_allowed(self._audit, tx, one)]


def _unapproved(request: Request) -> EditedRow:
    return EditedRow("request", request.id, "unapproved")
