"""The people of a request: what was asked for them, what its card shows, and what came of it.

Access to a flow is a person of a request for whom access was given and isn't over.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from bot.flows.rules import Change, Spellings


class Wants(StrEnum):
    """What was asked for: to put a person on the list, or to take them off it."""

    ADD = "add"
    REMOVE = "remove"


class Effect(StrEnum):
    """The effect of a change on one person's access.

    `KEEP` lets somebody who is on the list keep access for longer, and `LIMIT` ends it sooner.
    """

    ADD = "add"
    REMOVE = "remove"
    KEEP = "keep"
    LIMIT = "limit"


TAKES_AWAY = frozenset({Effect.LIMIT, Effect.REMOVE})


class Did(StrEnum):
    """What came of the wish for one person.

    `MADE` changed the list or the end of access. `FOUND` changed nothing, because it was already
    so. `LATE` changed nothing, because the requested access would already have ended.
    """

    OPEN = "open"
    MADE = "made"
    FOUND = "found"
    LATE = "late"


class Over(StrEnum):
    """How something that a request changed for a person stopped being in effect.

    `ENDED` is access that was removed at its end, and `GONE` is access that somebody else removed.
    """

    ENDED = "ended"
    GONE = "gone"
    REPLACED = "replaced"
    UNDONE = "undone"


@dataclass(frozen=True)
class RequestPerson:
    """One entry of a list that a request is about.

    A person has one, or several if the list has several spellings of them.

    Attributes:
        identity: The identity, as the request's card shows it.
        spelling: The identity, as the flow's list has it.
        asked_end: The requested end of access, if it's a time.
        asked_seconds: The requested length of access, if it's a duration.
        shown: The effect that the card shows, or None for a spelling that isn't on the card yet.
        shown_end: The end that the card shows. A policy can make it earlier than `asked_end`.
        shown_seconds: The length that the card shows.
        did_at: When something came of the wish.
        ends_at: The end of the access that the request gave, or None if it has no end.
        was_listed: Whether the person was on the list before.
        earlier_end: The end of the access that the request changed or removed, if it had one.
        current_end: The present end of the access of a person who is left, if it has one. It isn't
            stored here, but with the access.
    """

    identity: str
    spelling: str
    wants: Wants
    asked_end: datetime | None = None
    asked_seconds: int | None = None
    shown: Effect | None = Effect.ADD
    shown_end: datetime | None = None
    shown_seconds: int | None = None
    did: Did = Did.OPEN
    did_at: datetime | None = None
    ends_at: datetime | None = None
    was_listed: bool = False
    earlier_end: datetime | None = None
    over: Over | None = None
    over_at: datetime | None = None
    current_end: datetime | None = None

    @classmethod
    def added(
        cls, identity: str, end: datetime | None = None, seconds: int | None = None
    ) -> "RequestPerson":
        """Return a person to add until a time, for a number of seconds, or with no end."""
        return cls(
            identity, identity, Wants.ADD, end, seconds, shown_end=end, shown_seconds=seconds
        )

    @classmethod
    def removed(cls, identity: str) -> "RequestPerson":
        """Return a person to remove."""
        return cls(identity, identity, Wants.REMOVE, shown=Effect.REMOVE)

    @property
    def effect(self) -> Effect:
        """The effect that the card shows."""
        return self.shown or Effect(self.wants)

    @property
    def is_open(self) -> bool:
        """True if nothing has come of the wish yet."""
        return self.did is Did.OPEN

    @property
    def stands(self) -> bool:
        """True if the request changed something for this person that is still in effect."""
        return self.did is Did.MADE and self.over is None

    @property
    def gain(self) -> int:
        """How many more entries the list has because of what the request did for this person."""
        return (self.wants is Wants.ADD) - self.was_listed if self.did is Did.MADE else 0

    def is_shown_in(self, listed: Collection[str]) -> bool:
        """Return True if a list shows the wish."""
        return (self.spelling in listed) is (self.wants is Wants.ADD)

    @property
    def has_access(self) -> bool:
        """True if the request gave the person access that isn't over."""
        return self.stands and self.wants is Wants.ADD

    def end_at(self, at: datetime) -> datetime | None:
        """Return the end of the wanted access if it starts at this time, as the card shows it."""
        if self.wants is Wants.REMOVE:
            return None
        if self.shown_seconds is None:
            return self.shown_end
        return at + timedelta(seconds=self.shown_seconds)

    def is_late_at(self, at: datetime) -> bool:
        """Return True if access that starts at this time would already have ended."""
        end = self.end_at(at)
        return end is not None and end <= at

    def capped(self, longest_seconds: int | None, at: datetime) -> "RequestPerson":
        """Return the person with access that lasts no longer than the flow's policy allows."""
        if longest_seconds is None or self.wants is Wants.REMOVE:
            return self
        if self.shown_seconds is None and self.shown_end is not None:
            last = at + timedelta(seconds=longest_seconds)
            return replace(self, shown_end=min(self.shown_end, last))
        return replace(
            self, shown_seconds=min(self.shown_seconds or longest_seconds, longest_seconds)
        )

    def made(
        self, spelling: str, at: datetime, before: "Access | None", *, was_listed: bool
    ) -> "RequestPerson":
        """Return the person after the list has shown the wish, which took effect at this time.

        `before` is the access that the person had. A wish that was already true changes nothing.
        """
        earlier_end = before.ends_at if before else None
        end = self.end_at(at)
        is_made = was_listed
        if self.wants is Wants.ADD:
            is_made = not was_listed or end != earlier_end
        return replace(
            self,
            spelling=spelling,
            did=Did.MADE if is_made else Did.FOUND,
            did_at=at,
            ends_at=end,
            was_listed=was_listed,
            earlier_end=earlier_end,
        )


def change_of(people: Iterable[RequestPerson]) -> Change:
    """Return what is wanted for these people, as a change to the list."""
    spellings: dict[Wants, list[str]] = {Wants.ADD: [], Wants.REMOVE: []}
    for person in people:
        spellings[person.wants].append(person.spelling)
    return Change(*map(tuple, spellings.values()))


@dataclass(frozen=True)
class Access:
    """Somebody's access to a flow, by the request that gave it."""

    request_id: str
    spelling: str
    since: datetime
    ends_at: datetime | None


class CurrentList:
    """A flow's list, and the ends of people's access, by their spelling on the list."""

    def __init__(self, identities: Iterable[str], ends: Mapping[str, datetime | None]) -> None:
        self.listed = dict.fromkeys(identities)
        self.ends = ends
        self.spellings = Spellings(self.listed)

    @classmethod
    def of(cls, identities: Iterable[str], access: Mapping[str, Access]) -> "CurrentList":
        """Return a flow's list with the ends of all access to the flow."""
        return cls(identities, {spelling: one.ends_at for spelling, one in access.items()})

    def effect(self, person: RequestPerson, at: datetime) -> Effect | None:
        """Return the effect of a wish at this time, or None if the list already shows it.

        Somebody whose access is about to be removed counts as absent.
        """
        is_listed = person.spelling in self.listed
        if person.wants is Wants.REMOVE:
            return Effect.REMOVE if is_listed else None
        current = self.ends.get(person.spelling)
        if not is_listed or (current is not None and current <= at):
            return Effect.ADD
        new = person.end_at(at)
        if new == current:
            return None
        is_later = new is None or (current is not None and new > current)
        return Effect.KEEP if is_later else Effect.LIMIT

    def planned(
        self, wishes: Collection[RequestPerson], at: datetime
    ) -> tuple[tuple[RequestPerson, ...], Change]:
        """Return the people for whom there's something to change, and the rest as a change.

        All spellings of a person on the list are changed, each once: an undo can have wishes for
        several of them.
        """
        people, others = list[RequestPerson](), list[RequestPerson]()
        taken = {wish.identity for wish in wishes}
        for wish in wishes:
            for spelling in self.spellings.of(wish.identity) or [wish.identity]:
                if spelling != wish.identity and spelling in taken:
                    continue
                taken.add(spelling)
                person = replace(wish, identity=spelling, spelling=spelling)
                if effect := self.effect(person, at):
                    current_end = self.ends.get(spelling)
                    people.append(replace(person, shown=effect, current_end=current_end))
                else:
                    others.append(person)
        return tuple(people), change_of(others)

    def spelled(self, people: Collection[RequestPerson]) -> list[RequestPerson]:
        """Return people as the list spells them now.

        If the list has more spellings of them than before, the others come last.
        """
        spelled, others = list[RequestPerson](), list[RequestPerson]()
        taken = {person.spelling for person in people if person.spelling in self.listed}
        for person in people:
            new = [one for one in self.spellings.of(person.identity) if one not in taken]
            taken.update(new)
            if new and person.spelling not in self.listed:
                spelling = new.pop(0)
                spelled.append(replace(person, identity=spelling, spelling=spelling))
            else:
                spelled.append(person)
            for spelling in new:
                others.append(replace(person, identity=spelling, spelling=spelling, shown=None))
        return [*spelled, *others]


def inverse(
    people: Iterable[RequestPerson], current: CurrentList, at: datetime
) -> list[RequestPerson]:
    """Return the wishes that reverse what a request changed, as far as it's still in effect.

    Added people are removed, and removed people are added again until their earlier end. If the
    request changed an end of access, the earlier end is restored. If that end has passed, people
    who are on the list are removed, and others stay off it.
    """
    wishes = list[RequestPerson]()
    for person in people:
        if not person.stands:
            continue
        is_past = person.earlier_end is not None and person.earlier_end <= at
        restored = RequestPerson.added(person.spelling, person.earlier_end)
        removed = RequestPerson.removed(person.spelling)
        if person.wants is Wants.REMOVE:
            # Somebody who is there again, in whatever spelling, isn't added a second time.
            wishes += [] if current.spellings.of(person.spelling) or is_past else [restored]
        elif not person.was_listed:
            wishes.append(removed)
        elif person.spelling in current.listed:
            wishes.append(removed if is_past else restored)
    return wishes
