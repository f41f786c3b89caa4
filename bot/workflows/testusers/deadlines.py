"""Deadlines of a pending request: one reminder, and its end."""

from datetime import datetime

from bot.model.approval import State
from bot.model.audit import BOT, AuditEntry
from bot.store import jobs, outbox, requests
from bot.store.jobs import Job
from bot.store.outbox import Letter
from bot.workflows.jobs import Lease
from bot.workflows.testusers.deciding import THE_BOT
from bot.workflows.testusers.moves import REMINDER, card_key, move
from bot.workflows.testusers.setup import Setup


class Deadlines:
    """Runs the jobs `expire:<id>` and `remind:<id>`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def expire(self, job: Job, lease: Lease) -> datetime | None:  # noqa: ARG002
        """End the request if nobody decided; a decision at the same moment wins or loses whole."""
        async with self._setup.database.transaction() as tx:
            request = await requests.load(tx, job.subject, lock=True)
            if request is None or request.state is not State.PENDING:
                return None
            now = await tx.now()
            if now < request.expires_at:
                return request.expires_at
            expired = request.moved(State.EXPIRED, THE_BOT, now, request.progress)
            entry = AuditEntry(BOT, "request.expired", request.id)
            await move(tx, self._setup.audit, request, expired, entry)
        self._setup.wake()
        return None

    async def remind(self, job: Job, lease: Lease) -> datetime | None:  # noqa: ARG002
        """Say in the thread, once, that the request still waits."""
        async with self._setup.database.transaction() as tx:
            request = await requests.load(tx, job.subject)
            if request is not None and request.state is State.PENDING:
                await outbox.put(tx, Letter(card_key(request.id), REMINDER, request.id))
                # Here and now, so that a crash before the job ends reminds no second time.
                await jobs.drop(tx, job.key)
        self._setup.wake()
        return None
