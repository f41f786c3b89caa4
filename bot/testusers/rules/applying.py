"""The list that is sent to the flow service, and the POST whose outcome is not known yet.

One list serves everything that is approved at that moment. Its plan is stored before it is sent.
As long as the outcome is unknown, the POST is in doubt: the bot reads the list and sends nothing
else to the flow.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
from bot.testusers.rules.spellings import stored_spellings

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
    def is_shared(self) -> bool:
        """True if the plan is for several requests and grants."""
        return len(self.steps) + len(self.endings) > 1

    def spellings_on(self, listed: Collection[str]) -> Mapping[str, str]:
        """Return the spellings on a list of the people who were sent in another one."""
        missing = [identity for identity in self.change.additions if identity not in listed]
        unknown = [identity for identity in listed if identity not in self.after]
        return stored_spellings(missing, unknown)


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

    def is_settled_by(self, listed: Sequence[str], at: datetime) -> bool:
        """Return True if a list that was read after `at` shows all there is."""
        spellings = self.plan.spellings_on(listed)
        return not self.is_in_the_air(at) or is_true(self.plan.change.spelled(spellings), listed)

    def may_repeat(self, listed: Sequence[str]) -> bool:
        """Return True if the same list may be sent again: nothing has changed since."""
        return self.outcome is Outcome.UNKNOWN and set(listed) == set(self.plan.before)

    def after(self, outcome: Outcome | None) -> "Post | None":
        """Return the POST as it stays in doubt after this outcome, if it does; None is a refusal.

        Of two, the first may still arrive.
        """
        if outcome is Outcome.UNANSWERED:
            return replace(self, outcome=outcome)
        if self.sent_before is None:
            return replace(self, outcome=outcome) if outcome is Outcome.ANSWERED else None
        first = outcome if outcome is Outcome.CONFIRMED else Outcome.UNANSWERED
        return replace(self, outcome=first, sent_at=self.sent_before, sent_before=None)


def make_plan(
    plan_id: str,
    listed: Sequence[str],
    at: datetime,
    requests: Sequence[Request] = (),
    over: Sequence[Grant] = (),
    own: Mapping[str, Sequence[Change]] | None = None,
) -> ListChangePlan:
    """Return the plan for approved requests and ended grants, on the list that was just read.

    `requests` have the oldest decision first; `own` has by request id the bot's changes to the list
    since the request was made.
    """
    current, steps = tuple(listed), []
    for request in requests:
        wanted = request.change_at(at)
        change = effect_of(wanted, set(current), {}, timed=()).change
        after = apply_change(current, change)
        step = Step(
            request.id,
            change,
            wanted.without(change.identities),
            outside_edits(request.requested.seen, (own or {}).get(request.id, ()), listed),
            len(current),
            len(after),
            wanted,
            request.left.without(wanted.additions).additions,
        )
        steps.append(step)
        current = after
    endings = [
        Ending(grant.identity, grant.request_id, grant.identity not in current) for grant in over
    ]
    current = apply_change(current, Change(removals=tuple(grant.identity for grant in over)))
    # Who goes and comes back within one plan keeps their place: nothing is sent for an order.
    after = apply_change(listed, difference(listed, current))
    return ListChangePlan(plan_id, tuple(listed), after, tuple(steps), tuple(endings))


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
