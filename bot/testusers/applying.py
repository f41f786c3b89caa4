"""The job that applies approved changes and expired grants to a flow's list of test users.

Only one run per flow is active at a time across all processes, because the lease of the job
`apply:<flow>` is the flow's lock. A run reads the list, checks whether a POST in doubt arrived,
and combines the approved changes and expired grants into a new list. It stores the new list, sends
it, compares the response with it, and writes the results in one transaction.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog

from bot.approvals.rules import State
from bot.errors import GatehouseError, NotConfigured
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
from bot.testusers import store
from bot.testusers.finishing import ChangeSet
from bot.testusers.parts import Parts
from bot.testusers.rules.applying import (
    CONFIRMED,
    TRIES,
    Ending,
    ListChangePlan,
    Post,
    failed,
    is_before,
    make_plan,
    reason_of,
    tried,
    whose_turn,
)
from bot.testusers.rules.changes import Flow, is_sendable, same_people, stored_spellings
from bot.testusers.rules.requests import Grant, RecordedChange, Request
from bot.testusers.transitions import REFUSED, review_of

STALE = (
    "The flow service returned an outdated list without the change I just made,"
    " so I didn't change anything."
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A flow's open work, as stored in the database.

    `requests` are the approved requests, oldest decision first, and `ready` are those whose next
    attempt is due. `post` is the POST in doubt. `due` are the expired grants, and `over` are those
    for people that none of the approved requests affect. `latest` is the bot's last change to the
    list, if it was recent.
    """

    at: datetime
    flow: Flow
    requests: Sequence[Request]
    ready: Sequence[Request]
    post: Post | None
    due: Sequence[Grant]
    over: Sequence[Grant]
    latest: RecordedChange | None

    @classmethod
    async def load(cls, tx: Transaction, flow_key: str) -> "Waiting":
        """Load the open work of the flow with this key."""
        now, latest = await tx.now(), await store.latest_changes(tx, flow_key, 1)
        applying = await store.applying_requests(tx, flow_key)
        due = await store.due_grants(tx, flow_key)
        scheduled = await store.scheduled_requests(tx, flow_key) if due else []
        named = {
            identity
            for request in (*applying, *scheduled)
            if (request.requested.starts_at or now) <= now
            for identity in request.left.identities
        }
        return cls(
            now,
            await store.flow_of(tx, flow_key),
            applying,
            whose_turn(applying, now),
            await store.post_of(tx, flow_key),
            due,
            [grant for grant in due if grant.identity not in named],
            latest[0] if latest and now - latest[0].at < CONFIRMED else None,
        )


@dataclass
class Look:
    """The evaluation of a list that was just read, in one transaction.

    `looked_at` is a time before the list was read. `missing` are the people with a grant who were
    already missing from the list at the previous check, and `gone` are those missing since then.
    """

    bot: Parts
    tx: Transaction
    waiting: Waiting
    listed: tuple[str, ...]
    looked_at: datetime
    missing: Collection[str]
    gone: list[str] = field(default_factory=list)

    async def run(self) -> ListChangePlan | None:
        """Record the outcomes that the list confirms, then store and return the next plan."""
        waiting, post, key = self.waiting, self.waiting.post, self.waiting.flow.key
        if is_before(waiting.latest, post, self.listed):
            raise ResponseUnreadable("flow", STALE)
        if post is not None and not post.is_settled_by(self.listed, self.looked_at):
            return None
        changes = await ChangeSet.begin(self.tx, waiting.flow)
        if post is not None:
            await changes.settle(post.plan, post.sent_at, self.listed)
        left = []
        for request in map(changes.now, waiting.requests):
            if request.progress.tries >= TRIES and request.state is State.APPLYING:
                await changes.note_try(request.id, failed)
            elif request.state is State.APPLYING:
                left.append(request)
        await self._end_what_is_gone(changes, left)
        left = [request for request in left if not await self._asks_again(changes, request)]
        plan = await self._plan(changes, left)
        if plan.changes_nothing:
            await changes.settle(plan, waiting.at, self.listed)
        await changes.write()
        next_post = None if plan.changes_nothing else Post(plan, waiting.at)
        await store.keep_post(self.tx, key, next_post)
        return plan if next_post else None

    def _over(self, changes: ChangeSet) -> list[Grant]:
        """Return the expired grants that haven't just been ended or replaced."""
        return [
            grant for grant in self.waiting.over if changes.granted.get(grant.identity) == grant
        ]

    async def _end_what_is_gone(self, changes: ChangeSet, left: Iterable[Request]) -> None:
        """End the grants of people who are missing from the list in two consecutive checks."""
        for grant in self._over(changes):
            if grant.identity not in self.listed:
                await changes.end(Ending(grant.identity, grant.request_id, was_gone=True))
        named = {identity for request in left for identity in request.left.identities}
        named.update(grant.identity for grant in self.waiting.due)
        missing = {
            identity: grant
            for identity, grant in changes.granted.items()
            if identity not in self.listed and identity not in named
        }
        unknown = [identity for identity in self.listed if identity not in changes.granted]
        spellings = stored_spellings(list(missing), unknown)
        for identity, grant in missing.items():
            if identity in spellings:
                await changes.respell(grant, spellings[identity])
            elif identity in self.missing:
                await changes.end(Ending(identity, grant.request_id, was_gone=True))
            else:
                self.gone.append(identity)

    async def _asks_again(self, changes: ChangeSet, request: Request) -> bool:
        """Ask for a new decision if the change would no longer do what its card shows.

        Access that ended while an approved change waited for a retry is ignored.
        """
        if request.requested.without_approval or request.progress.part is not None:
            return False
        for at in (request.decided_at, self.waiting.at):
            review = await review_of(self.bot, self.tx, request, self.listed, at)
            if not review.news or review.is_over:
                return False
        await changes.ask_again(request.id, review, self.bot.settings.request_hours)
        return True

    async def _plan(self, changes: ChangeSet, left: Sequence[Request]) -> ListChangePlan:
        """Plan all due changes. A request's last attempt goes alone, so it can't fail others."""
        ready, over = whose_turn(left, self.waiting.at), self._over(changes)
        if any(request.progress.tries == TRIES - 1 for request in ready):
            ready, over = ready[:1], []
        own = {}
        for request in ready:
            seen_id = request.requested.seen_change_id
            later = await store.changes_after(self.tx, self.waiting.flow.key, seen_id)
            own[request.id] = [*later, *changes.made]
        return make_plan(self.bot.new_id(), self.listed, self.waiting.at, ready, over, own)


log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, DOUBLINGS = 10.0, 600.0, 6
# The time between the two checks for a person who is missing from the list.
GONE_SECONDS = 60.0
# Scheduled runs count as retries, because at most half of a kind's jobs may be retries. Removals
# and checks then can't keep newly approved requests waiting. See `CROWDS`.
BY_ITSELF = 1
# The key in the job's payload for the people who were missing from the list.
GONE = "gone"


class Applying:
    """Runs the jobs `apply:<flow>`."""

    def __init__(self, bot: Parts) -> None:
        self._bot = bot

    async def run(self, job: Job, lease: Lease) -> Again | None:
        """Apply all approved changes and expired grants; return the time of the next run."""
        async with self._bot.database.read_only() as tx:
            waiting = await Waiting.load(tx, job.subject)
        failures = 0
        if waiting.ready or waiting.post or waiting.over or job.payload.get(GONE):
            with following_again(*_deliveries(waiting)):
                is_well = await self._apply(waiting.flow, lease, waiting.at)
            # This only counts failures without a due request. Requests count their own attempts.
            failed_before = max(0, job.tries - BY_ITSELF)
            failures = 0 if is_well else max(1, failed_before + (not waiting.ready))
        return await self._next(lease.job, failures)

    async def _apply(self, flow: Flow, lease: Lease, at: datetime) -> bool:
        """Read the list once and send it at most once; return False if a call failed.

        `at` is a time before the list is read.
        """
        plan = None
        try:
            plan = await self._look(flow, lease, at)
            if plan is not None:
                await self._finish(flow, lease, plan, await self._send(flow, lease, plan))
        except (ServiceError, NotConfigured) as error:
            log.warning("testusers.apply_failed", outcome=error.outcome, reason=error.sentence)
            await self._note(flow, lease, plan, error)
            return False
        return True

    async def _look(self, flow: Flow, lease: Lease, at: datetime) -> ListChangePlan | None:
        """Read the list, record the outcomes that it confirms, and store the next POST, if any."""
        listed = tuple(await self._bot.flows.service().read(flow.sid))
        if not all(map(is_sendable, listed)):
            raise ResponseUnreadable(
                "flow",
                "The list has an entry I can't send back unchanged, so I didn't change anything.",
            )
        async with self._bot.database.transaction() as tx:
            waiting = await Waiting.load(tx, flow.key)
            # More requests may have been approved while the list was being read.
            now_following(*_deliveries(waiting))
            look = Look(self._bot, tx, waiting, listed, at, lease.job.payload.get(GONE, ()))
            plan = await look.run()
            payload = {GONE: look.gone} if look.gone else {}
            if payload != lease.job.payload:
                await lease.remember(tx, payload)
            await lease.hold(tx)
        return plan

    async def _send(self, flow: Flow, lease: Lease, plan: ListChangePlan) -> Sequence[str]:
        lease.check()
        # Connecting can take up to 5 s, so the lease is checked again once connected.
        service, may_send = self._bot.flows.service(), lambda: lease.is_fresh
        answered = await service.replace(flow.sid, plan.after, may_send)
        spellings = plan.spellings_on(answered)
        sent = [spellings.get(identity, identity) for identity in plan.after]
        if not same_people(sent, answered):
            raise ResponseUnreadable(
                "flow",
                "The flow service stored a different list from the one I sent. Please check it.",
            )
        return answered

    async def _finish(
        self, flow: Flow, lease: Lease, plan: ListChangePlan, answered: Sequence[str]
    ) -> None:
        async with self._bot.database.transaction() as tx:
            changes = await ChangeSet.begin(tx, flow)
            await changes.settle(plan, await tx.now(), answered)
            await changes.write()
            await store.keep_post(tx, flow.key, None)
            await _tell(tx, flow)
            await lease.hold(tx)

    async def _note(
        self,
        flow: Flow,
        lease: Lease,
        plan: ListChangePlan | None,
        error: ServiceError | NotConfigured,
    ) -> None:
        """Record the failure for all affected requests and grants, and for the POST."""
        async with self._bot.database.transaction() as tx:
            waiting = await Waiting.load(tx, flow.key)
            post = waiting.post
            if plan is not None and post is not None:
                post = post.after(error)
                await store.keep_post(tx, flow.key, post)
            changes = await ChangeSet.begin(tx, flow)
            ids = plan.request_ids if plan else [request.id for request in waiting.ready]
            is_shared = plan is not None and plan.is_shared
            for request_id in sorted(ids):
                of_request = post if post and post.is_of(request_id) else None
                note = partial(
                    tried, error=error, at=waiting.at, post=of_request, is_shared=is_shared
                )
                await changes.note_try(request_id, note)
            if plan is None or not plan.steps:
                for request_id in sorted({grant.request_id for grant in waiting.over}):
                    await changes.say_overdue(request_id, reason_of(error))
            await changes.write()
            await _tell(tx, flow, error)
            await lease.hold(tx)

    async def _next(self, job: Job, failures: int) -> Again | None:
        """Return when to run again for the next attempt, check or expiring grant.

        Pauses grow with every failure.
        """
        async with self._bot.database.read_only() as tx:
            waiting = await Waiting.load(tx, job.subject)
            next_end = await store.next_end(tx, job.subject)
        at, post = waiting.at, waiting.post
        seconds = LOOK_SECONDS
        if failures:
            doubled = FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, DOUBLINGS)
            seconds = min(doubled, LONGEST_PAUSE_SECONDS)
        pause = at + timedelta(seconds=seconds)
        retries = [request.progress.retry_at for request in waiting.requests]
        times = [retry_at for retry_at in retries if retry_at is not None and retry_at > at]
        if post is not None and post.is_in_the_air(at):
            times += [pause, post.ends_at]
        else:
            times += [at] if waiting.ready else []
            times += [next_end] if next_end is not None else []
            if post is not None or waiting.due:
                times.append(pause if post is not None or failures or not waiting.over else at)
        if job.payload.get(GONE):
            times.append(at + timedelta(seconds=GONE_SECONDS))
        return Again(min(times), BY_ITSELF + failures) if times else None


def _deliveries(waiting: Waiting) -> list[str]:
    """Return the log's ids of the clicks and commands that led to this run."""
    return [request.progress.delivery_id for request in waiting.ready]


async def _tell(tx: Transaction, flow: Flow, error: GatehouseError | None = None) -> None:
    """Alert once about refused credentials, and once per flow about a missing permission.

    Without an error, the service works again, so resolve these alerts.
    """
    keys = {CredentialsRefused: f"{REFUSED}:", PermissionMissing: f"{REFUSED}:{flow.key}"}
    payload = {"sentence": error.sentence, "alias": flow.alias} if error else {}
    for kind, key in keys.items():
        told = await outbox.of_kind(tx, key, REFUSED)
        is_told = bool(told and told[-1].payload)
        if (isinstance(error, kind) and not is_told) or (error is None and is_told):
            await outbox.put(tx, OutboxMessage(key, REFUSED, flow.sid, payload))
