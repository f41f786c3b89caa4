"""The job that applies approved changes to a flow's list and removes expired access.

Only one run per flow is active at a time across all processes, because the lease on the job
`apply:<flow>` locks the flow. A run reads the list, checks whether a POST in doubt arrived,
and combines the approved changes and expired access into a new list. It then stores and sends
the new list, compares it with the response, and writes the results in one transaction.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from bot.approvals.rules import State
from bot.errors import GatehouseError, NotConfigured
from bot.flows.reading import read_current
from bot.flows.rules.flows import Flow
from bot.flows.rules.identities import stored_spellings
from bot.flows.rules.lists import CONFIRMED, FlowList
from bot.flows.store import add_list, lists_from, lock_flow
from bot.services.errors import ResponseUnreadable, ServiceError
from bot.store.audit_entry import BOT, AuditEntry
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
    Post,
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
from bot.testusers.settling import Settling, concerned, plan_detail
from bot.testusers.work import Work, review_now

log = structlog.get_logger(__name__)

OTHER_LIST = "The flow service stored a different list from the one I sent. Please check it."


async def run_changes(bot: Parts, job: Job, lease: Lease) -> Again | None:
    """Apply approved changes, remove expired access, and return when to run again, if at all."""
    flow_key = job.subject
    async with bot.database.read_only() as tx:
        # Earlier versions stored jobs without the flow.
        flow = Flow(**job.payload) if job.payload else await store.flow_of(tx, flow_key)
        access = await store.access_in(tx, flow_key)
        at = await tx.now()
        await tx.end_with_next()
        recent, post = await store.recent_lists(tx, flow_key, at - CONFIRMED)
    begun = Waiting(at, flow, [], post, access)
    has_missing = bool(recent) and not access.keys() <= {*recent[-1].identities}
    return await Run(bot, lease, begun, recent, access, has_missing).apply()


@dataclass
class Run:
    """A run of the job `apply:<flow>`.

    `begun` is what was known when the run began, before its requests were loaded, or what was left
    when it made its plan. `recent` are the flow's lists of the last minute, and the one before
    them. Only the process with the lease changes a flow's access and its POST, so they're loaded
    once: `access` is kept up to date while results are recorded. `has_missing` is True if people
    with access are missing from the latest list.
    """

    bot: Parts
    lease: Lease
    begun: Waiting
    recent: Sequence[FlowList]
    access: dict[str, Access]
    has_missing: bool

    @property
    def flow(self) -> Flow:
        """The flow whose list the run reads and changes."""
        return self.begun.flow

    async def apply(self) -> Again | None:
        """Read the list once, and send a new list at most once. Return when to run again."""
        plan = None
        try:
            plan, again = await self._look()
            return again if plan is None else await self._send(plan)
        except (ServiceError, NotConfigured) as error:
            log.warning("testusers.apply_failed", outcome=error.outcome, reason=error.sentence)
            return await self._note(plan, error)

    async def _look(self) -> tuple[ListChangePlan | None, Again | None]:
        """Read the list and record what it shows. Store and return the next plan, if any.

        If there's none, the run has ended. Then also return when to run again.
        """
        service = self.bot.flows.service()
        post = self.begun.post
        in_doubt = post.plan.change.identities if post else ()
        listed = await read_current(service, self.flow, self.recent, in_doubt)
        async with self.lease.transaction() as tx:
            # More requests may have been approved while the list was being read.
            approved = await self._approved(tx)
            work, plan = Work(self.bot, tx, await tx.now(), approved), None
            if post is None or post.is_settled_by(listed, self.begun.at):
                plan = await self._plan(work, approved, post, listed)
                await work.write()
                if post is not None:
                    await store.forget_post(tx, self.flow.key)
                post = Post(plan, work.at) if plan else None
                if post is not None:
                    await store.add_post(tx, self.flow.key, post)
            if plan is None:
                return None, await self._end(work, post)
            await self.lease.require(tx)
        return plan, None

    async def _approved(self, tx: Transaction) -> list[Request]:
        """Lock the flow, and return its approved requests, oldest decision first."""
        await lock_flow(tx, self.flow.key)
        approved = await store.requests_in(tx, State.APPLYING, flow_key=self.flow.key)
        return sorted(approved, key=lambda one: (one.round.decided_at or one.created_at, one.id))

    async def _send(self, plan: ListChangePlan) -> Again | None:
        """Send a plan's list, and record the service's answer. Return when to run again."""
        self.lease.check()
        # Connecting can take up to 5 s, so the lease is checked again once connected.
        service = self.bot.flows.service()
        answered = await service.replace(self.flow.sid, plan.after, lambda: self.lease.is_fresh)
        spellings = plan.spellings_on(answered, is_answer=True)
        sent = [spellings.get(identity, identity) for identity in plan.after]
        is_as_sent = sorted(sent) == sorted(answered)
        again = None
        async with self.lease.transaction() as tx:
            await lock_flow(tx, self.flow.key)
            loaded = await concerned(tx, self.flow, plan, self.access)
            work = Work(self.bot, tx, await tx.now(), loaded)
            settling = Settling(work, self.flow, self.access)
            await settling.settle(plan, work.at, answered, spellings)
            await work.write()
            await store.forget_post(tx, self.flow.key)
            await store.forget_lists(tx, self.flow.key, work.at - CONFIRMED)
            if is_as_sent:
                again = await self._end(work, None)
            else:
                await self.lease.require(tx)
        if unknown := plan.unknown_in(answered, spellings):
            raise StoredOtherwise(answered, unknown)
        if not is_as_sent:
            raise ResponseUnreadable("flow", OTHER_LIST)
        return again

    async def _end(
        self, work: Work, post: Post | None, error: GatehouseError | None = None
    ) -> Again | None:
        """End the run in a transaction that has stored its results. Return when to run again."""
        tries = self.lease.job.tries + 1 if error else 1
        approved = [one for one in work.requests if one.state is State.APPLYING]
        ids = {request.id for request in work.requests}
        approved += [one for one in self.begun.requests if one.id not in ids]
        waiting = Waiting(work.at, self.flow, approved, post, self.access)
        at = next_run(waiting, tries, error, has_missing=self.has_missing)
        again = Again(at, tries) if at else None
        # Nothing is stored if another process has taken over.
        await self.lease.require(work.tx)
        await self.lease.finish(work.tx, again)
        return again

    async def _plan(
        self, work: Work, approved: Sequence[Request], post: Post | None, listed: tuple[str, ...]
    ) -> ListChangePlan | None:
        """Return the next plan, or None if it's empty."""
        at = work.at
        settling = Settling(work, self.flow, self.access)
        lists = await self._seen(settling, work, approved, post, listed)
        left = list[Request]()
        for one in approved:
            request = await work.request(one.id)
            if request is None or request.state is not State.APPLYING:
                continue
            if request.attempts.tries >= TRIES:
                await settling.note_try(request.id, failed)
            else:
                left.append(request)
        await self._end_what_is_gone(settling, left, listed)
        ends = {spelling: access.ends_at for spelling, access in self.access.items()}
        current = CurrentList(listed, ends)
        ready = list[Request]()
        for request in left:
            reviewed = await self._reviewed(work, settling, request, current)
            if reviewed is not None:
                ready.append(reviewed)
        self.begun = waiting = Waiting(at, self.flow, ready, None, self.access)
        ready, over = waiting.ready, waiting.over
        # A request's last attempt is sent alone so that it can't make other requests fail.
        if any(request.attempts.tries == TRIES - 1 for request in ready):
            ready, over = ready[:1], []
        plan = make_plan(self.bot.new_id(), at, lists, ready, over)
        if not plan.change.is_empty:
            detail = plan_detail(plan, plan.after)
            work.record(AuditEntry(BOT, "flow.sent", self.flow.sid, detail))
            return plan
        work.add(await concerned(work.tx, self.flow, plan, self.access))
        await settling.settle(plan, at, listed, {})
        return None

    async def _seen(
        self,
        settling: Settling,
        work: Work,
        approved: Sequence[Request],
        post: Post | None,
        listed: tuple[str, ...],
    ) -> list[FlowList]:
        """Store the list that was read, and what it shows of the POST in doubt, if there's one.

        Return the flow's lists since the approved requests were made. The last one was just read.
        """
        if post is not None:
            plan = post.plan
            work.add(await concerned(work.tx, self.flow, plan, self.access))
            await settling.settle(plan, post.sent_at, listed, plan.spellings_on(listed))
            # If the POST took effect, sending it again would add these entries again.
            if unclear := plan.unclear_in(listed):
                reason = reason_of(StoredOtherwise(listed, unclear))
                for request_id in plan.request_ids:
                    await settling.note_try(request_id, partial(failed, reason=reason))
        known_id = self.recent[-1].id if self.recent else 0
        first_id = min((request.list_id for request in approved), default=0) or known_id
        lists = await lists_from(work.tx, self.flow.key, first_id)
        if not lists or lists[-1].identities != listed:
            lists.append(await add_list(work.tx, self.flow.key, listed))
        return lists

    async def _end_what_is_gone(
        self, settling: Settling, left: Sequence[Request], listed: Collection[str]
    ) -> None:
        """End the access of people who have been missing from all lists for a minute.

        People whom a request in `left` adds or removes don't count as missing.
        """
        taken = {person.spelling for request in left for person in request.left}
        there = {*listed}
        missing = [
            access
            for spelling, access in self.access.items()
            if spelling not in there and spelling not in taken
        ]
        unknown = [identity for identity in listed if identity not in self.access]
        spellings = stored_spellings([access.spelling for access in missing], unknown)
        seen = {identity for one in self.recent for identity in one.identities}
        is_a_minute = bool(self.recent) and self.recent[0].at + GONE <= self.begun.at
        self.has_missing = False
        for access in missing:
            spelling = access.spelling
            if spelling in spellings:
                await settling.respell(access, spellings[spelling])
            elif is_a_minute and spelling not in seen:
                await settling.end(spelling, Over.GONE)
            else:
                self.has_missing = True

    async def _reviewed(
        self, work: Work, settling: Settling, request: Request, current: CurrentList
    ) -> Request | None:
        """Return the request as the list spells its people, or None if it can't be applied.

        If the effect differs from the card, ask for a new decision. A request whose access would
        already have ended expires. A request that has already changed something fails instead.
        Access that ended while an approved change waited for a retry doesn't count as a difference.
        """
        review = review_now(self.bot, request, work.at, current)
        if not review.is_over:
            if not review.news:
                if review.request.people != request.people:
                    work.put(replace(request, people=review.request.people))
                return await work.request(request.id)
            # A change without approval gets a card only after its first attempts.
            if request.requested.without_approval and request.attempts.retried_by is None:
                return request
            decided_at = request.round.decided_at or work.at
            decided = review_now(self.bot, request, decided_at, current)
            if not decided.news or decided.is_over:
                return request
        if request.has_effect:
            reason = " ".join((*review.news, FOR_THE_REST))
            await settling.note_try(request.id, partial(failed, reason=reason))
        else:
            work.ask_again(review)
        return None

    async def _note(
        self, plan: ListChangePlan | None, error: ServiceError | NotConfigured
    ) -> Again | None:
        """Record the failure for all affected requests and access, and for the POST.

        Return when to run again.
        """
        async with self.lease.transaction() as tx:
            approved = await self._approved(tx)
            work = Work(self.bot, tx, await tx.now(), approved)
            post = await store.post_of(tx, self.flow.key)
            if plan is not None and post is not None:
                post = post.after(error)
                await store.forget_post(tx, self.flow.key)
                if post is not None:
                    await store.add_post(tx, self.flow.key, post)
            waiting = Waiting(work.at, self.flow, approved, post, self.access)
            settling = Settling(work, self.flow, self.access)
            ids = plan.request_ids if plan else [request.id for request in waiting.ready]
            overdue: list[str] = []
            if plan is None or not plan.steps:
                overdue = sorted({access.request_id for access in waiting.over})
            is_shared = plan is not None and len(plan.steps) + len(plan.over) > 1
            for request_id in ids:
                of_request = post if post and request_id in post.plan.request_ids else None
                note = partial(tried, error=error, at=work.at, post=of_request, is_shared=is_shared)
                await settling.note_try(request_id, note)
            for request_id in overdue:
                await settling.say_overdue(request_id, reason_of(error))
            await work.write()
            return await self._end(work, post, error)
