"""What a look at a list settles, and what is left to be sent."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial

from bot.dataclass import dataclass
from bot.model.doubt import DoubtfulPost, Look, latest, look_at, sent_at, sent_for
from bot.model.testusers.applying import (
    ListChangePlan,
    Work,
    is_true,
    make_plan,
    true_already,
    whose_turn,
)
from bot.model.testusers.approval import State
from bot.model.testusers.changes import Change, Flow, apply_change
from bot.model.testusers.requests import Grant, Request
from bot.store import flows, grants, requests
from bot.store.engine import Transaction
from bot.workflows.testusers import failing
from bot.workflows.testusers.finishing import ChangeSet
from bot.workflows.testusers.setup import Setup


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits on a flow, as it is stored.

    `requests` are approved, the oldest decision first; `doubtful` have failed, and a POST for them
    is in doubt; `due` are grants that are over.
    """

    at: datetime
    requests: Sequence[Request]
    doubtful: Sequence[Request]
    posts: Sequence[DoubtfulPost]
    due: Sequence[Grant]
    flow: Flow

    @classmethod
    async def load(cls, tx: Transaction, flow_key: str) -> "Waiting":
        """Read it."""
        posts = await flows.posts(tx, flow_key)
        ids = sorted({step.request_id for post in posts for step in post.plan.steps})
        sent = [one for one in [await requests.load(tx, each) for each in ids] if one is not None]
        doubtful = [one for one in sent if one.state is State.FAILED]
        applying, due = await requests.applying(tx, flow_key), await grants.due(tx, flow_key)
        flow = next((one.flow for one in (*applying, *sent)), None)
        flow = flow or await grants.flow_of(tx, flow_key) or Flow(flow_key)
        return cls(await tx.now(), applying, doubtful, posts, due, flow)

    @property
    def ready(self) -> list[Request]:
        """The requests whose next try is due."""
        return whose_turn(self.requests, self.at)

    @property
    def next_try_at(self) -> datetime | None:
        """When a request has its next try; who waits for an earlier one has it with that one."""
        times, named = [], set[str]()
        for request in self.requests:
            if named.isdisjoint(request.left.identities):
                times.append(request.progress.retry_at or self.at)
            named.update(request.left.identities)
        return min(times, default=None)

    @property
    def over(self) -> list[Grant]:
        """The grants to end: an approved request for the same person has the last word."""
        named = {one for request in self.requests for one in request.left.identities}
        return [grant for grant in self.due if grant.identity not in named]

    @property
    def is_last_try_of_several(self) -> bool:
        """Whether a request has its last try, and would have it together with others."""
        is_last = any(map(failing.is_last_try, self.ready))
        return is_last and len(self.ready) + len(self.over) > 1

    @property
    def is_anything(self) -> bool:
        """Whether there is a reason to read the list."""
        return bool(self.ready or self.posts or self.over)


class Settling:
    """One look at a list, in one transaction.

    Args:
        setup: The parts that all steps share.
        tx: The transaction.
        flow: Whose list it is.
        waiting: What waits on it.
        listed: The list.
        looked_at: A time before it was read.
    """

    def __init__(
        self,
        setup: Setup,
        tx: Transaction,
        flow: Flow,
        waiting: Waiting,
        listed: Sequence[str],
        looked_at: datetime,
    ) -> None:
        self._setup = setup
        self._tx = tx
        self._flow = flow
        self._waiting = waiting
        self._listed = tuple(listed)
        self._look: Look = look_at(waiting.posts, listed, looked_at)
        self._repaired = apply_change(listed, self._look.repair)

    async def run(self, only: Collection[str] | None) -> ListChangePlan | None:
        """Write what the list tells, and store what is to be sent; return that, if anything is.

        `only` are the requests that it is for; with none of them it is for all that is no request.
        """
        changes = await ChangeSet.begin(self._tx, self._flow)
        for post, part in self._look.arrived:
            await changes.arrived(post, part)
        left = await self._settle(changes)
        plan = await self._plan(left, self._over(changes), only)
        if plan.is_needed and plan.changes_nothing:
            await changes.carry_out(plan)
        await self._write_posts(changes, plan)
        await changes.write(self._setup.audit)
        return plan if _is_sent(plan) else None

    async def _settle(self, changes: ChangeSet) -> list[Request]:
        """Finish what the list fulfils as it is, and what has had its tries; return what is left.

        One after the other, the oldest decision first: of two about a person the later one counts.
        """
        for request in self._waiting.doubtful:
            if self._is_true_after_all(request):
                await self._carry_out(changes, [request])
            else:
                await changes.keep_part(request.id, self._sent_at())
        spent = {one.id for one in self._waiting.requests if self._is_spent(one)}
        true = self._true_already(spent)
        for request in self._waiting.requests:
            if request.id in true:
                await self._carry_out(changes, [request])
            elif request.id in spent:
                in_doubt = any(post.is_of(request.id) for post in self._look.open)
                failed = partial(failing.failed, is_in_doubt=in_doubt)
                await changes.write_failed_try(request.id, failed, self._sent_at())
        gone = [one for one in self._over(changes) if one.identity not in self._repaired]
        await self._carry_out(changes, [], gone)
        return [one for one in self._waiting.requests if one.id not in true | spent]

    def _over(self, changes: ChangeSet) -> list[Grant]:
        """The grants to end, without those that were ended or replaced by what the list told."""
        return [one for one in self._waiting.over if changes.is_in_force(one)]

    async def _carry_out(
        self, changes: ChangeSet, fulfilled: Sequence[Request], gone: Sequence[Grant] = ()
    ) -> None:
        work = await self._work(fulfilled, gone)
        plan = make_plan(self._setup.new_id(), self._repaired, work)
        await changes.carry_out(plan, self._sent_at())

    def _is_true(self, request: Request) -> bool:
        """Whether the list fulfils it; what only a repair makes true is not so before that."""
        change = request.change_at(self._waiting.at)
        return all(is_true(change, one) for one in (self._listed, self._repaired))

    def _is_spent(self, request: Request) -> bool:
        return failing.is_spent(request) and not self._is_true(request)

    def _true_already(self, spent: Collection[str]) -> set[str]:
        waiting = [one for one in self._waiting.requests if one.id not in spent]
        return {one.id for one in true_already(waiting, self._is_true)}

    def _is_true_after_all(self, request: Request) -> bool:
        """Whether a request that has failed is fulfilled, and nobody decided otherwise since."""
        last = [post for post in self._look.posts if post.is_of(request.id)][-1]
        wanted, later = request.left, last.since
        is_contrary = not {*wanted.additions}.isdisjoint(later.removals)
        is_contrary |= not {*wanted.removals}.isdisjoint(later.additions)
        return not is_contrary and self._is_true(request)

    async def _plan(
        self, left: Sequence[Request], over: Sequence[Grant], only: Collection[str] | None
    ) -> ListChangePlan:
        ready = whose_turn(left, self._waiting.at)
        if only:
            work = await self._work([one for one in ready if one.id in only], [])
        else:
            there = [one for one in over if one.identity in self._repaired]
            work = await self._work(ready if only is None else [], there, self._look.repair)
        return make_plan(self._setup.new_id(), self._listed, work)

    async def _work(
        self, chosen: Sequence[Request], due: Sequence[Grant], repair: Change | None = None
    ) -> Work:
        posts = self._look.posts
        found = [part for _, part in self._look.arrived]
        own: dict[str, list[Change]] = {}
        for request in chosen:
            known = await flows.changes_after(
                self._tx, self._flow.key, request.requested.seen_change_id
            )
            own[request.id] = [*known, *found]
        sent = {one.id: latest(one.progress.landed, sent_for(posts, one.id)) for one in chosen}
        ended = {ending.identity for post in posts for ending in post.plan.endings}
        return Work(self._waiting.at, chosen, due, own, sent, ended, repair or Change())

    def _sent_at(self) -> Mapping[str, datetime]:
        """When each request was sent that is in doubt, the last time."""
        return sent_at(self._look.posts)

    async def _write_posts(self, changes: ChangeSet, plan: ListChangePlan) -> None:
        again = [
            post
            for post in self._look.closed
            if post.arrived.is_empty and post.has_same_content(plan)
        ]
        for post in self._look.closed:
            await flows.drop_post(self._tx, post.plan.id)
            if post.arrived.is_empty and post not in again:
                changes.never_arrived(post)
        await self._say_what_is_known(changes)
        for post in self._look.open:
            decided = post.decided(changes.decided, self._listed)
            await flows.put_post(self._tx, self._flow.key, decided)
        if _is_sent(plan):
            times = 1 + sum(post.times for post in again)
            sent = DoubtfulPost(plan, self._waiting.at, self._listed, times=times)
            await flows.put_post(self._tx, self._flow.key, sent)

    async def _say_what_is_known(self, changes: ChangeSet) -> None:
        """Who has failed, and is not in doubt any more, is not said to be."""
        for request in self._waiting.doubtful:
            if not any(post.is_of(request.id) for post in self._look.open):
                await changes.say_what_is_known(request.id, failing.known)


def _is_sent(plan: ListChangePlan) -> bool:
    return plan.is_needed and not plan.changes_nothing
