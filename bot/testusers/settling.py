"""A look at a list: what it settles, and what to send next."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    Verdict,
    Work,
    is_before,
    is_true,
    make_plan,
    true_already,
    whose_turn,
)
from bot.testusers.rules.changes import Change, Flow
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
    """The open work on a flow, as it is stored.

    `requests` are approved, the oldest decision first; `post` is in doubt; `due` are grants that
    are over; `starting` are the people whose approved change is about to start; `latest` is the
    last change that the bot made.
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
        """Read the flow's open work."""
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
        is_fresh = latest and now - latest[0].at < CONFIRMED
        return cls(
            now,
            flow or Flow(flow_key),
            applying,
            post,
            due,
            starting,
            latest[0] if is_fresh else None,
        )

    @property
    def ready(self) -> list[Request]:
        """The requests whose next try is due."""
        return whose_turn(self.requests, self.at)

    @property
    def next_try_at(self) -> datetime | None:
        """The time of the next try; a request waits for earlier ones about the same people."""
        times, named = [], set[str]()
        for request in self.requests:
            if named.isdisjoint(request.left.identities):
                times.append(request.progress.retry_at or self.at)
            named.update(request.left.identities)
        return min(times, default=None)

    @property
    def over(self) -> list[Grant]:
        """The grants to end, except where an approved request names the same person."""
        named = {identity for request in self.requests for identity in request.left.identities}
        named |= {*self.starting}
        return [grant for grant in self.due if grant.identity not in named]

    @property
    def is_last_try_of_several(self) -> bool:
        """True if a request has its last try, and would have it together with others."""
        is_last = any(map(tries.is_last_try, self.ready))
        return is_last and len(self.ready) + len(self.over) > 1

    @property
    def is_held(self) -> bool:
        """True if nothing can be done until the POST can no longer arrive."""
        return self.post is not None and self.post.is_held(self.at)

    @property
    def is_anything(self) -> bool:
        """True if there is a reason to read the list."""
        return bool(self.ready or self.post or self.over) and not self.is_held


class Look:
    """A look at a list, in one transaction.

    Args:
        setup: The parts that all steps share.
        tx: The transaction.
        waiting: What waits on the flow.
        listed: The list.
        looked_at: A time before it was read.
        gone: The people with a grant who were missing from the list when it was read before.

    Raises:
        ResponseUnreadable: The list lacks a change that was just confirmed.
    """

    def __init__(
        self,
        setup: Setup,
        tx: Transaction,
        waiting: Waiting,
        listed: Sequence[str],
        looked_at: datetime,
        gone: Collection[str],
    ) -> None:
        if is_before(waiting.latest, waiting.post, listed):
            raise ResponseUnreadable("flow", STALE)
        self._setup = setup
        self._tx = tx
        self._waiting = waiting
        self._listed = tuple(listed)
        self._looked_at = looked_at
        self._gone_before = gone
        self.gone: list[str] = []
        """People with a grant who are missing now for the first time."""

    async def run(self, only: Collection[str] | None) -> ListChangePlan | None:
        """Record what the list shows, and store the next plan; return it, if there is one.

        `only` limits the plan to these requests; an empty `only` limits it to work that is no
        request.
        """
        changes = await ChangeSet.begin(self._tx, self._waiting.flow)
        post = self._waiting.post
        if post is not None:
            spellings = stored_spellings(
                [
                    identity
                    for identity in post.plan.change.additions
                    if identity not in self._listed
                ],
                [identity for identity in self._listed if identity not in post.plan.after],
            )
            as_sent = _as_sent(self._listed, spellings)
            verdict = post.verdict(as_sent, self._looked_at)
            if verdict is Verdict.REPEAT and self._are_applying(post):
                await self._store(post.sent_again(self._waiting.at))
                return post.plan
            if verdict is not Verdict.SETTLE:
                return None
            if post.outcome is not Outcome.CONFIRMED:
                await self._settle_post(changes, post, as_sent, spellings)
            if await self._close(post):
                await changes.write(self._setup.audit)
                return None
        left = await self._settle(changes)
        await self._end_what_is_gone(changes, left)
        plan = await self._plan(changes, left, only)
        if plan.parts and plan.changes_nothing:
            await changes.carry_out(plan)
        await changes.write(self._setup.audit)
        if plan.changes_nothing:
            return None
        await self._store(Post(plan, self._waiting.at))
        return plan

    async def _store(self, post: Post) -> None:
        await flows.put_post(self._tx, self._waiting.flow.key, post)

    def _are_applying(self, post: Post) -> bool:
        return {*post.plan.request_ids} <= {request.id for request in self._waiting.requests}

    async def _settle_post(
        self,
        changes: ChangeSet,
        post: Post,
        as_sent: Sequence[str],
        spellings: Mapping[str, str],
    ) -> None:
        at = post.sent_before or post.sent_at
        is_seen = await changes.settle(post.plan, at, as_sent, spellings)
        if not is_seen and post.outcome is not Outcome.ANSWERED:
            changes.never_arrived(post.plan)
        await changes.no_longer_unsure(post.plan.request_ids)

    async def _close(self, post: Post) -> bool:
        """Close the POST; return True if the flow has to wait because the list was sent twice."""
        if post.sent_before is not None and post.is_in_the_air(self._looked_at):
            await self._store(replace(post, outcome=Outcome.CONFIRMED, sent_before=None))
            return True
        await flows.drop_post(self._tx, self._waiting.flow.key)
        return False

    async def _settle(self, changes: ChangeSet) -> list[Request]:
        """Finish requests that the list fulfils or that are out of tries; return the others.

        The oldest decision comes first: of two about the same person, the later one counts.
        """
        now = map(changes.now, self._waiting.requests)
        applying = [request for request in now if request.state is State.APPLYING]
        spent = [
            request
            for request in applying
            if tries.is_spent(request) and not self._is_true(request)
        ]
        fulfilled = true_already(
            [request for request in applying if request not in spent], self._is_true
        )
        for request in applying:
            if request in fulfilled:
                work = await self._work(changes, [request], [])
                await changes.carry_out(make_plan(self._setup.new_id(), self._listed, work))
            elif request in spent:
                await changes.note_try(request.id, _failed)
        return [request for request in applying if request not in (*fulfilled, *spent)]

    def _is_true(self, request: Request) -> bool:
        return is_true(request.change_at(self._waiting.at), self._listed)

    def _over(self, changes: ChangeSet) -> list[Grant]:
        """Return the grants to end, without those that the list has ended or replaced."""
        return [
            grant for grant in self._waiting.over if changes.granted.get(grant.identity) == grant
        ]

    async def _end_what_is_gone(self, changes: ChangeSet, left: Iterable[Request]) -> None:
        """End the grants of people whom somebody else has removed, confirmed by a second look."""
        for grant in self._over(changes):
            if grant.identity not in self._listed:
                await changes.end(Ending(grant.identity, grant.request_id, was_gone=True))
        named = {identity for request in left for identity in request.left.identities}
        named.update(grant.identity for grant in self._waiting.due)
        missing = {
            identity: grant
            for identity, grant in changes.granted.items()
            if identity not in self._listed and identity not in named
        }
        unknown = [identity for identity in self._listed if identity not in changes.granted]
        spellings = stored_spellings(list(missing), unknown)
        for identity, grant in missing.items():
            if identity in spellings:
                await changes.respell(grant, spellings[identity])
            elif identity in self._gone_before:
                await changes.end(Ending(identity, grant.request_id, was_gone=True))
            else:
                self.gone.append(identity)

    async def _plan(
        self, changes: ChangeSet, left: Sequence[Request], only: Collection[str] | None
    ) -> ListChangePlan:
        ready = whose_turn(left, self._waiting.at)
        if only:
            work = await self._work(
                changes, [request for request in ready if request.id in only], []
            )
        else:
            work = await self._work(changes, ready if only is None else [], self._over(changes))
        return make_plan(self._setup.new_id(), self._listed, work)

    async def _work(
        self, changes: ChangeSet, chosen: Sequence[Request], due: Sequence[Grant]
    ) -> Work:
        own: dict[str, list[Change]] = {}
        for request in chosen:
            seen = request.requested.seen_change_id
            known = await flows.changes_after(self._tx, self._waiting.flow.key, seen)
            own[request.id] = [*known, *changes.made]
        return Work(self._waiting.at, chosen, due, own)


def _failed(request: Request) -> Request:
    return tries.failed(request, request.progress.failure)


def _as_sent(listed: Sequence[str], spellings: Mapping[str, str]) -> tuple[str, ...]:
    sent = {stored_as: identity for identity, stored_as in spellings.items()}
    return tuple(sent.get(identity, identity) for identity in listed)
