"""The job that applies approved changes to a flow's list and removes expired access.

Only one run per flow is active at a time across all processes, because the lease on the job
`apply:<flow>` locks the flow. A run reads the list, checks whether a POST in doubt arrived,
and combines the approved changes and expired grants into a new list. It then stores and sends
the new list, compares it with the response, and writes the results in one transaction.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import structlog

from bot.approvals.rules import State
from bot.errors import NotConfigured
from bot.flows.rules.flows import Flow
from bot.flows.rules.identities import stored_spellings
from bot.flows.rules.lists import Change
from bot.services.errors import (
    ResponseUnreadable,
    ServiceError,
)
from bot.store.engine import Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Again, Job
from bot.testusers import store
from bot.testusers.finishing import ChangeSet
from bot.testusers.lists import read_current
from bot.testusers.parts import Parts
from bot.testusers.rules.applying import (
    CONFIRMED,
    FOR_THE_REST,
    GONE,
    TRIES,
    Ending,
    ListChangePlan,
    Post,
    StoredOtherwise,
    Waiting,
    failed,
    make_plan,
    next_run,
    reason_of,
    tried,
)
from bot.testusers.rules.requests import Grant, Request
from bot.testusers.rules.review import CurrentList
from bot.testusers.transitions import review_now

log = structlog.get_logger(__name__)

# The key in a job's payload for the people who were missing from the list.
MISSING = "gone"
OTHER_LIST = "The flow service stored a different list from the one I sent. Please check it."


async def run_changes(bot: Parts, job: Job, lease: Lease) -> Again | None:
    """Apply approved changes, remove expired access, and return when to run again, if at all."""
    async with bot.database.read_only() as tx:
        waiting = await _waiting(tx, job.subject)
        await tx.end_with_next()
        recent, _ = await store.recent_changes(tx, job.subject, waiting.at - CONFIRMED)
    is_well = await Run(bot, lease, waiting, recent, dict(waiting.grants)).apply()
    tries = 1 if is_well else job.tries + 1
    async with bot.database.transaction() as tx:
        waiting = await _waiting(tx, job.subject)
        at = next_run(waiting, tries, is_well=is_well, has_missing=MISSING in lease.job.payload)
        again = Again(at, tries) if at else None
        await lease.finish(tx, again)
    return again


async def _waiting(tx: Transaction, flow_key: str) -> Waiting:
    requests = await _approved(tx, flow_key)
    flow = requests[-1].flow if requests else await store.flow_of(tx, flow_key)
    post = await store.post_of(tx, flow_key)
    grants = await store.grants_of_flow(tx, flow_key)
    return Waiting(await tx.now(), flow, requests, post, grants)


async def _approved(tx: Transaction, flow_key: str) -> list[Request]:
    """Return the flow's approved requests, oldest decision first."""
    found = await store.requests_in(tx, State.APPLYING, flow_key=flow_key)
    return sorted(found, key=lambda request: request.round.decided_at or request.created_at)


@dataclass
class Run:
    """A run of the job `apply:<flow>`.

    `begun` is the pending work before the list is read, and `recent` are the bot's changes shortly
    before, newest first. Only the process with the lease changes a flow's grants and its POST, so
    they're loaded once: `granted` is kept up to date by the change sets.
    """

    bot: Parts
    lease: Lease
    begun: Waiting
    recent: Sequence[Change]
    granted: dict[str, Grant]

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
                    changes = ChangeSet(tx, self.flow, await tx.now(), self.granted)
                    await changes.settle(plan, await tx.now(), answered, spellings)
                    await changes.write()
                    await store.keep_post(tx, self.flow.key, None)
                    await self.lease.hold(tx)
                if unknown := plan.unknown_in(answered, spellings):
                    raise StoredOtherwise(answered, unknown)
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
        listed = await read_current(service, self.flow, self.recent, self.begun.post)
        async with self.bot.database.transaction() as tx:
            # More requests may have been approved while the list was being read.
            approved = await _approved(tx, self.flow.key)
            waiting = replace(self.begun, at=await tx.now(), requests=approved)
            plan, payload = None, {}
            if waiting.post is None or waiting.post.is_settled_by(listed, self.begun.at):
                changes = ChangeSet(tx, self.flow, waiting.at, self.granted)
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
            await changes.settle(lost, waiting.post.sent_at, listed, lost.spellings_on(listed))
            # If the POST took effect, sending it again would add these entries again.
            if unclear := lost.unclear_in(listed):
                reason = reason_of(StoredOtherwise(listed, unclear))
                for request_id in lost.request_ids:
                    await changes.note_try(request_id, partial(failed, reason=reason))
        left = []
        for request in map(changes.now, waiting.requests):
            if request.attempts.tries >= TRIES and request.state is State.APPLYING:
                await changes.note_try(request.id, failed)
            elif request.state is State.APPLYING:
                left.append(request)
        gone = await self._end_what_is_gone(changes, left, waiting.at, listed)
        seen = [request.requested.compared.seen_change_id for request in left]
        recorded = await store.changes_after(tx, self.flow.key, min(seen)) if seen else []
        current = CurrentList(listed, recorded, self.granted)
        left = [
            request
            for request in left
            if not await self._asks_again(changes, request, waiting.at, current)
        ]
        waiting = replace(waiting, requests=left, grants=self.granted)
        ready = waiting.ready
        over = waiting.over
        # A request's last attempt is sent alone so that it can't make other requests fail.
        if any(request.attempts.tries == TRIES - 1 for request in ready):
            ready, over = ready[:1], []
        plan = make_plan(self.bot.new_id(), listed, waiting.at, ready, over, recorded)
        if plan.before == plan.after:
            await changes.settle(plan, waiting.at, listed, {})
            return None, gone
        return plan, gone

    async def _end_what_is_gone(
        self,
        changes: ChangeSet,
        left: Sequence[Request],
        at: datetime,
        listed: Collection[str],
    ) -> dict[str, str]:
        """End the grants of people who have been missing from the list for a minute.

        Return the other people who are missing, with the time when they were first found missing.
        People whom a request in `left` adds or removes don't count as missing.
        """
        named = {identity for request in left for identity in request.left.identities}
        missing = [
            grant
            for identity, grant in self.granted.items()
            if identity not in listed and identity not in named
        ]
        unknown = [identity for identity in listed if identity not in self.granted]
        spellings = stored_spellings([grant.identity for grant in missing], unknown)
        noted = self.lease.job.payload.get(MISSING)
        # Earlier versions stored a list without times.
        known = noted if isinstance(noted, dict) else {}
        gone = {}
        for grant in missing:
            identity = grant.identity
            since = known.get(identity, at.isoformat())
            if identity in spellings:
                await changes.respell(grant, spellings[identity])
            elif datetime.fromisoformat(since) + GONE <= at:
                await changes.end(Ending(identity, grant.request_id, was_gone=True))
            else:
                gone[identity] = since
        return gone

    async def _asks_again(
        self, changes: ChangeSet, request: Request, at: datetime, current: CurrentList
    ) -> bool:
        """If the effect differs from the card, ask for a new decision and return True.

        A request whose access would already have ended expires. A request that has already changed
        something fails instead. Access that ended while an approved change waited for a retry
        doesn't count as a difference.
        """
        review = review_now(self.bot, request, at, current)
        if not review.is_over:
            # A change without approval gets a card only after its first attempts.
            if request.requested.without_approval and request.attempts.retried_by is None:
                return False
            decided = review_now(self.bot, request, request.round.decided_at or at, current)
            if not review.news or not decided.news or decided.is_over:
                return False
        if request.result.done is None:
            changes.ask_again(request, review, self.bot.settings.request_hours)
        else:
            reason = " ".join((*review.news, FOR_THE_REST))
            await changes.note_try(request.id, partial(failed, reason=reason))
        return True

    async def _note(self, plan: ListChangePlan | None, error: ServiceError | NotConfigured) -> None:
        """Record the failure for all affected requests and grants, and for the POST."""
        async with self.bot.database.transaction() as tx:
            waiting = await _waiting(tx, self.flow.key)
            post = waiting.post
            if plan is not None and post is not None:
                post = post.after(error)
                await store.keep_post(tx, self.flow.key, post)
            changes = ChangeSet(tx, self.flow, waiting.at, self.granted)
            ids = plan.request_ids if plan else [request.id for request in waiting.ready]
            is_shared = plan is not None and len(plan.steps) + len(plan.endings) > 1
            for request_id in sorted(ids):
                of_request = post if post and request_id in post.plan.request_ids else None
                note = partial(
                    tried, error=error, at=waiting.at, post=of_request, is_shared=is_shared
                )
                await changes.note_try(request_id, note)
            if plan is None or not plan.steps:
                for request_id in sorted({grant.request_id for grant in waiting.over}):
                    await changes.say_overdue(request_id, reason_of(error))
            await changes.write()
            await self.lease.hold(tx)
