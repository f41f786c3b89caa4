"""Applying: one at a time per flow over all processes, and never a list that was not just read.

The lease of the job `apply:<flow>` is the flow's lock. A run reads the list, gathers everything
that is approved or over by then, stores the list that it is about to send, sends it, compares the
answer, and writes all that follows in one transaction. What a crash leaves half done is the stored
plan: the next run sees in the list whether it arrived.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from bot.errors import NotConfigured, ResponseUnreadable, ServiceError, ServiceRefused
from bot.model.applying import Plan, has_landed, make_plan
from bot.model.audit import BOT, AuditEntry
from bot.model.requests import Request
from bot.model.testusers import Flow, difference, is_sendable, same_people
from bot.store import flows, grants, jobs, requests
from bot.store.engine import Transaction
from bot.store.jobs import Job
from bot.workflows.jobs import Lease, LeaseLost
from bot.workflows.testusers.failing import (
    fail_spent,
    is_spent,
    note_failure,
    note_overdue,
)
from bot.workflows.testusers.finishing import finish
from bot.workflows.testusers.setup import Setup

log = structlog.get_logger(__name__)

ENDING_RETRY_SECONDS = 10
# A call takes at most 10 s, so what is sent by then has arrived or failed before the lease lapses.
SEND_WITHIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Attempt:
    """How one GET and POST went: the plan, if it came to one, and what went wrong, if anything."""

    plan: Plan | None
    error: ServiceError | NotConfigured | None = None

    @property
    def is_refused_together(self) -> bool:
        """Whether one of several wishes may be what the service refuses."""
        refused = isinstance(self.error, ServiceRefused)
        return refused and self.plan is not None and self.plan.parts > 1


class Applying:
    """Runs the jobs `apply:<flow>`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def run(self, job: Job, lease: Lease) -> datetime | None:
        """Apply what is approved or over; return when there is something to do again."""
        flow = await self._waiting_flow(job.subject)
        if flow is not None:
            await self._apply(flow, lease)
            self._setup.wake()
        return await self._next(job.subject)

    async def _waiting_flow(self, flow_key: str) -> Flow | None:
        """Return the flow if anything waits on it."""
        async with self._setup.database.reading() as tx:
            ready = await _ready(tx, flow_key)
            if ready:
                return ready[0].flow
            return await grants.flow_of(tx, flow_key) if await grants.due(tx, flow_key) else None

    async def _apply(self, flow: Flow, lease: Lease) -> None:
        """All together; when the service refuses that, each alone, so that one spoils no other."""
        attempt = await self._attempt(flow, lease)
        if not (attempt.is_refused_together and attempt.plan):
            await self._note(flow, attempt)
            return
        alone = [(step.request_id,) for step in attempt.plan.steps]
        for ids in (*alone, ()):
            await self._note(flow, await self._attempt(flow, lease, ids), ids)

    async def _note(
        self, flow: Flow, attempt: _Attempt, only: Collection[str] | None = None
    ) -> None:
        """Write down a failure, if it was one, for all whom the attempt was for."""
        if attempt.error is None:
            return
        error, ids = attempt.error, only
        log.warning("testusers.apply_failed", outcome=error.outcome, reason=error.sentence)
        if ids is None and attempt.plan is not None:
            ids = [step.request_id for step in attempt.plan.steps]
        elif ids is None:
            async with self._setup.database.reading() as tx:
                ids = requests.ids(await _ready(tx, flow.key))
        await note_failure(self._setup, flow, ids, error)
        if not only:
            await note_overdue(self._setup, flow, error)

    async def _attempt(
        self, flow: Flow, lease: Lease, only: Collection[str] | None = None
    ) -> _Attempt:
        """One GET and one POST for everything, or for the requests in `only` and nothing else."""
        plan = None
        try:
            listed = await self._read(flow, lease)
            renewing_at = self._setup.monotonic()
            plan = await self._plan(flow, listed, lease, only)
            if plan is not None and not plan.changes_nothing:
                if self._setup.monotonic() - renewing_at > SEND_WITHIN_SECONDS:
                    raise LeaseLost(f"The lease of {lease.job.key} is too old to send with.")
                await self._send(flow, plan)
        except (ServiceError, NotConfigured) as error:
            return _Attempt(plan, error)
        return _Attempt(plan)

    async def _read(self, flow: Flow, lease: Lease) -> tuple[str, ...]:
        """Read the list, and settle what a crash or a lost answer left open.

        Raises:
            LeaseLost: Another process may be at it, and what is open may be its own.
        """
        listed = tuple(await self._setup.service().read(flow.sid))
        if not all(map(is_sendable, listed)):
            raise ResponseUnreadable(
                "flow",
                "The list holds an identity that cannot be sent back as it is,"
                " so the list was not touched.",
            )
        async with self._setup.database.transaction() as tx:
            plan = await flows.plan_of(tx, flow.key)
            if plan is not None and has_landed(plan, listed):
                await self._finish(tx, flow, plan, listed)
            elif plan is not None:
                await self._give_up(tx, flow, plan)
            spent = [one.id for one in await _ready(tx, flow.key) if is_spent(one)]
            await _hold(tx, lease)
        if spent:
            await fail_spent(self._setup, spent)
        return listed

    async def _give_up(self, tx: Transaction, flow: Flow, plan: Plan) -> None:
        """Drop a plan that was sent, as far as is known, in vain; it is audited all the same."""
        if await flows.drop_plan(tx, flow.key, plan.id):
            detail = {"before": plan.before, "after": plan.after}
            entry = AuditEntry(BOT, "flow.change_not_found", flow.sid, detail)
            await self._setup.audit.append(tx, entry)

    async def _plan(
        self, flow: Flow, listed: Sequence[str], lease: Lease, only: Collection[str] | None
    ) -> Plan | None:
        """Store what is to be sent, if the lease still holds; None when nothing is to be done.

        What is true already is finished here: nothing need be sent for it.

        Raises:
            LeaseLost: Another process may be at it.
        """
        async with self._setup.database.transaction() as tx:
            plan = await self._make_plan(tx, flow, listed, only)
            if plan.parts == 0:
                return None
            await flows.put_plan(tx, flow.key, plan)
            if plan.changes_nothing:
                await self._finish(tx, flow, plan, listed)
            await _hold(tx, lease)
        return plan

    async def _make_plan(
        self, tx: Transaction, flow: Flow, listed: Sequence[str], only: Collection[str] | None
    ) -> Plan:
        ready = await _ready(tx, flow.key)
        chosen = [one for one in ready if only is None or one.id in only]
        due = [] if only else await grants.due(tx, flow.key)
        own = {
            one.id: await flows.changes_after(tx, flow.key, one.wish.seen_change_id)
            for one in chosen
        }
        return make_plan(self._setup.new_id(), listed, chosen, own, due)

    async def _send(self, flow: Flow, plan: Plan) -> None:
        """Send the list, and write all that follows from it.

        Raises:
            ServiceError: It was refused, or it is not known whether it arrived: the plan then
                stays, and the next run sees.
        """
        try:
            answered = await self._setup.service().replace(flow.sid, plan.after)
        except ServiceRefused:
            async with self._setup.database.transaction() as tx:
                await flows.drop_plan(tx, flow.key, plan.id)
            raise
        if not same_people(plan.after, answered):
            raise ResponseUnreadable(
                "flow", "The flow service answered with another list than the one it was sent."
            )
        async with self._setup.database.transaction() as tx:
            await self._finish(tx, flow, plan, plan.after)

    async def _finish(self, tx: Transaction, flow: Flow, plan: Plan, found: Sequence[str]) -> None:
        """Write what follows, unless another process has done so."""
        if await flows.drop_plan(tx, flow.key, plan.id):
            later = difference(plan.after, found)
            await finish(tx, self._setup.audit, flow, plan, later)

    async def _next(self, flow_key: str) -> datetime | None:
        """Return when the next try is due, or the next grant is over."""
        async with self._setup.database.reading() as tx:
            now = await tx.now()
            times = [one.progress.retry_at or now for one in await requests.applying(tx, flow_key)]
            next_end = await grants.next_end(tx, flow_key)
        if next_end is not None:
            retry_at = now + timedelta(seconds=ENDING_RETRY_SECONDS)
            times.append(next_end if next_end > now else retry_at)
        return min(times, default=None)


async def _hold(tx: Transaction, lease: Lease) -> None:
    """Let the transaction count only if the lease still holds: rows of jobs are locked last.

    Raises:
        LeaseLost: It does not.
    """
    if not await jobs.renew(tx, lease.owner, [lease.job.key]):
        raise LeaseLost(f"The lease of {lease.job.key} was lost.")


async def _ready(tx: Transaction, flow_key: str) -> list[Request]:
    """Return the approved requests of a flow whose next try is due."""
    now = await tx.now()
    waiting = await requests.applying(tx, flow_key)
    return [one for one in waiting if (one.progress.retry_at or now) <= now]
