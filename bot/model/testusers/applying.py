"""What is sent to the flow service: one list for everything that is approved at that moment.

A plan is stored before it is sent, so that after a crash in between it is known what was meant:
`bot.model.doubt` says what the list tells of it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime

from bot.dataclass import dataclass
from bot.model.testusers.changes import (
    NO_CHANGE,
    Change,
    apply_change,
    difference,
    effect_of,
    outside_edits,
)
from bot.model.testusers.requests import Done, Grant, Request


@dataclass(frozen=True, slots=True)
class Step:
    """One request's part of a plan: what it does, what was true already, what others did.

    `wanted` is what the request asks for at that moment, `over` are those whom it asks for and
    whose time is over by then.
    """

    request_id: str
    change: Change
    already: Change
    outside: Change
    size_before: int
    size_after: int
    wanted: Change = NO_CHANGE
    over: tuple[str, ...] = ()

    def done(self, at: datetime, request: Request, grants: Mapping[str, Grant]) -> Done:
        """What is remembered of it once it is true.

        `grants` are those that stand just before this step, the ones that an earlier step of the
        plan made among them.
        """
        ends = {one: request.end_for(one, at) for one in self.wanted.additions}
        touched = {*self.change.removals, *self.already.additions} & grants.keys()
        return Done(
            at,
            self.change,
            self.already,
            self.outside,
            self.size_before,
            self.size_after,
            {one: end for one, end in ends.items() if end is not None},
            {one: grants[one].ends_at for one in sorted(touched)},
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """A grant whose time is over; `was_gone` when somebody else had removed the person."""

    identity: str
    request_id: str
    was_gone: bool


@dataclass(frozen=True, slots=True)
class ListChangePlan:
    """The list as it was read and as it will be sent, and why.

    `repair` puts right what a POST undid that arrived late.
    """

    id: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    steps: tuple[Step, ...]
    endings: tuple[Ending, ...] = ()
    repair: Change = NO_CHANGE

    @property
    def changes_nothing(self) -> bool:
        """Whether the list already is as it should be, so that nothing need be sent."""
        return self.before == self.after

    @property
    def parts(self) -> int:
        """How many requests and grants it serves."""
        return len(self.steps) + len(self.endings)

    @property
    def is_needed(self) -> bool:
        """Whether it serves anybody."""
        return bool(self.parts or self.repair.identities)


@dataclass(frozen=True, slots=True)
class Work:
    """What there is to do on a flow, and what the bot itself did before.

    `requests` are approved, the oldest decision first; `due` are the grants that are over. By
    request id, `own` has what the bot did to the list since the request was made, and `sent` what
    it sent for the request and is on the list since then, or in doubt. `ended` are those whose
    removal was sent so.
    """

    at: datetime
    requests: Sequence[Request] = ()
    due: Sequence[Grant] = ()
    own: Mapping[str, Sequence[Change]] = field(default_factory=dict)
    sent: Mapping[str, Change] = field(default_factory=dict)
    ended: Collection[str] = ()
    repair: Change = NO_CHANGE


def make_plan(plan_id: str, listed: Sequence[str], work: Work) -> ListChangePlan:
    """The plan for everything that there is to do, on the list that was just read."""
    repaired = apply_change(listed, work.repair)
    current, steps = repaired, []
    for request in work.requests:
        step, current = _step(request, current, repaired, work)
        steps.append(step)
    endings = [
        Ending(one.identity, one.request_id, not {one.identity} & {*current, *work.ended})
        for one in work.due
    ]
    gone = Change(removals=tuple(one.identity for one in work.due))
    current = apply_change(current, gone)
    # Who goes and comes back within one plan keeps their place: nothing is sent for an order.
    after = apply_change(listed, difference(listed, current))
    return ListChangePlan(plan_id, tuple(listed), after, tuple(steps), tuple(endings), work.repair)


def _step(
    request: Request, current: tuple[str, ...], listed: Sequence[str], work: Work
) -> tuple[Step, tuple[str, ...]]:
    """What the bot sent for the request before, and is there now, is its doing."""
    wanted, sent = request.change_at(work.at), work.sent.get(request.id, Change())
    to_do = effect_of(wanted, set(current), {}, timed=()).change
    others = wanted.without({*to_do.identities, *sent.identities})
    mine = wanted.without(others.identities)
    after = apply_change(current, to_do)
    grown = len(mine.additions) - len(mine.removals)
    step = Step(
        request.id,
        mine,
        others,
        outside_edits(request.requested.seen, work.own[request.id], listed),
        len(after) - grown,
        len(after),
        wanted,
        tuple(one for one in request.left.additions if one not in wanted.additions),
    )
    return step, after


def is_true(change: Change, listed: Collection[str]) -> bool:
    """Whether all who were to come are there, and none of those who were to go."""
    return set(change.additions) <= set(listed) and not set(change.removals) & set(listed)


def whose_turn(waiting: Sequence[Request], at: datetime) -> list[Request]:
    """The approved requests whose next try is due.

    Of those that name the same person, a later one waits until the earlier one is settled.
    """
    named: set[str] = set()
    due = []
    for request in waiting:
        identities = request.left.identities
        if (request.progress.retry_at or at) <= at and named.isdisjoint(identities):
            due.append(request)
        else:
            named.update(identities)
    return due


def true_already(
    waiting: Sequence[Request], is_fulfilled: Callable[[Request], bool]
) -> list[Request]:
    """The requests that the list fulfils as it is, unless an earlier one changes that."""
    named: set[str] = set()
    fulfilled = []
    for request in waiting:
        identities = request.left.identities
        if is_fulfilled(request) and named.isdisjoint(identities):
            fulfilled.append(request)
        else:
            named.update(identities)
    return fulfilled


def inverse_of(
    done: Done, listed: Collection[str], at: datetime
) -> tuple[Change, Mapping[str, datetime]]:
    """What takes back what was really done, and the ends of those who get an earlier one again.

    Who was added goes, who was removed comes. Whose end was changed gets the earlier one, where
    they are listed still. An earlier end that is over by now lets nobody stay or come.
    """
    ends = {one: end for one, end in done.previous_ends.items() if end is not None}
    over = {one for one, end in ends.items() if end <= at}
    changed = [
        one
        for one in done.already.additions
        if one in listed and done.previous_ends.get(one) != done.ends_at.get(one)
    ]
    additions = [one for one in (*done.change.removals, *changed) if one not in over]
    removals = [*done.change.additions, *(one for one in changed if one in over)]
    return Change(tuple(additions), tuple(removals)), ends
