"""A request to change a flow's test users, as stored and shown."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from bot.approvals.rules import ApprovedByRule, Facts, State
from bot.permissions import Person
from bot.store.audit_entry import BOT
from bot.testusers.rules.changes import Change, Flow

# People with shorter access don't need a reminder.
ANNOUNCED_FROM = timedelta(hours=3)


class Effect(StrEnum):
    """The effect of a change on a person."""

    ADD = "add"
    EXTEND = "extend"
    SHORTEN = "shorten"
    LIMIT = "limit"
    KEEP = "keep"
    REMOVE = "remove"


TAKES_AWAY = frozenset({Effect.SHORTEN, Effect.LIMIT, Effect.REMOVE})


@dataclass(frozen=True, slots=True)
class Who:
    """A person, with their Slack id and the name that Slack showed at the time."""

    slack_user_id: str
    name: str

    @classmethod
    def of(cls, person: Person) -> "Who":
        """Return the person in the form stored in requests."""
        return cls(person.slack_user_id, person.name)


THE_BOT = Who(BOT, "Gatehouse")


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval and its time."""

    who: Who
    at: datetime


@dataclass(frozen=True, slots=True)
class RequestedChange:
    """The requested change as shown on the card.

    `end_changes` are additions of people who are already on the list, so that only their end
    changes; `current_ends` are their current ends. `ends` are fixed ends; otherwise the end is
    `duration_seconds` after the start. `starts_at` is the time to apply an approved change; None
    for immediately. `shown_at` is the time when the request was last recalculated; None if that was
    when it was made. `seen` is the list at that time, after the recorded change `seen_change_id`;
    it is dropped once the request is closed.
    """

    change: Change
    seen: tuple[str, ...]
    seen_change_id: int
    end_changes: tuple[str, ...] = ()
    duration_seconds: int | None = None
    ends: Mapping[str, datetime] = field(default_factory=dict)
    reason: str = ""
    without_approval: bool = False
    undo_of: str | None = None
    current_ends: Mapping[str, datetime] = field(default_factory=dict)
    starts_at: datetime | None = None
    shown_at: datetime | None = None

    def end_of(self, identity: str, applied_at: datetime) -> datetime | None:
        """Return the end of an added person's access, or None for no end."""
        if identity in self.ends:
            return self.ends[identity]
        if self.duration_seconds is None:
            return None
        return (self.starts_at or applied_at) + timedelta(seconds=self.duration_seconds)

    def begins_at(self, at: datetime) -> datetime:
        """Return the start of the change if it is applied at that time or when it is planned."""
        return max(at, self.starts_at or at)

    def effects(self, change: Change, at: datetime) -> dict[str, Effect]:
        """Return the effect of a part of the change on each person if it started at that time."""
        begins_at = self.begins_at(at)
        found = dict.fromkeys(change.removals, Effect.REMOVE)
        for identity in change.additions:
            current, new = self.current_ends.get(identity), self.end_of(identity, begins_at)
            if identity not in self.end_changes:
                found[identity] = Effect.ADD
            elif new is None:
                found[identity] = Effect.KEEP
            elif current is None:
                found[identity] = Effect.LIMIT
            else:
                found[identity] = Effect.EXTEND if new >= current else Effect.SHORTEN
        return found

    def is_shown_as(self, other: "RequestedChange") -> bool:
        """Return True if both changes look the same on a card."""
        seen, change_id = other.seen, other.seen_change_id
        return replace(self, shown_at=other.shown_at, seen=seen, seen_change_id=change_id) == other

    @property
    def effect(self) -> tuple[object, ...]:
        """The people, the duration and the start, which are the same for equal requests."""
        people = frozenset(self.change.additions), frozenset(self.change.removals)
        return (*people, self.duration_seconds, self.starts_at, tuple(sorted(self.ends.items())))


@dataclass(frozen=True, slots=True)
class Done:
    """The actual effect of an applied request.

    `previous_ends` has the earlier end of each removed or changed person's grant; None for a grant
    without an end. `outside` are the external changes since the request was made.
    """

    at: datetime
    change: Change
    already: Change
    outside: Change
    size_before: int
    size_after: int
    ends_at: Mapping[str, datetime] = field(default_factory=dict)
    previous_ends: Mapping[str, datetime | None] = field(default_factory=dict)

    def respelled(self, spellings: Mapping[str, str]) -> "Done":
        """Return the record with people's current spellings."""
        people = (*self.change.identities, *self.already.identities)
        now = {identity: spellings.get(identity, identity) for identity in people}
        # A spelling never turns one person into another person in the same record.
        taken = Counter(now.values())
        now = {identity: new if taken[new] == 1 else identity for identity, new in now.items()}
        return replace(
            self,
            change=self.change.spelled(now),
            already=self.already.spelled(now),
            ends_at={now.get(identity, identity): end for identity, end in self.ends_at.items()},
            previous_ends={
                now.get(identity, identity): end for identity, end in self.previous_ends.items()
            },
        )

    def after(self, part: "Done | None") -> "Done":
        """Return the record combined with an earlier part of it."""
        if part is None:
            return self
        return replace(
            self,
            change=part.change.then(self.change),
            size_before=part.size_before,
            ends_at={**part.ends_at, **self.ends_at},
            previous_ends={**part.previous_ends, **self.previous_ends},
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """A grant that ended, and whether somebody else had already removed the person."""

    identity: str
    at: datetime
    was_gone: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """The history of a request so far.

    `is_unsure` marks a failure whose change may have arrived anyway. `retries` are the times of the
    clicks on Retry, and `retried_by` is the last person who retried. `part` is the part that has
    taken effect, if the rest has not. `respelled` maps requested identities to the spelling that
    the service stores. `news` are the sentences that explain why the card asks again. `rung` are
    the timers that have fired; ends up to `announced_until` have been announced. `rule` is the
    automatic rule that approved the request. `superseded` are people whose grant a later request
    replaced or removed; `overdue` is the reason why an expired grant could not be ended yet;
    `undone_by` is the id of the request that undoes this one, and `is_undone` is True once that
    request has been applied; `delivery_id` is the log id of the last Slack delivery that caused the
    request to be applied.
    """

    approvals: tuple[Approval, ...] = ()
    denial_reason: str = ""
    failure: str = ""
    is_unsure: bool = False
    tries: int = 0
    retry_at: datetime | None = None
    retries: tuple[str, ...] = ()
    retried_by: Who | None = None
    respelled: Mapping[str, str] = field(default_factory=dict)
    part: Done | None = None
    done: Done | None = None
    ended: tuple[Ended, ...] = ()
    superseded: tuple[str, ...] = ()
    overdue: str = ""
    undone_by: str | None = None
    is_undone: bool = False
    delivery_id: str = ""
    news: tuple[str, ...] = ()
    rung: tuple[str, ...] = ()
    rule: ApprovedByRule | None = None
    announced_until: datetime | None = None

    def cleared(self) -> "Progress":
        """Return the progress without failed attempts."""
        return replace(self, tries=0, retry_at=None, failure="", is_unsure=False)


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `version` increases with every write, so that only one of two writers wins."""

    id: str
    flow: Flow
    requester: Who
    requested: RequestedChange
    created_at: datetime
    expires_at: datetime
    state: State = State.PENDING
    progress: Progress = Progress()
    decided_by: Who | None = None
    decided_at: datetime | None = None
    version: int = 1

    @property
    def facts(self) -> Facts:
        """The facts for the state machine."""
        return Facts(
            self.state,
            self.requester.slack_user_id,
            self.expires_at,
            tuple(approval.who.slack_user_id for approval in self.progress.approvals),
            self.requested.starts_at,
            is_being_undone=self.progress.undone_by is not None,
        )

    @property
    def waits(self) -> bool:
        """True if the request needs a decision."""
        return not self.requested.without_approval and self.progress.rule is None

    @property
    def shown_since(self) -> datetime | None:
        """The time when the card is due in the channel; without approval, that is the decision."""
        if not self.requested.without_approval:
            return self.created_at
        return self.took_effect.at if self.took_effect else self.decided_at

    @property
    def next_end(self) -> datetime | None:
        """The next end of access to announce; short access is not announced."""
        done, progress = self.took_effect, self.progress
        if done is None:
            return None
        gone = {ended.identity for ended in progress.ended} | set(progress.superseded)
        said = progress.announced_until or done.at
        ends = {
            end
            for identity, end in done.ends_at.items()
            if identity not in gone and end > said and end - done.at > ANNOUNCED_FROM
        }
        return min(ends, default=None)

    @property
    def has_failed_in_part(self) -> bool:
        """True if the request failed after the service carried out a part of it."""
        return self.state is State.FAILED and self.progress.part is not None

    @property
    def took_effect(self) -> Done | None:
        """The part that took effect: all, or a part of a failed request; None if nothing did."""
        return self.progress.done or self.progress.part

    @property
    def left(self) -> Change:
        """The part that has not taken effect yet."""
        if self.progress.part is None:
            return self.requested.change
        stored = {*self.progress.part.change.identities}
        typed = [
            identity
            for identity, stored_as in self.progress.respelled.items()
            if stored_as in stored
        ]
        return self.requested.change.without(stored.union(typed))

    @property
    def is_over(self) -> bool:
        """True if none of the added people still has access through this request."""
        gone = {ended.identity for ended in self.progress.ended} | set(self.progress.superseded)
        part = self.progress.part
        change = self.requested.change if part is None else part.change
        let_in = {self.progress.respelled.get(identity, identity) for identity in change.additions}
        return self.progress.is_undone or gone.issuperset(let_in)

    def has_enough_approvals(self, needed: int) -> bool:
        """Return True if a pending request has enough approvals because fewer are now needed.

        One more click on `Approve` applies it, even by a person who has already approved.
        """
        return self.state is State.PENDING and len(self.progress.approvals) >= needed

    def moved(self, state: State, by: Who, at: datetime, progress: Progress) -> "Request":
        """Return the request after a decision."""
        return replace(self, state=state, decided_by=by, decided_at=at, progress=progress)

    def change_at(self, at: datetime) -> Change:
        """Return the remaining change at a given time, without people whose end has passed.

        An undo that restores an end that has passed doesn't keep anybody on the list.
        """
        change = self.left
        ends = {identity: self.requested.end_of(identity, at) for identity in change.additions}
        late = tuple(identity for identity, end in ends.items() if end is not None and end <= at)
        gone = late if self.requested.undo_of else ()
        return Change(change.without(late).additions, change.removals + gone)


@dataclass(frozen=True, slots=True)
class Grant:
    """A person added by a request, the end of their access, and the people responsible."""

    identity: str
    request_id: str
    granted_by: Who
    approved_by: tuple[Who, ...]
    granted_at: datetime
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change that the bot made to a flow's list, with its requests and expired grants."""

    id: int
    at: datetime
    change: Change
    request_ids: tuple[str, ...]
    ended: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preset:
    """A named list of people, and the person who last saved it; `name` has no `@`."""

    name: str
    identities: tuple[str, ...]
    saved_by: Who
    saved_at: datetime
