"""The job that applies approved changes to a flow's list and removes expired access.

Only one run per flow is active at a time across all processes, because the lease on the job
`apply:<flow>` locks the flow. A run reads the list, checks whether a POST in doubt arrived,
and combines the approved changes and expired access into a new list. It then stores and sends
the new list, compares it with the response, and writes the results in one transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from bot.approvals.rules import State
from bot.errors import GatehouseError, NotConfigured
from bot.flows.client import read_current
from bot.flows.rules import CONFIRMED, Flow, FlowList, difference, is_before, stored_spellings
from bot.flows.store import add_list, lists_from, lock_flow
from bot.services.errors import ResponseUnreadable, ServiceError
from bot.store.audit_entry import BOT
from bot.store.engine import Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Again, Job
from bot.testusers import store
from bot.testusers.parts import Parts
from bot.testusers.rules.applying import (
    FOR_THE_REST,
    GONE,
    TRIES,
    ListChangePlan,
    StoredOtherwise,
    Waiting,
    failed,
    make_plan,
    next_run,
    reason_of,
    tried,
)
from bot.testusers.rules.people import Access, CurrentList, Over
from bot.testusers.rules.requests import Request
from bot.testusers.settling import Settling
from bot.testusers.work import review_now

log = structlog.get_logger(__name__)

OTHER_LIST = "The flow service stored a different list from the one I sent. Please check it."


async def run_changes(bot: Parts, job: Job, lease: Lease) -> Again | None:
    """Apply approved changes, remove expired access, and return when to run again, if at all.

    The list is read once, and a new list is sent at most once.
    """
    async with bot.database.read_only() as tx:
        # Earlier versions stored jobs without the flow.
        flow = Flow(**job.payload) if job.payload else await store.flow_of(tx, job.subject)
        at, access, recent, post = await store.access_and_lists(tx, job.subject)
    has_missing = bool(recent) and not access.keys() <= {*recent[-1].identities}
    run = Run(bot, lease, flow, at, access, recent, post, has_missing)
    plan: ListChangePlan | None = None
    try:
        if plan := await run.look():
            await run.send(plan)
    except (ServiceError, NotConfigured) as error:
        log.warning("testusers.apply_failed", outcome=error.outcome, reason=error.sentence)
        await run.note(plan, error)
    return run.again


@dataclass
class Run:
    """A run of the job `apply:<flow>`.

    Only the process with the lease changes a flow's access and its POST, so they're loaded once, at
    the time `at`, and kept up to date. `post` is the plan whose POST is in doubt, if there's one.
    `recent` are the flow's lists of the last minute, and the one before them. `has_missing` is True
    if people with access are missing from the latest list. `left` are the approved requests that
    were left when the run made its plan. `again` is when to run again, once the run has ended.
    """

    bot: Parts
    lease: Lease
    flow: Flow
    at: datetime
    access: dict[str, Access]
    recent: Sequence[FlowList]
    post: ListChangePlan | None
    has_missing: bool
    left: Sequence[Request] = ()
    again: Again | None = None

    async def look(self) -> ListChangePlan | None:
        """Read the list and record what it shows. Store and return the next plan, if any.

        If there's none, the run has ended.
        """
        in_doubt = self.post.change.identities if self.post else ()
        listed = await read_current(self.bot.flows.service(), self.flow, self.recent, in_doubt)
        async with self.lease.transaction() as tx:
            # More requests may have been approved while the list was being read.
            work, plan = await self._begin(tx), None
            # The list from before a change looks the same as one in which a POST reverted it.
            is_clear = not is_before(self.recent, (), listed)
            if self.post is None or (is_clear and self.post.is_settled_by(listed, self.at)):
                plan = await self._plan(work, listed)
                await work.write()
                await self._replace_post(tx, plan)
            if plan is None:
                await self._end(work)
            else:
                await self.lease.require(tx)
        return plan

    async def send(self, plan: ListChangePlan) -> None:
        """Send a plan's list, and record the service's answer."""
        self.lease.check()
        # Connecting can take up to 5 s, so the lease is checked again once connected.
        service = self.bot.flows.service()
        answered = await service.replace(self.flow.sid, plan.after, lambda: self.lease.is_fresh)
        spellings = plan.spellings_on(answered, is_answer=True)
        sent = [spellings.get(identity, identity) for identity in plan.after]
        is_as_sent = sorted(sent) == sorted(answered)
        async with self.lease.transaction() as tx:
            work = await self._begin(tx, plan)
            await work.settle(plan, work.at, answered, spellings)
            await work.write()
            await self._replace_post(tx, None)
            await store.forget_lists(tx, self.flow.key, work.at - CONFIRMED)
            if is_as_sent:
                await self._end(work)
            else:
                await self.lease.require(tx)
        if unknown := plan.unknown_in(answered, spellings):
            raise StoredOtherwise(answered, unknown)
        if not is_as_sent:
            raise ResponseUnreadable("flow", OTHER_LIST)

    async def note(self, plan: ListChangePlan | None, error: ServiceError | NotConfigured) -> None:
        """Record the failure for all affected requests and access, and for the POST."""
        async with self.lease.transaction() as tx:
            work = await self._begin(tx)
            if plan is not None and self.post is not None:
                await self._replace_post(tx, plan.in_doubt_after(error))
            post = self.post
            waiting = Waiting(work.at, work.approved, post, self.access)
            overdue = list[str]()
            if plan is None or not plan.steps:
                overdue = sorted({access.request_id for access in waiting.over})
            is_shared = plan is not None and len(plan.steps) + len(plan.over) > 1
            affected = plan.request_ids if plan else [request.id for request in waiting.ready]
            for request in work.approved:
                if request.id in affected:
                    of_request = post if post and request.id in post.request_ids else None
                    work.put_tried(tried(request, error, work.at, of_request, is_shared=is_shared))
            work.add(await store.requests_with(tx, overdue))
            for request_id in overdue:
                request = work.requests[request_id]
                if not request.result.overdue:
                    work.note(BOT, "grant.end_failed", request, reason=reason_of(error))
                result = replace(request.result, overdue=reason_of(error))
                work.put(replace(request, result=result))
            await work.write()
            await self._end(work, error)

    async def _begin(self, tx: Transaction, plan: ListChangePlan | None = None) -> Settling:
        """Lock the flow, and load what a plan concerns, or the approved requests if there's none.

        Approved requests are sorted by the time of their decision, oldest first.
        """
        await lock_flow(tx, self.flow.key)
        if plan is None:
            loaded = await store.requests_in(tx, State.APPLYING, flow_key=self.flow.key)
            loaded.sort(key=lambda one: (one.round.decided_at or one.created_at, one.id))
        else:
            loaded = await self._concerned(tx, plan)
        return Settling(self.bot, tx, await tx.now(), loaded, self.flow, self.access)

    async def _concerned(self, tx: Transaction, plan: ListChangePlan) -> list[Request]:
        """Return the requests that a plan may change: its own, and others for the same people."""
        ids = {self.access[one].request_id for one in plan.over if one in self.access}
        return await store.concerned(tx, self.flow.key, ids.union(plan.request_ids))

    async def _replace_post(self, tx: Transaction, post: ListChangePlan | None) -> None:
        await store.replace_post(tx, self.flow.key, self.post, post)
        self.post = post

    async def _end(self, work: Settling, error: GatehouseError | None = None) -> None:
        """End the run in a transaction that has stored its results, and plan the next run."""
        tries = self.lease.job.tries + 1 if error else 1
        others = [request for request in self.left if request.id not in work.requests]
        waiting = Waiting(work.at, [*work.approved, *others], self.post, self.access)
        at = next_run(waiting, tries, error, has_missing=self.has_missing)
        self.again = Again(at, tries) if at else None
        # Nothing is stored if another process has taken over.
        await self.lease.require(work.tx)
        await self.lease.finish(work.tx, self.again)

    async def _plan(self, work: Settling, listed: tuple[str, ...]) -> ListChangePlan | None:
        """Return the next plan, or None if it's empty."""
        lists = await self._seen(work, listed)
        for request in work.approved:
            if request.attempts.tries >= TRIES:
                work.put_tried(failed(request))
        await self._end_what_is_gone(work, listed)
        current = CurrentList.of(listed, self.access)
        left = list[Request]()
        for request in work.approved:
            if reviewed := self._reviewed(work, request, current):
                left.append(reviewed)
        self.left = left
        waiting = Waiting(work.at, left, None, self.access)
        ready, over = waiting.ready, waiting.over
        # A request's last attempt is sent alone so that it can't make other requests fail.
        if any(request.attempts.tries == TRIES - 1 for request in ready):
            ready, over = ready[:1], []
        plan = make_plan(self.bot.new_id(), work.at, lists, ready, over)
        if plan.change.is_empty:
            work.add(await self._concerned(work.tx, plan))
            await work.settle(plan, work.at, listed, {})
            return None
        work.note_plan("flow.sent", plan, plan.after)
        return plan

    async def _seen(self, work: Settling, listed: tuple[str, ...]) -> list[FlowList]:
        """Store the list that was read, and what it shows of the plan in doubt, if there's one.

        Return the flow's lists since the approved requests were made. The last one was just read.
        """
        first_id = min((request.list_id for request in work.approved), default=0)
        if plan := self.post:
            work.add(await self._concerned(work.tx, plan))
            spellings = plan.spellings_on(listed)
            await work.settle(plan, plan.at, listed, spellings)
            # If the POST took effect, sending it again would add these entries again.
            if unclear := plan.unclear_in(listed, spellings):
                reason = reason_of(StoredOtherwise(listed, unclear))
                for request in work.approved:
                    if request.id in plan.request_ids:
                        work.put_tried(failed(request, reason))
        known_id = self.recent[-1].id if self.recent else 0
        lists = await lists_from(work.tx, self.flow.key, first_id or known_id)
        if not lists or lists[-1].identities != listed:
            lists.append(await add_list(work.tx, self.flow.key, listed))
        return lists

    async def _end_what_is_gone(self, work: Settling, listed: Sequence[str]) -> None:
        """End the access of people who have been missing from all lists for a minute.

        People whom an approved request adds or removes don't count as missing.
        """
        taken = {person.spelling for request in work.approved for person in request.left}
        edits = difference([*self.access], listed)
        spellings = stored_spellings(edits.removals, edits.additions)
        missing = edits.without(taken.union(spellings))
        is_a_minute = bool(self.recent) and self.recent[0].at + GONE <= self.at
        was_there = set[str]().union(*(one.identities for one in self.recent))
        gone = missing.without(was_there).removals if is_a_minute else ()
        self.has_missing = len(gone) < len(missing.removals)
        # Somebody may have emptied a long list, so all requests are loaded at once.
        ids = {self.access[one].request_id for one in (*gone, *spellings)}
        work.add(await store.requests_with(work.tx, ids))
        for spelling, stored_as in spellings.items():
            await work.respell(spelling, stored_as)
        for spelling in gone:
            await work.end(spelling, Over.GONE)

    def _reviewed(self, work: Settling, request: Request, current: CurrentList) -> Request | None:
        """Return the request as the list spells its people, or None if it can't be applied.

        If the effect differs from the card, ask for a new decision. A request whose access would
        already have ended expires. A request that has already changed something fails instead.
        Access that ended while an approved change waited for a retry doesn't count as a difference.
        """
        review = review_now(self.bot, request, work.at, current)
        if not review.is_over:
            accepted = review
            # A change without approval gets a card only after its first attempts.
            has_card = not request.requested.without_approval or bool(request.attempts.retried_by)
            if review.news and has_card:
                decided_at = request.round.decided_at or work.at
                accepted = review_now(self.bot, request, decided_at, current)
            if not (accepted.news and has_card):
                request = replace(request, people=accepted.request.people)
                work.put(request)
                return request
        if request.has_effect:
            work.put_tried(failed(request, " ".join((*review.news, FOR_THE_REST))))
        else:
            work.ask_again(review)
        return None
