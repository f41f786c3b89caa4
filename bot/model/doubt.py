"""POSTs whose outcome is not known: what the list tells of them, person by person.

A POST is in doubt when it was sent and no answer says what became of it. It may have replaced the
list, it may still do so, or it never will. Each look at the list says more: who came or went as it
says has arrived, and what was decided after it was sent may have been undone by it. It is in doubt
until the list was looked at long enough after it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from bot.dataclass import dataclass
from bot.model.testusers.applying import ListChangePlan
from bot.model.testusers.changes import NO_CHANGE, Change, difference

IN_DOUBT = timedelta(seconds=60)
"""A POST that has not replaced the list so long after it was sent never will."""


@dataclass(frozen=True, slots=True)
class DoubtfulPost:
    """A POST in doubt.

    `seen` is the list as the bot saw or left it last. `since` is who was let in or removed after it
    was sent, by the bot or by others. `arrived` is what of it was found on the list. `times` is
    how often the same list was sent in vain.
    """

    plan: ListChangePlan
    sent_at: datetime
    seen: tuple[str, ...]
    since: Change = NO_CHANGE
    arrived: Change = NO_CHANGE
    times: int = 1

    @property
    def own(self) -> Change:
        """Who comes and goes when it arrives."""
        return difference(self.plan.before, self.plan.after)

    @property
    def ends_at(self) -> datetime:
        """When it can be expected to have arrived or not."""
        return self.sent_at + IN_DOUBT

    def is_of(self, request_id: str) -> bool:
        """Whether it was sent for the request, among others."""
        return any(step.request_id == request_id for step in self.plan.steps)

    def has_same_content(self, plan: ListChangePlan) -> bool:
        """Whether the plan is to send the same list for the same reasons."""
        mine = (self.plan.before, self.plan.after, _reasons(self.plan))
        return mine == (plan.before, plan.after, _reasons(plan))

    def undone_in(self, listed: Collection[str]) -> Change:
        """What was decided after it was sent, and is now as this POST has it: to be put right."""
        after = set(self.plan.after)
        return Change(
            tuple(one for one in self.since.additions if one not in listed and one not in after),
            tuple(one for one in self.since.removals if one in listed and one in after),
        )

    def decided(self, later: Change, listed: Sequence[str]) -> "DoubtfulPost":
        """The same after something was decided, which left the list as it is in `listed`."""
        return replace(self, since=latest(self.since, later), seen=tuple(listed))


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at the list tells of all POSTs in doubt.

    `open` are still in doubt, `closed` are not; `arrived` is, by the POST, what was found of it for
    the first time; `repair` puts right what a late one undid.
    """

    open: tuple[DoubtfulPost, ...]
    closed: tuple[DoubtfulPost, ...]
    arrived: tuple[tuple[DoubtfulPost, Change], ...]
    repair: Change

    @property
    def posts(self) -> tuple[DoubtfulPost, ...]:
        """All of them, the first first."""
        return tuple(sorted((*self.open, *self.closed), key=lambda post: post.sent_at))


def look_at(posts: Sequence[DoubtfulPost], listed: Sequence[str], at: datetime) -> Look:
    """What the list, read after `at`, tells of the POSTs in doubt, the first first.

    Where several of them do the same to a person, the last one is taken to have done it.
    """
    there, repair, newer = frozenset(listed), Change(), Change()
    for number, post in enumerate(posts):
        explained = _as_sent(posts[number + 1 :], there)
        repair = latest(repair, post.undone_in(there).without(explained))
    looked: list[DoubtfulPost] = []
    arrived: list[tuple[DoubtfulPost, Change]] = []
    for post in reversed(posts):
        part = _arriving(post, there, newer)
        edits = _edits(post, listed).without(repair.identities)
        after = post.decided(latest(edits, newer), listed)
        looked.insert(0, replace(after, arrived=latest(after.arrived, part)))
        if not part.is_empty:
            arrived.insert(0, (looked[0], part))
        newer = latest(part, newer)
    closed = [post for post in looked if _is_closed(post, there, at)]
    opened = [post for post in looked if post not in closed]
    return Look(tuple(opened), tuple(closed), tuple(arrived), repair)


def latest(earlier: Change, later: Change) -> Change:
    """Both, the later one in force where they differ."""
    kept = earlier.without(later.identities)
    return Change(kept.additions + later.additions, kept.removals + later.removals)


def sent_for(posts: Iterable[DoubtfulPost], request_id: str) -> Change:
    """What was sent for a request and is in doubt."""
    sent = Change()
    for post in posts:
        for step in post.plan.steps:
            if step.request_id == request_id:
                sent = latest(sent, step.change)
    return sent


def sent_at(posts: Iterable[DoubtfulPost]) -> dict[str, datetime]:
    """When each request was sent that is in doubt, the last time."""
    return {step.request_id: post.sent_at for post in posts for step in post.plan.steps}


def _as_sent(posts: Iterable[DoubtfulPost], there: Collection[str]) -> set[str]:
    """Who is there or not as one of these has it: what an earlier POST has undone is not that."""
    return {
        *(one for post in posts for one in post.own.additions if one in there),
        *(one for post in posts for one in post.own.removals if one not in there),
    }


def _arriving(post: DoubtfulPost, there: Collection[str], newer: Change) -> Change:
    """What is as the POST has it, was not so before, and is nobody else's doing."""
    known = {*post.since.identities, *post.arrived.identities, *newer.identities}
    own = post.own.without(known)
    return Change(
        tuple(one for one in own.additions if one in there),
        tuple(one for one in own.removals if one not in there),
    )


def _edits(post: DoubtfulPost, listed: Sequence[str]) -> Change:
    """What others did since the last look that the POST, should it arrive late, would undo."""
    after = set(post.plan.after)
    moved = difference(post.seen, listed)
    return Change(
        tuple(one for one in moved.additions if one not in after),
        tuple(one for one in moved.removals if one in after),
    )


def _is_closed(post: DoubtfulPost, there: Collection[str], at: datetime) -> bool:
    """Whether it is done, and nothing is left to be put right.

    That all of it is on the list says nothing before its time: others may have done the same.
    """
    return at >= post.ends_at and post.undone_in(there).is_empty


def _reasons(plan: ListChangePlan) -> tuple[frozenset[str], frozenset[str]]:
    return (
        frozenset(step.request_id for step in plan.steps),
        frozenset(ending.identity for ending in plan.endings),
    )
