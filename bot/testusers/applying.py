"""The job that applies approved changes to a flow's list and removes expired access.

Only one run per flow is active at a time across all processes, because the lease on the job
`apply:<flow>` locks the flow. A run reads the list, checks whether a POST in doubt arrived,
and combines the approved changes and expired grants into a new list. It then stores and sends
the new list, compares it with the response, and writes the results in one transaction.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
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
from bot.testusers.lists import read_current
from bot.testusers.parts import Parts
from bot.testusers.rules.applying import (
    CONFIRMED,
    FOR_THE_REST,
    TRIES,
    Ending,
    ListChangePlan,
    Post,
    StoredOtherwise,
    failed,
    make_plan,
    reason_of,
    tried,
    whose_turn,
)
from bot.testusers.rules.changes import Change, Flow, is_sendable, stored_spellings
from bot.testusers.rules.requests import Grant, Request
from bot.testusers.rules.review import Review
from bot.testusers.transitions import MISSING, REFUSED, missing_since, review_of

log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0
# The pause doubles with every failure, up to about ten minutes.
DOUBLINGS = 7
# A grant ends if its person is missing from the list at two checks that are this far apart.
GONE = timedelta(seconds=60)
UNSENDABLE = "The list has an entry I can't send back unchanged, so I didn't change anything."
OTHER_LIST = "The flow service stored a different list from the one I sent. Please check it."


@dataclass(frozen=True, slots=True)
class Waiting:
    """A flow's pending work, as stored in the database.

    `requests` contains the approved requests, oldest decision first. `ready` contains the requests
    that are due for their next attempt. `post` is the POST in doubt. `due` contains the expired
    grants, and `over` contains those of people who aren't affected by any approved request.
    `recent` contains the bot's recent changes to the list, newest first.
    """

    at: datetime
    flow: Flow
    requests: Sequence[Request]
    ready: Sequence[Request]
    post: Post | None
    due: Sequence[Grant]
    over: Sequence[Grant]
    recent: Sequence[Change]

    @property
    def deliveries(self) -> list[str]:
        """The log IDs of the clicks and commands that led to this run."""
        return [request.progress.delivery_id for request in self.ready]

    @classmethod
    async def load(cls, tx: Transaction, flow_key: str) -> "Waiting":
        """Load the pending work of the flow with this key."""
        now = await tx.now()
        applying = await store.requests_in(tx, State.APPLYING, flow_key=flow_key)
        applying.sort(key=lambda request: request.decided_at or request.created_at)
        due = await store.due_grants(tx, flow_key)
        named = {identity for request in applying for identity in request.left.identities}
        return cls(
            now,
            await store.flow_of(tx, flow_key),
            applying,
            whose_turn(applying, now),
            await store.post_of(tx, flow_key),
            due,
            [grant for grant in due if grant.identity not in named],
            await store.changes_since(tx, flow_key, now - CONFIRMED),
        )


async def run_changes(bot: Parts, job: Job, lease: Lease) -> Again | None:
    """Apply approved changes, remove expired access, and return when to run again, if at all."""
    async with bot.database.read_only() as tx:
        waiting = await Waiting.load(tx, job.subject)
    is_well = True
    if waiting.ready or waiting.post or waiting.over or job.payload.get(MISSING):
        with following_again(*waiting.deliveries):
            is_well = await Run(bot, lease, waiting).apply()
    async with bot.database.transaction() as tx:
        waiting = await Waiting.load(tx, job.subject)
        next_end = await store.next_end(tx, job.subject)
        again = _next_run(job, lease, waiting, next_end, is_well=is_well)
        await lease.finish(tx, again)
    return again


def _next_run(
    job: Job, lease: Lease, waiting: Waiting, next_end: datetime | None, *, is_well: bool
) -> Again | None:
    # Scheduled runs count as retries, which can take up at most half of a kind's job slots.
    # That way, removals and checks can't delay newly approved requests.
    at, post, tries = waiting.at, waiting.post, 1 if is_well else job.tries + 1
    pause = at + timedelta(seconds=LOOK_SECONDS * 2 ** min(tries - 1, DOUBLINGS))
    retries = [request.progress.retry_at for request in waiting.requests]
    times = [retry_at for retry_at in retries if retry_at is not None and retry_at > at]
    if post is not None and post.is_in_the_air(at):
        times += [pause, post.ends_at]
    else:
        times += [at] if waiting.ready else []
        times += [next_end] if next_end is not None else []
        if post is not None or waiting.due:
            times.append(at if is_well and post is None and waiting.over else pause)
    if lease.job.payload.get(MISSING):
        times.append(at + GONE)
    return Again(min(times), tries) if times else None


@dataclass
class Run:
    """A run of the job `apply:<flow>`. `begun` is the pending work before the list is read."""

    bot: Parts
    lease: Lease
    begun: Waiting

    @property
    def flow(self) -> Flow:
        """The flow whose list the run reads and changes."""
        return self.begun.flow

    async def apply(self) -> bool:
        """Read the list once, and send a new list at most once. Return False if a call failed."""
        plan = None
        try:
            plan = await self._look()
            if plan is not None:
                self.lease.check()
                # Connecting can take up to 5 s, so the lease is checked again once connected.
                service, may_send = self.bot.flows.service(), lambda: self.lease.is_fresh
                answered = await service.replace(self.flow.sid, plan.after, may_send)
                spellings = plan.spellings_on(answered, is_answer=True)
                sent = [spellings.get(identity, identity) for identity in plan.after]
                async with self.bot.database.transaction() as tx:
                    changes = await ChangeSet.begin(tx, self.flow)
                    await changes.settle(plan, await tx.now(), answered, is_answer=True)
                    await changes.write()
                    await store.keep_post(tx, self.flow.key, None)
                    await _tell(tx, self.flow)
                    await self.lease.hold(tx)
                if unknown := plan.unknown_in(answered, spellings):
                    raise StoredOtherwise.of(answered, unknown)
                if sorted(sent) != sorted(answered):
                    raise ResponseUnreadable("flow", OTHER_LIST)
        except (ServiceError, NotConfigured) as error:
            log.warning("testusers.apply_failed", outcome=error.outcome, reason=error.sentence)
            await self._note(plan, error)
            return False
        return True

    async def _look(self) -> ListChangePlan | None:
        """Read the list and record what it shows. Store and return the next plan, if any."""
        service = self.bot.flows.service()
        listed = await read_current(
            lambda: service.read(self.flow.sid), self.begun.recent, self.begun.post
        )
        if not all(map(is_sendable, listed)):
            raise ResponseUnreadable("flow", UNSENDABLE)
        async with self.bot.database.transaction() as tx:
            waiting = await Waiting.load(tx, self.flow.key)
            # More requests may have been approved while the list was being read.
            now_following(*waiting.deliveries)
            plan, payload = None, {}
            if waiting.post is None or waiting.post.is_settled_by(listed, self.begun.at):
                changes = await ChangeSet.begin(tx, self.flow)
                plan, gone = await self._plan(tx, changes, waiting, listed)
                await changes.write()
                post = Post(plan, waiting.at) if plan else None
                await store.keep_post(tx, self.flow.key, post)
                payload = {MISSING: gone} if gone else {}
            if payload != self.lease.job.payload:
                await self.lease.remember(tx, payload)
            await self.lease.hold(tx)
        return plan

    async def _plan(
        self, tx: Transaction, changes: ChangeSet, waiting: Waiting, listed: tuple[str, ...]
    ) -> tuple[ListChangePlan | None, dict[str, str]]:
        """Return the next plan (None if it's empty), and the people who are missing from the list.

        The missing people are mapped to the time when they were first found missing.
        """
        if waiting.post is not None:
            lost = waiting.post.plan
            await changes.settle(lost, waiting.post.sent_at, listed)
            # If the POST took effect, sending it again would add these entries again.
            if unclear := lost.unclear_in(listed):
                reason = reason_of(StoredOtherwise.of(listed, unclear))
                for request_id in lost.request_ids:
                    await changes.note_try(request_id, partial(failed, reason=reason))
        left = []
        for request in map(changes.now, waiting.requests):
            if request.progress.tries >= TRIES and request.state is State.APPLYING:
                await changes.note_try(request.id, failed)
            elif request.state is State.APPLYING:
                left.append(request)
        known = missing_since(self.lease.job.payload)
        gone = await _end_what_is_gone(changes, waiting, left, listed, known)
        left = [
            request
            for request in left
            if not await self._asks_again(tx, changes, waiting, request, listed)
        ]
        over = [grant for grant in waiting.over if changes.granted.get(grant.identity) == grant]
        ready = whose_turn(left, waiting.at)
        # A request's last attempt is sent alone so that it can't make other requests fail.
        if any(request.progress.tries == TRIES - 1 for request in ready):
            ready, over = ready[:1], []
        own = {}
        for request in ready:
            later = await store.changes_after(tx, self.flow.key, request.requested.seen_change_id)
            own[request.id] = [*later, *changes.made]
        plan = make_plan(self.bot.new_id(), listed, waiting.at, ready, over, own)
        if plan.before == plan.after:
            await changes.settle(plan, waiting.at, listed)
            return None, gone
        return plan, gone

    async def _asks_again(
        self,
        tx: Transaction,
        changes: ChangeSet,
        waiting: Waiting,
        request: Request,
        listed: tuple[str, ...],
    ) -> bool:
        """If the effect differs from the card, ask for a new decision and return True.

        A request whose access would already have ended expires.
        A request that has already changed something fails instead. Access that ended while an
        approved change waited for a retry doesn't count as a difference.
        """
        if request.change_at(waiting.at).is_empty:
            review = await review_of(self.bot, tx, request, listed, waiting.at)
            await self._ask_again(changes, request, review)
            return True
        # A change without approval gets a card only after its first attempts.
        if request.requested.without_approval and not request.progress.retries:
            return False
        for at in (request.decided_at, waiting.at):
            review = await review_of(self.bot, tx, request, listed, at)
            if not review.news or review.is_over:
                return False
        await self._ask_again(changes, request, review)
        return True

    async def _ask_again(self, changes: ChangeSet, request: Request, review: Review) -> None:
        if request.progress.done is None:
            await changes.ask_again(request.id, review, self.bot.settings.request_hours)
        else:
            reason = " ".join((*review.news, FOR_THE_REST))
            await changes.note_try(request.id, partial(failed, reason=reason))

    async def _note(self, plan: ListChangePlan | None, error: ServiceError | NotConfigured) -> None:
        """Record the failure for all affected requests and grants, and for the POST."""
        async with self.bot.database.transaction() as tx:
            waiting = await Waiting.load(tx, self.flow.key)
            post = waiting.post
            if plan is not None and post is not None:
                post = post.after(error)
                await store.keep_post(tx, self.flow.key, post)
            changes = await ChangeSet.begin(tx, self.flow)
            ids = plan.request_ids if plan else [request.id for request in waiting.ready]
            is_shared = plan is not None and len(plan.steps) + len(plan.endings) > 1
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
            await _tell(tx, self.flow, error)
            await self.lease.hold(tx)


async def _end_what_is_gone(
    changes: ChangeSet,
    waiting: Waiting,
    left: Sequence[Request],
    listed: Collection[str],
    missing_since: Mapping[str, str],
) -> dict[str, str]:
    """End the grants of people who have been missing from the list for a minute.

    An expired grant ends at the first check. Return the other people who are missing, with the time
    when they were first found missing.
    """
    for grant in waiting.over:
        if changes.granted.get(grant.identity) == grant and grant.identity not in listed:
            await changes.end(Ending(grant.identity, grant.request_id, was_gone=True))
    named = {identity for request in left for identity in request.left.identities}
    named.update(grant.identity for grant in waiting.due)
    missing = {
        identity: grant
        for identity, grant in changes.granted.items()
        if identity not in listed and identity not in named
    }
    unknown = [identity for identity in listed if identity not in changes.granted]
    spellings = stored_spellings(list(missing), unknown)
    gone = {}
    for identity, grant in missing.items():
        if identity in spellings:
            await changes.respell(grant, spellings[identity])
            continue
        since = missing_since.get(identity, waiting.at.isoformat())
        if datetime.fromisoformat(since) + GONE <= waiting.at:
            await changes.end(Ending(identity, grant.request_id, was_gone=True))
        else:
            gone[identity] = since
    return gone


async def _tell(tx: Transaction, flow: Flow, error: GatehouseError | None = None) -> None:
    """Alert once about refused credentials and once per flow about a missing permission.

    If `error` is None, the service works again, and these alerts are resolved.
    """
    keys = {CredentialsRefused: f"{REFUSED}:", PermissionMissing: f"{REFUSED}:{flow.key}"}
    payload = {"sentence": error.sentence, "alias": flow.alias} if error else {}
    for kind, key in keys.items():
        told = await outbox.of_kind(tx, key, REFUSED)
        is_told = bool(told and told[-1].payload)
        if (isinstance(error, kind) and not is_told) or (error is None and is_told):
            await outbox.put(tx, OutboxMessage(key, REFUSED, flow.sid, payload))
