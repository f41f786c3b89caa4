"""Deadlines of a request: one reminder, its end, and the start of what is approved for later."""

from dataclasses import replace
from datetime import datetime

from bot.background.jobs import Lease
from bot.model.audit import BOT, AuditEntry
from bot.model.testusers.approval import State
from bot.store import jobs, outbox, requests
from bot.store.engine import Transaction
from bot.store.jobs import Job
from bot.workflows.testusers.deciding import THE_BOT
from bot.workflows.testusers.setup import Setup
from bot.workflows.testusers.transitions import (
    ESCALATION,
    REMINDER,
    apply_transition,
    card_key,
    tell_requester,
    write_in_thread,
)


class Deadlines:
    """Runs the jobs of a request: `expire`, `remind`, `escalate`, `unposted` and `start`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def expire(self, job: Job, lease: Lease) -> datetime | None:  # noqa: ARG002
        """End the request if nobody decided; a decision at the same moment wins or loses whole."""
        async with self._setup.database.transaction() as tx:
            request = await requests.load(tx, job.subject, lock=True)
            if not request or not request.is_genuine or request.state is not State.PENDING:
                return None
            now = await tx.now()
            if now < request.expires_at:
                return request.expires_at
            expired = request.moved(State.EXPIRED, THE_BOT, now, request.progress)
            entry = AuditEntry(BOT, "request.expired", request.id)
            await apply_transition(tx, self._setup.audit, request, expired, entry)
        return None

    async def unposted(self, job: Job, lease: Lease) -> datetime | None:
        """Tell the requester, once, that nobody could be asked yet."""
        async with self._setup.database.transaction() as tx:
            request = await requests.load(tx, job.subject)
            is_pending = request is not None and request.state is State.PENDING
            if request and is_pending and await outbox.sent_card(tx, card_key(request.id)) is None:
                await tell_requester(tx, request, "unposted")
                await _never_again(tx, job, lease)
        return None

    async def start(self, job: Job, lease: Lease) -> datetime | None:  # noqa: ARG002
        """Have a change that was approved for later applied; a cancel before it wins."""
        async with self._setup.database.transaction() as tx:
            request = await requests.load(tx, job.subject, lock=True)
            if not request or not request.is_genuine or request.state is not State.SCHEDULED:
                return None
            starts_at = request.requested.starts_at or request.created_at
            if await tx.now() < starts_at:
                return starts_at
            started = replace(request, state=State.APPLYING)
            entry = AuditEntry(BOT, "request.started", request.id, {"flow": request.flow.sid})
            await apply_transition(tx, self._setup.audit, request, started, entry)
        return None

    async def escalate(self, job: Job, lease: Lease) -> datetime | None:
        """Say in the thread, once, to those whom the flow's policy names, that it still waits."""
        async with self._setup.database.transaction() as tx:
            request = await requests.load(tx, job.subject)
            if request and request.is_genuine and request.state is State.PENDING:
                escalate_to = self._setup.flow_rules(request.flow.sid).escalate_to
                detail = {"flow": request.flow.sid, "to": escalate_to}
                entry = AuditEntry(BOT, "request.escalated", request.id, detail)
                await self._setup.audit.append(tx, entry)
                await write_in_thread(tx, ESCALATION, request.id)
                await _never_again(tx, job, lease)
        return None

    async def remind(self, job: Job, lease: Lease) -> datetime | None:
        """Say in the thread, once, that the request still waits."""
        async with self._setup.database.transaction() as tx:
            request = await requests.load(tx, job.subject)
            if request is not None and request.state is State.PENDING:
                await write_in_thread(tx, REMINDER, request.id)
                await _never_again(tx, job, lease)
        return None


async def _never_again(tx: Transaction, job: Job, lease: Lease) -> None:
    """Drop the job here and now, so that a crash before its end has it run no second time.

    Raises:
        LeaseLost: Another process may have done what it is for: nothing of this counts.
    """
    await lease.hold(tx)
    await jobs.drop(tx, job.key)
