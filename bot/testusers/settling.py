"""The check of a list: what it settles, and what to send next."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bot.approvals.rules.approval import State
from bot.services.errors import ResponseUnreadable
from bot.store.engine import Transaction
from bot.testusers.finishing import ChangeSet
from bot.testusers.rules import tries
from bot.testusers.rules.applying import (
    CONFIRMED,
    Ending,
    ListChangePlan,
    Outcome,
    Post,
    is_before,
    make_plan,
    whose_turn,
)
from bot.testusers.rules.changes import Flow
from bot.testusers.rules.requests import Grant, RecordedChange, Request
from bot.testusers.rules.spellings import stored_spellings
from bot.testusers.setup import Setup
from bot.testusers.store import flows, grants, requests

STALE = (
    "The flow service showed an older list, without a change that Gatehouse has just made."
    " I left the list alone."
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The open work for a flow, as stored.

    `requests` are the approved requests, oldest decision first; `post` is the POST in doubt; `due`
    are the expired grants; `starting` are the people whose approved change is about to start;
    `latest` is the last change that the bot made, if it is recent.
    """

    at: datetime
    flow: Flow
    requests: Sequence[Request]
    post: Post | None
    due: Sequence[Grant]
    starting: Collection[str]
    latest: RecordedChange | None

    @classmethod
    async def load(cls, tx: Transaction, flow_key: str) -> "Waiting":
        """Load the flow's open work."""
        now, post = await tx.now(), await flows.post(tx, flow_key)
        applying, due = await requests.applying(tx, flow_key), await grants.due(tx, flow_key)
        scheduled = await requests.scheduled(tx, flow_key) if due else []
        starting = {
            identity
            for request in scheduled
            if request.requested.starts_at and request.requested.starts_at <= now
            for identity in request.left.identities
        }
        flow = applying[0].flow if applying else await grants.flow_of(tx, flow_key)
        if flow is None and post is not None and post.plan.steps:
            sent_for = await requests.load(tx, post.plan.steps[0].request_id)
            flow = sent_for.flow if sent_for else None
        latest = await flows.latest_changes(tx, flow_key, 1)
        is_recent = latest and now - latest[0].at < CONFIRMED
        recent = latest[0] if is_recent else None
        return cls(now, flow or Flow(flow_key), applying, post, due, starting, recent)

    @property
    def ready(self) -> list[Request]:
        """The requests whose next attempt is due."""
        return whose_turn(self.requests, self.at)

    @property
    def over(self) -> list[Grant]:
        """The grants to end, except for people named by an approved request."""
        named = {identity for request in self.requests for identity in request.left.identities}
        named |= {*self.starting}
        return [grant for grant in self.due if grant.identity not in named]

    @property
    def is_held(self) -> bool:
        """True if the flow has to wait until the POST can no longer arrive."""
        return self.post is not None and self.post.is_held(self.at)

    @property
    def is_anything(self) -> bool:
        """True if the list has to be read."""
        return bool(self.ready or self.post or self.over)


@dataclass
class Look:
    """The check of a list, in one transaction.

    `looked_at` is a time before the list was read; `missing` are the people with a grant who were
    not on the list the last time, and `gone` those who are now missing for the first time.
    """

    setup: Setup
    tx: Transaction
    waiting: Waiting
    listed: tuple[str, ...]
    looked_at: datetime
    missing: Collection[str]
    gone: list[str] = field(default_factory=list)

    async def run(self) -> ListChangePlan | None:
        """Record what the list shows, and store and return the next plan, if there is one.

        Raises:
            ResponseUnreadable: The list lacks a change that was just confirmed.
        """
        waiting, post = self.waiting, self.waiting.post
        if is_before(waiting.latest, post, self.listed):
            raise ResponseUnreadable("flow", STALE)
        if post is not None and not post.is_settled_by(self.listed, self.looked_at):
            return await self._repeat(post)
        changes = await ChangeSet.begin(self.tx, waiting.flow)
        if post is not None and not await self._close(post, changes):
            await changes.write(self.setup.audit)
            return None
        left = []
        for request in map(changes.now, waiting.requests):
            if tries.is_spent(request) and request.state is State.APPLYING:
                await changes.note_try(request.id, _failed)
            elif request.state is State.APPLYING:
                left.append(request)
        await self._end_what_is_gone(changes, left)
        asking_again = [request for request in left if await self._asks_again(changes, request)]
        plan = await self._plan(
            changes, [request for request in left if request not in asking_again]
        )
        if plan.changes_nothing:
            await changes.settle(plan, waiting.at, self.listed)
        await changes.write(self.setup.audit)
        return None if plan.changes_nothing else await self._store(Post(plan, waiting.at))

    async def _store(self, post: Post) -> ListChangePlan:
        await flows.put_post(self.tx, self.waiting.flow.key, post)
        return post.plan

    async def _repeat(self, post: Post) -> ListChangePlan | None:
        """Send the same list again if the bot doesn't know that it was sent; otherwise wait."""
        applying = {request.id for request in self.waiting.requests}
        if not (post.may_repeat(self.listed) and applying.issuperset(post.plan.request_ids)):
            return None
        return await self._store(Post(post.plan, self.waiting.at, sent_before=post.sent_at))

    async def _close(self, post: Post, changes: ChangeSet) -> bool:
        """Settle the POST; return False if the flow has to wait because the list was sent twice."""
        if post.outcome is not Outcome.CONFIRMED:
            at = post.sent_before or post.sent_at
            is_seen = await changes.settle(post.plan, at, self.listed)
            if not is_seen and post.outcome is not Outcome.ANSWERED:
                changes.never_arrived(post.plan)
        left = post.after(Outcome.CONFIRMED)
        is_over = left is None or not left.is_in_the_air(self.looked_at)
        await flows.keep_post(self.tx, self.waiting.flow.key, None if is_over else left)
        return is_over

    def _over(self, changes: ChangeSet) -> list[Grant]:
        """Return the grants to end, without grants that have just been ended or replaced."""
        return [
            grant for grant in self.waiting.over if changes.granted.get(grant.identity) == grant
        ]

    async def _end_what_is_gone(self, changes: ChangeSet, left: Iterable[Request]) -> None:
        """End the grants of people whom somebody else removed, once a second check confirms it."""
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
        """Ask again if the change's effect on this list differs from its card.

        Access that ended while an approved change waited for a retry is ignored.
        """
        if request.requested.without_approval or request.progress.part is not None:
            return False
        for at in (request.decided_at, self.waiting.at):
            review = await self.setup.review(self.tx, request, self.listed, at)
            if not review.news or review.is_over:
                return False
        await changes.ask_again(request.id, review, self.setup.rules.request_hours)
        return True

    async def _plan(self, changes: ChangeSet, left: Sequence[Request]) -> ListChangePlan:
        """Plan all due changes, a request's last attempt alone: it may make the others fail."""
        ready, over = whose_turn(left, self.waiting.at), self._over(changes)
        if any(map(tries.is_last_try, ready)):
            ready, over = ready[:1], []
        own = {
            request.id: [
                *await flows.changes_after(
                    self.tx, self.waiting.flow.key, request.requested.seen_change_id
                ),
                *changes.made,
            ]
            for request in ready
        }
        return make_plan(self.setup.new_id(), self.listed, self.waiting.at, ready, over, own)


def _failed(request: Request) -> Request:
    return tries.failed(request, request.progress.failure)
