"""The list that is sent to the flow service, and the POST whose outcome is not known yet.

One list serves everything that is approved at that moment. Its plan is stored before it is sent.
As long as the outcome is unknown, the POST is in doubt: the bot reads the list and sends nothing
else to the flow.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from bot.testusers.rules.changes import (
    NO_CHANGE,
    Change,
    apply_change,
    difference,
    effect_of,
    outside_edits,
)
from bot.testusers.rules.requests import Done, Grant, RecordedChange, Request

IN_DOUBT = timedelta(seconds=60)
"""A POST without an answer is not expected to arrive any later after it was sent."""

CONFIRMED = timedelta(seconds=60)
"""For this long after a confirmed change, a list that lacks it is not believed."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request's part of a plan: its changes, what was true already, and what others changed.

    `wanted` is the change that the request asks for at that moment; `over` are the people in it
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
        """Return the record of the step to keep once it has taken effect.

        `grants` are those that stand just before this step, the ones that an earlier step of the
        plan made among them.
        """
        ends = {
            identity: request.requested.end_of(identity, at) for identity in self.wanted.additions
        }
        touched = {*self.change.removals, *self.already.additions} & grants.keys()
        return Done(
            at,
            self.change,
            self.already,
            self.outside,
            self.size_before,
            self.size_after,
            {identity: end for identity, end in ends.items() if end is not None},
            {identity: grants[identity].ends_at for identity in sorted(touched)},
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """A grant whose time is over; `was_gone` if somebody else had removed the person."""

    identity: str
    request_id: str
    was_gone: bool


@dataclass(frozen=True, slots=True)
class ListChangePlan:
    """The list as it was read and as it will be sent, and the requests and grants behind it."""

    id: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    steps: tuple[Step, ...]
    endings: tuple[Ending, ...] = ()

    @property
    def change(self) -> Change:
        """The people who are added and removed."""
        return difference(self.before, self.after)

    @property
    def request_ids(self) -> list[str]:
        """The requests in the plan."""
        return [step.request_id for step in self.steps]

    @property
    def changes_nothing(self) -> bool:
        """True if the list is right already, so that nothing is sent."""
        return self.before == self.after

    @property
    def parts(self) -> int:
        """The number of requests and grants in the plan."""
        return len(self.steps) + len(self.endings)


class Outcome(StrEnum):
    """The known outcome of a POST that was about to be sent."""

    UNKNOWN = "unknown"
    """Perhaps it was never sent: its process died. The same list may be sent a second time."""

    UNANSWERED = "unanswered"
    """It was sent, and the service may still carry it out."""

    ANSWERED = "answered"
    """The answer was an error or another list: the next look shows all there is."""

    CONFIRMED = "confirmed"
    """It took effect, and was sent twice: the first one may still arrive."""


class Verdict(StrEnum):
    """The next step for a POST in doubt after a look at the list."""

    WAIT = "wait"
    REPEAT = "repeat"
    SETTLE = "settle"


@dataclass(frozen=True, slots=True)
class Post:
    """A flow's POST in doubt. `sent_before` is when the same list was sent before."""

    plan: ListChangePlan
    sent_at: datetime
    outcome: Outcome = Outcome.UNKNOWN
    sent_before: datetime | None = None

    @property
    def ends_at(self) -> datetime:
        """The time after which it is not in doubt any more, whatever the list shows."""
        return self.sent_at + IN_DOUBT

    def is_of(self, request_id: str) -> bool:
        """Return True if it was sent for the request."""
        return request_id in self.plan.request_ids

    def is_in_the_air(self, at: datetime) -> bool:
        """Return True if the service may still carry it out after this moment."""
        return self.outcome is not Outcome.ANSWERED and at < self.ends_at

    def is_held(self, at: datetime) -> bool:
        """Return True if only waiting helps: a look at the list would settle nothing."""
        return self.outcome is Outcome.CONFIRMED and self.is_in_the_air(at)

    def verdict(self, listed: Sequence[str], at: datetime) -> Verdict:
        """Return the verdict on a list that was read after `at`."""
        if not self.is_in_the_air(at) or is_true(self.plan.change, listed):
            return Verdict.SETTLE
        is_untouched = set(listed) == set(self.plan.before)
        return Verdict.REPEAT if self._may_repeat and is_untouched else Verdict.WAIT

    @property
    def _may_repeat(self) -> bool:
        return self.outcome is Outcome.UNKNOWN

    def sent_again(self, at: datetime) -> "Post":
        """Return the same list, sent again."""
        return replace(self, sent_at=at, sent_before=self.sent_at, outcome=Outcome.UNKNOWN)

    def left_of(self, outcome: Outcome | None) -> "Post | None":
        """Return the POST with this outcome; None if nothing stays in doubt. None means refused."""
        if outcome is Outcome.UNANSWERED:
            return replace(self, outcome=outcome)
        if self.sent_before is None:
            return replace(self, outcome=outcome) if outcome is Outcome.ANSWERED else None
        earlier = outcome if outcome is Outcome.CONFIRMED else Outcome.UNANSWERED
        return replace(self, outcome=earlier, sent_at=self.sent_before, sent_before=None)


@dataclass(frozen=True, slots=True)
class Work:
    """The open work on a flow.

    `requests` are approved, the oldest decision first; `due` are the grants that are over. `own`
    has by request id the bot's changes to the list since the request was made.
    """

    at: datetime
    requests: Sequence[Request] = ()
    due: Sequence[Grant] = ()
    own: Mapping[str, Sequence[Change]] = field(default_factory=dict)


def make_plan(plan_id: str, listed: Sequence[str], work: Work) -> ListChangePlan:
    """Return the plan for all open work, on the list that was just read."""
    current, steps = tuple(listed), []
    for request in work.requests:
        step, current = _step(request, current, listed, work)
        steps.append(step)
    endings = [
        Ending(grant.identity, grant.request_id, grant.identity not in current)
        for grant in work.due
    ]
    gone = Change(removals=tuple(grant.identity for grant in work.due))
    current = apply_change(current, gone)
    # Who goes and comes back within one plan keeps their place: nothing is sent for an order.
    after = apply_change(listed, difference(listed, current))
    return ListChangePlan(plan_id, tuple(listed), after, tuple(steps), tuple(endings))


def _step(
    request: Request, current: tuple[str, ...], listed: Sequence[str], work: Work
) -> tuple[Step, tuple[str, ...]]:
    wanted = request.change_at(work.at)
    change = effect_of(wanted, set(current), {}, timed=()).change
    after = apply_change(current, change)
    step = Step(
        request.id,
        change,
        wanted.without(change.identities),
        outside_edits(request.requested.seen, work.own[request.id], listed),
        len(current),
        len(after),
        wanted,
        tuple(identity for identity in request.left.additions if identity not in wanted.additions),
    )
    return step, after


def is_before(latest: RecordedChange | None, post: Post | None, listed: Sequence[str]) -> bool:
    """Return True if a list lacks a confirmed change: it may be an old copy.

    A POST in doubt may have reverted the change; then the list shows that.
    """
    if latest is None:
        return False
    expected = latest.change.without(post.plan.change.identities if post else ())
    seen = {*listed}
    shown = [*(identity in seen for identity in expected.additions)]
    shown += [identity not in seen for identity in expected.removals]
    return bool(shown) and not any(shown)


def is_true(change: Change, listed: Collection[str]) -> bool:
    """Return True if all additions are on the list, and none of the removals."""
    return set(change.additions) <= set(listed) and not set(change.removals) & set(listed)


def whose_turn(waiting: Sequence[Request], at: datetime) -> list[Request]:
    """Return the approved requests whose next try is due.

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
    """Return the requests that the list already fulfils, unless an earlier one changes that."""
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
    """Return the change that undoes what was really done, and the earlier ends that it restores.

    It removes the people who were added and adds those who were removed. People whose end was
    changed get the earlier end back if they are still listed. An earlier end that has passed adds
    nobody.
    """
    ends = {identity: end for identity, end in done.previous_ends.items() if end is not None}
    over = {identity for identity, end in ends.items() if end <= at}
    changed = [
        identity
        for identity in done.already.additions
        if identity in listed and done.previous_ends.get(identity) != done.ends_at.get(identity)
    ]
    additions = [identity for identity in (*done.change.removals, *changed) if identity not in over]
    removals = [*done.change.additions, *(identity for identity in changed if identity in over)]
    return Change(tuple(additions), tuple(removals)), ends
