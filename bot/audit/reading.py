"""Reading the audit log: its latest entries, and the daily message with its head.

The message keeps a copy of the head outside the database.
"""

from datetime import datetime, timedelta

from bot.audit.messages import head_message
from bot.slack.sender import Note
from bot.store import jobs, outbox
from bot.store.audit import AuditStore
from bot.store.audit_entry import RecordedEntry
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage

WITNESS_KIND, HEAD = "audit_witness", "audit.head"
# Earlier versions had a job with this key that looked for edited rows.
RETIRED_JOB = "record"
A_DAY = timedelta(days=1)


class AuditReading:
    """Reads the latest audit log entries."""

    def __init__(self, database: Database, audit: AuditStore) -> None:
        self._database = database
        self._audit = audit

    async def latest(self, count: int) -> tuple[list[RecordedEntry], str]:
        """Return the latest entries, newest first, and the latest hash."""
        async with self._database.read_only() as tx:
            _, head = await self._audit.head(tx)
            return await self._audit.latest(tx, count), head


class Witness:
    """Posts the audit log's head once a day.

    Args:
        database: Stores the audit log.
        audit: The audit log.
        alerts_channel: The channel to post in.
        is_wanted: `AUDIT_WITNESS`.
    """

    def __init__(
        self, database: Database, audit: AuditStore, alerts_channel: str, *, is_wanted: bool
    ) -> None:
        self._database = database
        self._audit = audit
        self._channel = alerts_channel
        self._is_wanted = is_wanted

    async def plan(self, tx: Transaction) -> None:
        """Schedule the next post, if posts are enabled."""
        await jobs.drop(tx, RETIRED_JOB)
        if self._is_wanted:
            due_at = await tx.now() + A_DAY
            await jobs.ensure(tx, Job(WITNESS_KIND, WITNESS_KIND, WITNESS_KIND, due_at))
        else:
            await jobs.drop(tx, WITNESS_KIND)

    async def post(self, _job: Job, _lease: Lease) -> datetime:
        """Post the head; return the time of the next post."""
        async with self._database.transaction() as tx:
            position, head = await self._audit.head(tx)
            payload = {"position": position, "head": head}
            await outbox.put(tx, OutboxMessage(f"{HEAD}:{position}", HEAD, "audit", payload))
            return await tx.now() + A_DAY

    async def note(self, message: OutboxMessage) -> Note:
        """Render the stored message."""
        return Note(self._channel, head_message(**message.payload))
