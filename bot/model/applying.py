"""What is sent to the flow service: one list for everything that is approved at that moment.

A plan is stored before it is sent, so that after a crash in between it is known what was meant and
whether it arrived.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.model.requests import Done, Grant, Request
from bot.model.testusers import (
    Change,
    apply_change,
    difference,
    effect_of,
    outside_edits,
)


@dataclass(frozen=True, slots=True)
class Step:
    """One request's part of a plan: what it does, what was true already, what others did."""

    request_id: str
    change: Change
    already: Change
    outside: Change
    size_before: int
    size_after: int

    def done(
        self, at: datetime, request: Request, later: Change, grants: Mapping[str, Grant]
    ) -> Done:
        """What is remembered of it once it is true.

        `later` is what others did after the plan; `grants` are those that stand just before this
        step, the ones that an earlier step of the plan made among them.
        """
        additions = request.wish.change.additions
        ends = {one: request.end_for(one, at) for one in additions}
        touched = {*self.change.removals, *self.already.additions} & grants.keys()
        return Done(
            at,
            self.change,
            self.already,
            self.outside.then(later),
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
class Plan:
    """The list as it was read and as it will be sent, and why."""

    id: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    steps: tuple[Step, ...]
    endings: tuple[Ending, ...] = ()

    @property
    def changes_nothing(self) -> bool:
        """Whether the list already is as it should be, so that nothing need be sent."""
        return self.before == self.after

    @property
    def parts(self) -> int:
        """How many wishes it serves."""
        return len(self.steps) + len(self.endings)


def make_plan(
    plan_id: str,
    listed: Sequence[str],
    requests: Sequence[Request],
    own_changes: Mapping[str, Sequence[Change]],
    due: Sequence[Grant],
) -> Plan:
    """The plan for the approved requests, oldest decision first, and the grants that are over.

    `own_changes` has, by request id, what the bot itself did to the list since that request was
    made. A request that adds somebody again replaces the end of the grant, due or not.
    """
    current, steps = tuple(listed), []
    for request in requests:
        step, current = _step(request, current, listed, own_changes[request.id])
        steps.append(step)
    named = {one for request in requests for one in request.wish.change.identities}
    over = [grant for grant in due if grant.identity not in named]
    endings = [Ending(one.identity, one.request_id, one.identity not in current) for one in over]
    current = apply_change(current, Change(removals=tuple(one.identity for one in over)))
    # Who goes and comes back within one plan keeps their place: nothing is sent for an order.
    after = apply_change(listed, difference(listed, current))
    return Plan(plan_id, tuple(listed), after, tuple(steps), tuple(endings))


def _step(
    request: Request,
    current: tuple[str, ...],
    listed: Sequence[str],
    own: Sequence[Change],
) -> tuple[Step, tuple[str, ...]]:
    wished = request.wish.change
    effect = effect_of(wished, set(current), {}, timed=())
    after = apply_change(current, effect.change)
    step = Step(
        request.id,
        effect.change,
        effect.dropped,
        outside_edits(request.wish.seen, own, listed),
        len(current),
        len(after),
    )
    return step, after


def has_landed(plan: Plan, found: Sequence[str]) -> bool:
    """Whether a plan that was perhaps sent has arrived: the list is nearer to its end."""
    return _distance(plan.after, found) < _distance(plan.before, found)


def _distance(one: Sequence[str], other: Sequence[str]) -> int:
    return len(difference(one, other).identities)


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
