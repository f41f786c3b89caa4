"""Applying: one run at a time per flow across all processes, on a list that was just read.

The lease of the job `apply:<flow>` is the flow's lock. A run reads the list, settles a POST in
doubt, collects the approved changes and expired grants, stores the new list, sends it, compares the
response, and writes the results in one transaction.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

import structlog

from bot.errors import NotConfigured
from bot.ops.current_delivery import following_again, now_following
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    ResponseUnreadable,
    ServiceError,
)
from bot.store import outbox
from bot.store.engine import Transaction
from bot.store.job_loop import Again, Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.testusers.finishing import ChangeSet
from bot.testusers.rules import tries
from bot.testusers.rules.applying import ListChangePlan, Outcome
from bot.testusers.rules.changes import Flow, is_sendable, same_people
from bot.testusers.settling import Look, Waiting
from bot.testusers.setup import Setup
from bot.testusers.store import flows, grants, requests
from bot.testusers.transitions import REFUSED

log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, DOUBLINGS = 10.0, 600.0, 6
# A person who is missing from the list is checked again after this time.
GONE_SECONDS = 60.0
# Work that is not due to a recent decision counts as having failed once more than it has, so that
# removals, checks and retries leave slots to new decisions. See `Crowd`.
BY_ITSELF = 1
# In a flow's job: the people who were missing from the list.
GONE = "gone"


class Applying:
    """Runs the jobs `apply:<flow>`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def run(self, job: Job, lease: Lease) -> Again | None:
        """Apply all approved changes and expired grants; return the time of the next run."""
        waiting, failures = await self._waiting(job.subject), 0
        if not waiting.is_held and (waiting.is_anything or job.payload.get(GONE)):
            with following_again(*_deliveries(waiting)):
                is_well = await self._apply(waiting.flow, lease, waiting.at)
            # Requests' attempts are counted separately, and are soon used up.
            failed_before = max(0, job.tries - BY_ITSELF)
            failures = 0 if is_well else max(1, failed_before + (not waiting.ready))
        return await self._next(lease.job, failures)

    async def _waiting(self, flow_key: str) -> Waiting:
        async with self._setup.database.read_only() as tx:
            return await Waiting.load(tx, flow_key)

    async def _apply(self, flow: Flow, lease: Lease, at: datetime) -> bool:
        """Make one GET, and one POST if the list has to change; return False if a call failed.

        `at` is a time before the list was read; an earlier time only keeps a POST in doubt for
        longer.

        Raises:
            LeaseLost: Another process may be applying.
        """
        plan = None
        try:
            plan = await self._look(flow, lease, at, await self._read(flow))
            if plan is not None:
                await self._finish(flow, lease, plan, await self._send(flow, lease, plan))
        except (ServiceError, NotConfigured) as error:
            log.warning("testusers.apply_failed", outcome=error.outcome, reason=error.sentence)
            await self._note(flow, lease, plan, error)
            return False
        return True

    async def _read(self, flow: Flow) -> tuple[str, ...]:
        listed = tuple(await self._setup.service().read(flow.sid))
        if not all(map(is_sendable, listed)):
            raise ResponseUnreadable(
                "flow",
                "The list contains an entry I can't send back unchanged, so I left it alone.",
            )
        return listed

    async def _look(
        self, flow: Flow, lease: Lease, at: datetime, listed: tuple[str, ...]
    ) -> ListChangePlan | None:
        """Record the results that the list shows, and store the next POST, if any."""
        async with self._setup.database.transaction() as tx:
            waiting = await Waiting.load(tx, flow.key)
            # Others may have been approved while the list was read.
            now_following(*_deliveries(waiting))
            look = Look(self._setup, tx, waiting, listed, at, lease.job.payload.get(GONE, ()))
            plan = await look.run()
            await _remember(tx, lease, look.gone)
            await lease.hold(tx)
        return plan

    async def _send(self, flow: Flow, lease: Lease, plan: ListChangePlan) -> Sequence[str]:
        lease.check()
        # Checked again once connected, because connecting takes up to 5 s.
        service, may_send = self._setup.service(), lambda: lease.is_fresh
        answered = await service.replace(flow.sid, plan.after, may_send)
        spellings = plan.spellings_on(answered)
        sent = [spellings.get(identity, identity) for identity in plan.after]
        if not same_people(sent, answered):
            raise ResponseUnreadable(
                "flow",
                "The flow service stored a different list than the one sent. Please check it.",
            )
        return answered

    async def _finish(
        self, flow: Flow, lease: Lease, plan: ListChangePlan, answered: Sequence[str]
    ) -> None:
        async with self._setup.database.transaction() as tx:
            post = await flows.post(tx, flow.key)
            changes = await ChangeSet.begin(tx, flow)
            await changes.settle(plan, await tx.now(), answered)
            await changes.write(self._setup.audit)
            await flows.keep_post(tx, flow.key, post and post.after(Outcome.CONFIRMED))
            await _tell_of_end(tx, flow)
            await lease.hold(tx)

    async def _note(
        self,
        flow: Flow,
        lease: Lease,
        plan: ListChangePlan | None,
        error: ServiceError | NotConfigured,
    ) -> None:
        """Record a failure for all requests and grants in the calls, and the POST's outcome."""
        async with self._setup.database.transaction() as tx:
            waiting = await Waiting.load(tx, flow.key)
            post = waiting.post
            if plan is not None and post is not None:
                post = post.after(tries.outcome_of(error))
                await flows.keep_post(tx, flow.key, post)
            changes = await ChangeSet.begin(tx, flow)
            ids = requests.ids(waiting.ready) if plan is None else plan.request_ids
            is_shared = plan is not None and plan.is_shared
            for request_id in sorted(ids):
                of_request = post if post and post.is_of(request_id) else None
                tried = partial(
                    tries.tried, error=error, at=waiting.at, post=of_request, is_shared=is_shared
                )
                await changes.note_try(request_id, tried)
            if plan is None or not plan.steps:
                for request_id in sorted({grant.request_id for grant in waiting.over}):
                    await changes.say_overdue(request_id, tries.reason_of(error))
            await changes.write(self._setup.audit)
            if isinstance(error, (CredentialsRefused, PermissionMissing)):
                await _tell_of_refusal(tx, flow, error)
            await lease.hold(tx)

    async def _next(self, job: Job, failures: int) -> Again | None:
        """Return the time of the next attempt, check or grant end.

        The pause increases with every failure.
        """
        async with self._setup.database.read_only() as tx:
            waiting = await Waiting.load(tx, job.subject)
            next_end = await grants.next_end(tx, job.subject)
        at, post = waiting.at, waiting.post
        seconds = LOOK_SECONDS
        if failures:
            doubled = FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, DOUBLINGS)
            seconds = min(doubled, LONGEST_PAUSE_SECONDS)
        pause = at + timedelta(seconds=seconds)
        retries = [request.progress.retry_at for request in waiting.requests]
        times = [retry_at for retry_at in retries if retry_at is not None and retry_at > at]
        if post is not None and post.is_in_the_air(at):
            times = [post.ends_at] if waiting.is_held else [*times, pause, post.ends_at]
        else:
            times += [at] if waiting.ready else []
            times += [next_end] if next_end is not None else []
            if post is not None or waiting.due:
                times.append(pause if post is not None or failures or not waiting.over else at)
        if job.payload.get(GONE):
            times.append(at + timedelta(seconds=GONE_SECONDS))
        return Again(min(times), BY_ITSELF + failures) if times else None


def _deliveries(waiting: Waiting) -> list[str]:
    """Return the log ids of the clicks and commands that led to this run."""
    return [request.progress.delivery_id for request in waiting.ready]


async def _remember(tx: Transaction, lease: Lease, gone: Sequence[str]) -> None:
    payload = {GONE: list(gone)} if gone else {}
    if payload != lease.job.payload:
        await lease.remember(tx, payload)


async def _tell_of_refusal(tx: Transaction, flow: Flow, error: ServiceError) -> None:
    """Alert once about a refused credential, and once per flow about a missing permission."""
    key = _alert_key(None if isinstance(error, CredentialsRefused) else flow)
    if not await _is_told(tx, key):
        payload = {"sentence": error.sentence, "alias": flow.alias}
        await outbox.put(tx, OutboxMessage(key, REFUSED, flow.sid, payload))


async def _tell_of_end(tx: Transaction, flow: Flow) -> None:
    for key in await outbox.written(tx, [_alert_key(None), _alert_key(flow)]):
        if await _is_told(tx, key):
            await outbox.put(tx, OutboxMessage(key, REFUSED, flow.sid))


def _alert_key(flow: Flow | None) -> str:
    return f"{REFUSED}:{flow.key if flow else ''}"


async def _is_told(tx: Transaction, key: str) -> bool:
    told = await outbox.of_kind(tx, key, REFUSED)
    return bool(told and told[-1].payload)
