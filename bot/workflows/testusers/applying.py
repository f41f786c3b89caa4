"""Applying: one at a time per flow over all processes, and never a list that was not just read.

The lease of the job `apply:<flow>` is the flow's lock. A run reads the list, takes from it what has
become of earlier POSTs in doubt, gathers everything that is approved or over by then, stores the
list that it is about to send, sends it, compares the answer, and writes all that follows in one
transaction. What is in doubt is looked at again until it is not.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus

import structlog

from bot.background.jobs import Again, Lease
from bot.dataclass import dataclass
from bot.errors import GatehouseError, NotConfigured
from bot.model.pause import pause_seconds
from bot.model.testusers.applying import ListChangePlan, Work, make_plan
from bot.model.testusers.changes import Flow, is_sendable, same_people
from bot.model.testusers.missing import is_deleted, looked_in_vain
from bot.ops.deliveries import following_again, now_following
from bot.service_errors import PermissionMissing, ResponseUnreadable, ServiceError, ServiceRefused
from bot.store import flows, grants, requests
from bot.store.engine import Transaction
from bot.store.jobs import Job
from bot.workflows.testusers import failing
from bot.workflows.testusers.finishing import ChangeSet
from bot.workflows.testusers.settling import Settling, Waiting
from bot.workflows.testusers.setup import Setup
from bot.workflows.testusers.transitions import is_allowed

log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0
# What is due by itself counts as failed once more than it has: so ends, looks and further tries
# leave room to what somebody has just decided. See `Crowd`.
BY_ITSELF = 1
# In the job of a flow: the looks that found none, for the next run.
MISSING = "missing"


@dataclass(frozen=True, slots=True)
class _Attempt:
    """How one GET and POST went: the plan, if it came to one, and what went wrong, if anything."""

    plan: ListChangePlan | None
    error: ServiceError | NotConfigured | None = None

    @property
    def is_refused_together(self) -> bool:
        """Whether one of several changes may be what the service refuses."""
        is_refused = isinstance(self.error, (ServiceRefused, PermissionMissing))
        return is_refused and self.plan is not None and self.plan.parts > 1


class Applying:
    """Runs the jobs `apply:<flow>`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def run(self, job: Job, lease: Lease) -> Again | None:
        """Apply what is approved or over; return when there is something to do again."""
        waiting, failures = await self._waiting(job.subject), 0
        if waiting.is_anything:
            with following_again(*_deliveries(waiting)):
                is_well = await self._apply(waiting, lease)
            # The tries of requests are counted on their own, and are soon over.
            failed_before = max(0, job.tries - BY_ITSELF)
            failures = 0 if is_well else max(1, failed_before + (not waiting.ready))
        return await self._next(job, failures)

    async def _waiting(self, flow_key: str) -> Waiting:
        async with self._setup.database.read_only() as tx:
            return await self._load(tx, flow_key)

    async def _load(self, tx: Transaction, flow_key: str) -> Waiting:
        """Read what waits; of the requests those whose approval is in the audit too."""
        waiting, audit = await Waiting.load(tx, flow_key), self._setup.audit
        allowed = [one for one in waiting.requests if await is_allowed(audit, tx, one)]
        return replace(waiting, requests=allowed)

    async def _apply(self, waiting: Waiting, lease: Lease) -> bool:
        """All together; each alone where one of them may be what fails, so that none spoils others.

        That is when the service refuses them together, and when one has its last try: a 5xx or no
        answer may be everybody's failure, so before that it is nobody's.

        Return whether all went well with what is nobody's request any more.
        """
        if waiting.is_last_try_of_several:
            return await self._apply_each(waiting, lease, requests.ids(waiting.ready))
        attempt = await self._attempt(waiting.flow, lease, waiting.at)
        if attempt.is_refused_together and attempt.plan:
            return await self._apply_each(waiting, lease, _ids(attempt.plan))
        await self._note(waiting.flow, lease, attempt)
        return attempt.error is None

    async def _apply_each(self, waiting: Waiting, lease: Lease, ids: Iterable[str]) -> bool:
        """Each request alone, and then what is no request; none when the list cannot be read."""
        for only in (*((one,) for one in ids), ()):
            attempt = await self._attempt(waiting.flow, lease, waiting.at, only)
            is_read = attempt.error is None or attempt.plan is not None
            await self._note(waiting.flow, lease, attempt, only if is_read else None)
            if not is_read:
                return False
        return attempt.error is None

    async def _note(
        self, flow: Flow, lease: Lease, attempt: _Attempt, only: Collection[str] | None = None
    ) -> None:
        """Write down a failure, if it was one, for all whom the attempt was for."""
        if attempt.error is None:
            return
        plan, error, ids = attempt.plan, attempt.error, only
        log.warning("testusers.apply_failed", outcome=error.outcome, reason=error.sentence)
        async with self._setup.database.transaction() as tx:
            waiting = await self._load(tx, flow.key)
            changes = await ChangeSet.begin(tx, flow)
            if ids is None:
                ids = requests.ids(waiting.ready) if plan is None else _ids(plan)
            await failing.note_failure(changes, ids, waiting.posts, error, waiting.at)
            for request_id in [] if only else sorted({one.request_id for one in waiting.over}):
                await changes.say_overdue(request_id, error.sentence)
            is_missing = plan is None and _finds_no_flow(error)
            looks = looked_in_vain(_looks(lease.job), waiting.at) if is_missing else ()
            if is_deleted(looks):
                await self._let_go(tx, changes, waiting)
                looks = ()
            await changes.write(self._setup.audit)
            await _remember(tx, lease, looks)
            await lease.hold(tx)

    async def _let_go(self, tx: Transaction, changes: ChangeSet, waiting: Waiting) -> None:
        """The flow is deleted: nobody is on its list, and nothing in doubt will be."""
        work = Work(waiting.at, due=waiting.over)
        await changes.carry_out(make_plan(self._setup.new_id(), (), work))
        for post in waiting.posts:
            for step in post.plan.steps:
                await changes.say_what_is_known(step.request_id, failing.known)
            await flows.drop_post(tx, post.plan.id)

    async def _attempt(
        self, flow: Flow, lease: Lease, at: datetime, only: Collection[str] | None = None
    ) -> _Attempt:
        """One GET and one POST for everything, or for the requests in `only` and nothing else."""
        plan = None
        try:
            plan = await self._look(flow, lease, at, only)
            if plan is not None:
                await self._send(flow, lease, plan)
        except (ServiceError, NotConfigured) as error:
            return _Attempt(plan, error)
        return _Attempt(plan)

    async def _look(
        self, flow: Flow, lease: Lease, at: datetime, only: Collection[str] | None
    ) -> ListChangePlan | None:
        """Read the list, settle what it tells, and store what is to be sent, if anything is.

        `at` is a time before: with an earlier one a POST is only in doubt for longer.

        Raises:
            LeaseLost: Another process may be at it.
        """
        listed = await self._read(flow)
        async with self._setup.database.transaction() as tx:
            waiting = await self._load(tx, flow.key)
            # Others may have been approved while the list was read.
            now_following(*_deliveries(waiting))
            settling = Settling(self._setup, tx, flow, waiting, listed, at)
            plan = await settling.run(only)
            await _remember(tx, lease, ())
            await lease.hold(tx)
        return plan

    async def _read(self, flow: Flow) -> tuple[str, ...]:
        listed = tuple(await self._setup.service().read(flow.sid))
        if not all(map(is_sendable, listed)):
            raise ResponseUnreadable(
                "flow",
                "The list contains an entry I can't send back unchanged, so I left it alone.",
            )
        return listed

    async def _send(self, flow: Flow, lease: Lease, plan: ListChangePlan) -> None:
        """Send the list, and write all that follows from it.

        Raises:
            ServiceError: It was refused, or it is in doubt: then it stays stored, and the next run
                sees what the list tells.
            LeaseLost: Another process may be at it.
        """
        lease.check()
        try:
            # Asked again once there is a connection: to make one takes up to 5 s.
            service, may_send = self._setup.service(), lambda: lease.is_fresh
            answered = await service.replace(flow.sid, plan.after, may_send)
        except (ServiceError, NotConfigured) as error:
            if failing.is_certain(error):
                async with self._setup.database.transaction() as tx:
                    await flows.drop_post(tx, plan.id)
            raise
        if not same_people(plan.after, answered):
            raise ResponseUnreadable(
                "flow",
                "The flow service stored a different list than the one sent. Please check it.",
            )
        await self._finish(flow, lease, plan)

    async def _finish(self, flow: Flow, lease: Lease, plan: ListChangePlan) -> None:
        """Write what follows from a list that the service has taken."""
        async with self._setup.database.transaction() as tx:
            changes = await ChangeSet.begin(tx, flow)
            changes.replaced(plan)
            await changes.carry_out(plan)
            await flows.drop_post(tx, plan.id)
            for post in await flows.posts(tx, flow.key):
                await flows.put_post(tx, flow.key, post.decided(changes.decided, plan.after))
            await changes.write(self._setup.audit)
            await lease.hold(tx)

    async def _next(self, job: Job, failures: int) -> Again | None:
        """Return when the next try or look is due, or the next grant is over.

        What fails again and again is tried more and more slowly.
        """
        async with self._setup.database.read_only() as tx:
            waiting = await self._load(tx, job.subject)
            next_end = await grants.next_end(tx, job.subject)
        times = [at for at in (waiting.next_try_at, next_end) if at is not None]
        if waiting.posts or (waiting.over and failures):
            pause = pause_seconds(failures) if failures else LOOK_SECONDS
            times.append(waiting.at + timedelta(seconds=pause))
        elif waiting.over:
            times.append(waiting.at)
        return Again(min(times), BY_ITSELF + failures) if times else None


def _deliveries(waiting: Waiting) -> list[str]:
    """The clicks and commands that had this run happen, as the log names them."""
    return [one.progress.delivery_id for one in waiting.ready]


def _ids(plan: ListChangePlan) -> list[str]:
    return [step.request_id for step in plan.steps]


def _finds_no_flow(error: GatehouseError) -> bool:
    """Whether the service itself says that there is no such flow; a page of a proxy's may not."""
    if not isinstance(error, ServiceRefused) or error.status != HTTPStatus.NOT_FOUND:
        return False
    return error.code is not None or bool(error.message)


def _looks(job: Job) -> list[datetime]:
    """When the last looks were that found no flow."""
    return [datetime.fromisoformat(at) for at in job.payload.get(MISSING, ())]


async def _remember(tx: Transaction, lease: Lease, looks: Sequence[datetime]) -> None:
    payload = {MISSING: [at.isoformat() for at in looks]} if looks else {}
    if payload != lease.job.payload:
        await lease.remember(tx, payload)
