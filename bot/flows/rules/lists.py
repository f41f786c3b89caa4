"""Lists of test users, and changes to them.

The flow service stores one list per flow, and an update replaces the whole list. These functions
apply a change to the current list without losing anyone else.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from bot.flows.rules.identities import Spellings, stored_spellings

CONFIRMED = timedelta(seconds=60)
"""For this long after a change is confirmed, a list without the change counts as outdated."""


@dataclass(frozen=True)
class Change:
    """The people to add and the people to remove. Nobody can be in both groups."""

    additions: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if the change affects nobody."""
        return not (self.additions or self.removals)

    @property
    def identities(self) -> tuple[str, ...]:
        """All people in the change."""
        return self.additions + self.removals

    def then(self, later: "Change") -> "Change":
        """Return the net result of this change followed by a later one."""
        back = {*self.additions} & {*later.removals} | {*self.removals} & {*later.additions}
        kept, new = self.without(back), later.without(back)
        return Change(
            tuple(dict.fromkeys(kept.additions + new.additions)),
            tuple(dict.fromkeys(kept.removals + new.removals)),
        )

    def without(self, identities: Collection[str]) -> "Change":
        """Return the change without these people."""
        return Change(
            tuple(identity for identity in self.additions if identity not in identities),
            tuple(identity for identity in self.removals if identity not in identities),
        )

    @property
    def of_people(self) -> "Change":
        """The change without people who are only spelled differently after it."""
        respelled = stored_spellings(self.removals, self.additions)
        return self.without([*respelled, *respelled.values()])

    def shown_in(self, listed: Collection[str]) -> "Change":
        """Return the part of the change that a list already shows."""
        there = {*listed}
        return self.without({*self.additions} - there | {*self.removals} & there)

    def spelled(self, spellings: Mapping[str, str]) -> "Change":
        """Return the change with identities replaced by their spellings in this mapping."""
        return Change(
            tuple(spellings.get(identity, identity) for identity in self.additions),
            tuple(spellings.get(identity, identity) for identity in self.removals),
        )


NO_CHANGE = Change()


def apply_change(listed: Sequence[str], change: Change) -> tuple[str, ...]:
    """Return the list after a change. Additions go at the end, and the rest keeps its order."""
    removed = set(change.removals)
    kept = [identity for identity in listed if identity not in removed]
    there = set(kept)
    return (*kept, *(identity for identity in change.additions if identity not in there))


def difference(before: Sequence[str], after: Sequence[str]) -> Change:
    """Return the change that turns one list into another, regardless of the order."""
    was, now = dict.fromkeys(before), dict.fromkeys(after)
    return Change(
        tuple(identity for identity in now if identity not in was),
        tuple(identity for identity in was if identity not in now),
    )


@dataclass(frozen=True)
class FlowList:
    """A flow's list at one time.

    If `is_own` is True, it's the result of the bot's change to the list before it. Otherwise, the
    bot read it, so whatever differs from the list before it is somebody else's change.
    """

    id: int
    at: datetime
    identities: tuple[str, ...]
    is_own: bool


def outside_edits(lists: Sequence[FlowList]) -> Change:
    """Return the net result of other people's changes in consecutive lists, oldest first."""
    edits = NO_CHANGE
    for before, after in pairwise(lists):
        if not after.is_own:
            edits = edits.then(difference(before.identities, after.identities))
    return edits


def own_changes(lists: Sequence[FlowList]) -> Iterator[Change]:
    """Yield the bot's changes in consecutive lists, newest first."""
    for before, after in reversed([*pairwise(lists)]):
        if after.is_own:
            yield difference(before.identities, after.identities)


def is_before(recent: Sequence[FlowList], in_doubt: Collection[str], listed: Sequence[str]) -> bool:
    """Return True if a list may be older than one of the bot's changes in the `recent` lists.

    Such a list shows none of the net effect of that change and all later ones. It may spell added
    people differently. People in a POST in doubt are ignored, because that POST may have reverted
    the changes.
    """
    there, people, doubted, net = {*listed}, Spellings(listed), Spellings(in_doubt), NO_CHANGE
    for change in own_changes(recent):
        net = change.then(net)
        expected = net.without([one for one in net.identities if doubted.of(one)]).of_people
        is_shown = any(map(people.of, expected.additions)) or {*expected.removals} - there
        if not expected.is_empty and not is_shown:
            return True
    return False
