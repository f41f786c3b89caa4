"""Lists of test users, and changes to them.

The flow service stores one list per flow, and an update replaces the whole list. These functions
apply a change to the current list without losing anyone else.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """The people to add and the people to remove. Nobody can be in both groups."""

    additions: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if the change adds and removes the same person."""
        if not set(self.additions).isdisjoint(self.removals):
            raise ValueError("somebody is both added and removed")

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

    def shown_in(self, listed: Collection[str]) -> "Change":
        """Return the part of the change that a list already shows."""
        return Change(
            tuple(identity for identity in self.additions if identity in listed),
            tuple(identity for identity in self.removals if identity not in listed),
        )

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
    known = set(kept)
    return (
        *kept,
        *(identity for identity in dict.fromkeys(change.additions) if identity not in known),
    )


def apply_changes(listed: Sequence[str], changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the list after these changes, applied in order."""
    result = tuple(listed)
    for change in changes:
        result = apply_change(result, change)
    return result


def difference(before: Sequence[str], after: Sequence[str]) -> Change:
    """Return the change that turns one list into another, regardless of the order."""
    was, now = set(before), set(after)
    return Change(
        tuple(identity for identity in dict.fromkeys(after) if identity not in was),
        tuple(identity for identity in dict.fromkeys(before) if identity not in now),
    )


def outside_edits(seen: Sequence[str], own: Iterable[Change], found: Sequence[str]) -> Change:
    """Return the changes made since the list was seen, excluding the bot's `own` changes."""
    return difference(apply_changes(seen, own), found)
