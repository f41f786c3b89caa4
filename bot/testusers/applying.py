"""Applying: one run at a time per flow over all processes, always on a list that was just read.

The lease of the job `apply:<flow>` is the flow's lock. A run reads the list, settles a POST in
doubt, gathers everything that is approved or over, stores the list that it is about to send, sends
it, compares the answer, and writes the consequences in one transaction.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import Any

import structlog

from bot.errors import GatehouseError, NotConfigured
from bot.ops.current_delivery import following_again, now_following
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    ResponseUnreadable,
    ServiceError,
    ServiceRefused,
)
from bot.store.engine import Transaction
from bot.store.job_loop import Again, Lease
from bot.store.jobs import Job
from bot.store.pause import pause_seconds
from bot.testusers import refusals
from bot.testusers.finishing import ChangeSet
from bot.testusers.rules import tries
from bot.testusers.rules.applying import Ending, ListChangePlan, Outcome, Post
from bot.testusers.rules.changes import Flow, is_sendable, same_people
from bot.testusers.rules.missing import is_deleted, looked_in_vain
from bot.testusers.rules.spellings import stored_spellings
from bot.testusers.settling import Look, Waiting
from bot.testusers.setup import Setup
from bot.testusers.store import flows, grants, requests

log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0
# A person who is missing from the list is looked for a second time after this.
GONE_SECONDS = 60.0
# What is due by itself counts as failed once more than it has: so ends, looks and further tries
# leave room to what somebody has just decided. See `Crowd`.
BY_ITSELF = 1
# In the job of a flow: the looks that found no flow, and who was missing from the list.
MISSING, GONE = "missing", "gone"


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The outcome of one GET and POST: the plan, if there was one, and the error, if any."""

    plan: ListChangePlan | None
    error: ServiceError | NotConfigured | None = None

    @property
    def is_refused_together(self) -> bool:
        """True if the service may have refused all because of a single change."""
        is_refused = isinstance(self.error, (ServiceRefused, PermissionMissing))
        return is_refused and self.plan is not None and self.plan.parts > 1

    @property
    def ends_the_run(self) -> bool:
        """True if nothing more can be sent now: no list was read, or a POST is in doubt."""
        if self.error is None:
            return False
        return self.plan is None or tries.outcome_of(self.error) is Outcome.UNANSWERED


class Applying:
    """Runs the jobs `apply:<flow>`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def run(self, job: Job, lease: Lease) -> Again | None:
        """Apply everything that is approved or over; return the time of the next run."""
        waiting, failures = await self._waiting(job.subject), 0
        if waiting.is_anything or (job.payload.get(GONE) and not waiting.is_held):
            with following_again(*_deliveries(waiting)):
                is_well = await self._apply(waiting, lease)
            # The tries of requests are counted on their own, and are soon over.
            failed_before = max(0, job.tries - BY_ITSELF)
            failures = 0 if is_well else max(1, failed_before + (not waiting.ready))
        return await self._next(lease.job, failures)

    async def _waiting(self, flow_key: str) -> Waiting:
        async with self._setup.database.read_only() as tx:
            return await Waiting.load(tx, flow_key)

    async def _apply(self, waiting: Waiting, lease: Lease) -> bool:
        """Apply everything together, or each request alone where one may make the others fail.

        Requests go alone when the service refuses them together, and when a request has its last
        try: a 5xx or a missing answer may be everybody's failure, so until then it counts against
        nobody.

        Return True if everything that belongs to no request went well.
        """
        if waiting.is_last_try_of_several:
            return await self._apply_each(waiting, lease, requests.ids(waiting.ready))
        attempt = await self._attempt(waiting.flow, lease, waiting.at)
        if attempt.is_refused_together and attempt.plan:
            return await self._apply_each(waiting, lease, attempt.plan.request_ids)
        await self._note(waiting.flow, lease, attempt)
        return attempt.error is None

    async def _apply_each(self, waiting: Waiting, lease: Lease, ids: Iterable[str]) -> bool:
        """Apply each request alone, then the rest, as long as anything can be sent."""
        for only in (*((request_id,) for request_id in ids), ()):
            attempt = await self._attempt(waiting.flow, lease, waiting.at, only)
            is_read = attempt.error is None or attempt.plan is not None
            await self._note(waiting.flow, lease, attempt, only if is_read else None)
            if attempt.ends_the_run:
                return False
        return attempt.error is None

    async def _note(
        self, flow: Flow, lease: Lease, attempt: _Attempt, only: Collection[str] | None = None
    ) -> None:
        """Record a failure for everything that the attempt was for."""
        plan, error = attempt.plan, attempt.error
        if error is None:
            return
        log.warning("testusers.apply_failed", outcome=error.outcome, reason=error.sentence)
        async with self._setup.database.transaction() as tx:
            waiting = await Waiting.load(tx, flow.key)
            post = waiting.post
            changes = await ChangeSet.begin(tx, flow)
            ids = only
            if ids is None:
                ids = requests.ids(waiting.ready) if plan is None else plan.request_ids
            for request_id in sorted(ids):
                of_it = post if post and post.is_of(request_id) else None
                tried = partial(tries.tried, error=error, at=waiting.at, post=of_it)
                await changes.note_try(request_id, tried)
            for request_id in [] if only else sorted({grant.request_id for grant in waiting.over}):
                await changes.say_overdue(request_id, tries.reason_of(error))
            is_missing = plan is None and _finds_no_flow(error)
            before = _looks(lease.job)
            looks = looked_in_vain(before, waiting.at) if is_missing else ()
            if is_deleted(looks):
                await self._let_go(tx, changes, waiting)
                looks = ()
            await changes.write(self._setup.audit)
            if isinstance(error, (CredentialsRefused, PermissionMissing)):
                await refusals.tell(tx, flow, error)
            gone = lease.job.payload.get(GONE, []) if plan is None else []
            await _remember(tx, lease, looks, gone)
            await lease.hold(tx)

    async def _note_outcome(self, flow: Flow, error: GatehouseError) -> None:
        """Record the outcome of the POST that has just failed."""
        async with self._setup.database.transaction() as tx:
            post = await flows.post(tx, flow.key)
            await _keep(tx, flow, post and post.left_of(tries.outcome_of(error)))

    async def _let_go(self, tx: Transaction, changes: ChangeSet, waiting: Waiting) -> None:
        """Let go of a deleted flow: nobody is on its list, and no POST is in doubt any more."""
        for grant in waiting.over:
            await changes.end(Ending(grant.identity, grant.request_id, was_gone=True))
        if waiting.post is not None:
            await changes.no_longer_unsure(waiting.post.plan.request_ids)
            await flows.drop_post(tx, waiting.flow.key)

    async def _attempt(
        self, flow: Flow, lease: Lease, at: datetime, only: Collection[str] | None = None
    ) -> _Attempt:
        """Make one GET and one POST for everything, or only for the requests in `only`."""
        plan = None
        try:
            plan = await self._look(flow, lease, at, only)
            if plan is not None:
                await self._send(flow, lease, plan)
        except (ServiceError, NotConfigured) as error:
            if plan is not None:
                await self._note_outcome(flow, error)
            return _Attempt(plan, error)
        return _Attempt(plan)

    async def _look(
        self, flow: Flow, lease: Lease, at: datetime, only: Collection[str] | None
    ) -> ListChangePlan | None:
        """Read the list, settle what it shows, and store the next POST, if any.

        `at` is a time before the read; an earlier time only keeps a POST in doubt for longer.

        Raises:
            LeaseLost: Another process may be applying.
        """
        listed = await self._read(flow)
        async with self._setup.database.transaction() as tx:
            waiting = await Waiting.load(tx, flow.key)
            # Others may have been approved while the list was read.
            now_following(*_deliveries(waiting))
            look = Look(self._setup, tx, waiting, listed, at, lease.job.payload.get(GONE, ()))
            plan = await look.run(only)
            await _remember(tx, lease, (), look.gone)
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
        """Send the list, and write the consequences.

        Raises:
            ServiceError: The service refused the list, or the POST is in doubt: then it stays
                stored, and the next run settles it from the list.
            LeaseLost: Another process may be applying.
        """
        lease.check()
        # Asked again once there is a connection: to make one takes up to 5 s.
        service, may_send = self._setup.service(), lambda: lease.is_fresh
        answered = await service.replace(flow.sid, plan.after, may_send)
        spellings = stored_spellings(
            [identity for identity in plan.change.additions if identity not in answered],
            [identity for identity in answered if identity not in plan.after],
        )
        if not same_people(
            [spellings.get(identity, identity) for identity in plan.after], answered
        ):
            raise ResponseUnreadable(
                "flow",
                "The flow service stored a different list than the one sent. Please check it.",
            )
        await self._finish(flow, lease, plan, spellings)

    async def _finish(
        self, flow: Flow, lease: Lease, plan: ListChangePlan, spellings: Mapping[str, str]
    ) -> None:
        async with self._setup.database.transaction() as tx:
            post = await flows.post(tx, flow.key)
            changes = await ChangeSet.begin(tx, flow)
            changes.replaced(plan, plan.change, spellings)
            await changes.carry_out(plan, spellings=spellings)
            await changes.write(self._setup.audit)
            await _keep(tx, flow, post and post.left_of(Outcome.CONFIRMED))
            await refusals.tell_of_end(tx, flow)
            await lease.hold(tx)

    async def _next(self, job: Job, failures: int) -> Again | None:
        """Return when the next try or look is due, or the next grant ends.

        The pause grows with every failure.
        """
        async with self._setup.database.read_only() as tx:
            waiting = await Waiting.load(tx, job.subject)
            next_end = await grants.next_end(tx, job.subject)
        at = waiting.at
        pause = timedelta(seconds=pause_seconds(failures) if failures else LOOK_SECONDS)
        post = waiting.post
        if post is not None and post.is_in_the_air(at):
            next_try = waiting.next_try_at
            look_at = next_try if next_try and next_try > at else at + pause
            times = [post.ends_at if waiting.is_held else min(look_at, at + pause, post.ends_at)]
        else:
            times = [time for time in (waiting.next_try_at, next_end) if time is not None]
            if post is not None or (waiting.over and failures):
                times.append(at + pause)
            elif waiting.over:
                times.append(at)
            elif waiting.due:
                times.append(at + pause)
        if job.payload.get(GONE):
            times.append(at + timedelta(seconds=GONE_SECONDS))
        return Again(min(times), BY_ITSELF + failures) if times else None


def _deliveries(waiting: Waiting) -> list[str]:
    """Return the log's ids of the clicks and commands behind this run."""
    return [request.progress.delivery_id for request in waiting.ready]


def _finds_no_flow(error: GatehouseError) -> bool:
    """Return True if the service itself, and not a proxy, reports that the flow doesn't exist."""
    if not isinstance(error, ServiceRefused) or error.status != HTTPStatus.NOT_FOUND:
        return False
    return error.code is not None or bool(error.message)


def _looks(job: Job) -> list[datetime]:
    return [datetime.fromisoformat(at) for at in job.payload.get(MISSING, ())]


async def _keep(tx: Transaction, flow: Flow, post: Post | None) -> None:
    if post is None:
        await flows.drop_post(tx, flow.key)
    else:
        await flows.put_post(tx, flow.key, post)


async def _remember(
    tx: Transaction, lease: Lease, looks: Sequence[datetime], gone: Sequence[str]
) -> None:
    payload: dict[str, Any] = {MISSING: [at.isoformat() for at in looks]} if looks else {}
    payload |= {GONE: list(gone)} if gone else {}
    if payload != lease.job.payload:
        await lease.remember(tx, payload)
