"""A request to change a flow's test users, as it is stored and shown."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.approvals.rules.approval import Facts, State
from bot.approvals.rules.automatic import ApprovedByRule
from bot.testusers.rules.changes import Change, Flow

# Whoever is let in for a shorter time remembers it.
ANNOUNCED_FROM = timedelta(hours=3)


@dataclass(frozen=True, slots=True)
class Who:
    """A person, by Slack's id and the name that Slack showed at the time."""

    slack_user_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval, the time it was given, and the id of the stored click that gave it."""

    who: Who
    at: datetime
    click_id: str = ""


@dataclass(frozen=True, slots=True)
class RequestedChange:
    """The change as its card shows it.

    `end_changes` are additions of people who are on the list already, for whom only the end
    changes; `current_ends` are their current ends. `ends` are fixed ends; otherwise the end is
    `duration_seconds` after the start. `starts_at` is when an approved change is applied; None for
    at once. `shown_at` is when the request was last recalculated, None for when it was made. `seen`
    is the list at that time, after the recorded change `seen_change_id`; it is dropped once the
    request is over.
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

    def is_shown_as(self, other: "RequestedChange") -> bool:
        """Return True if both look the same on a card."""
        seen, change_id = other.seen, other.seen_change_id
        return replace(self, shown_at=other.shown_at, seen=seen, seen_change_id=change_id) == other

    @property
    def effect(self) -> tuple[object, ...]:
        """The people, the duration and the start, which equal requests share."""
        people = frozenset(self.change.additions), frozenset(self.change.removals)
        return (*people, self.duration_seconds, self.starts_at, tuple(sorted(self.ends.items())))


@dataclass(frozen=True, slots=True)
class Done:
    """The actual effect of an applied request.

    `previous_ends` holds the earlier end of each removed or changed person's grant; None for a
    grant without an end. `outside` is what others changed since the request was made.
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
        """Return the record with the current spellings of people, where they have another."""
        people = (*self.change.identities, *self.already.identities)
        now = {identity: spellings.get(identity, identity) for identity in people}
        # Nobody becomes somebody else whom it is about too.
        taken = Counter(now.values())
        now = {identity: new if taken[new] == 1 else identity for identity, new in now.items()}

        def spelled(change: Change) -> Change:
            additions = tuple(now[identity] for identity in change.additions)
            return Change(additions, tuple(now[identity] for identity in change.removals))

        return replace(
            self,
            change=spelled(self.change),
            already=spelled(self.already),
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
    """A grant that ended, and whether somebody else had removed the person before."""

    identity: str
    at: datetime
    was_gone: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """The history of a request so far.

    `is_unsure` marks a failure whose change may have arrived all the same. `retries` are the ids of
    the clicks on Retry, `retried_by` is the last person who retried. `part` is the part that took
    effect before the rest. `respelled` has, by requested identity, the spelling in which the
    service stores it. `news` are the sentences that explain why the card asks again. `rung` are the
    timers that rang; ends up to `announced_until` have been announced. `rule` is the automatic rule
    that approved the request. `superseded` are people whose grant a later request replaced or
    removed; `overdue` is the reason why a grant that is over could not be ended yet; `undone_by` is
    the id of the request that undoes this one, and `is_undone` is True once it did;
    `undo_given_up_at` is when the last undo was denied, cancelled or expired; `delivery_id` is the
    log's id of Slack's last delivery that had it applied.
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
    undo_given_up_at: datetime | None = None
    delivery_id: str = ""
    news: tuple[str, ...] = ()
    rung: tuple[str, ...] = ()
    rule: ApprovedByRule | None = None
    announced_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `version` grows with every write, so that only one of two writers wins."""

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
        """The facts that the state machine needs."""
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
        """True if somebody has to decide on it."""
        return not self.requested.without_approval and self.progress.rule is None

    @property
    def shown_since(self) -> datetime | None:
        """The time its card was due in the channel: without approval, once it is decided."""
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
        """True if it has failed after the service carried out a part of it."""
        return self.state is State.FAILED and self.progress.part is not None

    @property
    def took_effect(self) -> Done | None:
        """The part that took effect: all, or a part of a failed request; None for nothing."""
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
        """True if none of the people it added has access through it any more."""
        gone = {ended.identity for ended in self.progress.ended} | set(self.progress.superseded)
        part = self.progress.part
        change = self.requested.change if part is None else part.change
        let_in = {self.progress.respelled.get(identity, identity) for identity in change.additions}
        return self.progress.is_undone or gone.issuperset(let_in)

    def has_enough_approvals(self, needed: int) -> bool:
        """Return True if a pending request has enough approvals: fewer are needed now.

        One more press of `Approve` applies it, even by a person who has approved before.
        """
        return self.state is State.PENDING and len(self.progress.approvals) >= needed

    def moved(self, state: State, by: Who, at: datetime, progress: Progress) -> "Request":
        """Return the request after a decision."""
        return replace(self, state=state, decided_by=by, decided_at=at, progress=progress)

    def change_at(self, at: datetime) -> Change:
        """Return the change that is left at a moment, without people whose end has passed.

        Where an undo gives back an end that is over, nobody stays by it.
        """
        change = self.left
        late = tuple(identity for identity in change.additions if self._is_over_for(identity, at))
        gone = late if self.requested.undo_of else ()
        return Change(change.without(late).additions, change.removals + gone)

    def _is_over_for(self, identity: str, at: datetime) -> bool:
        end = self.requested.end_of(identity, at)
        return end is not None and end <= at


@dataclass(frozen=True, slots=True)
class Grant:
    """A person who was added by a request, the end of access, and the people responsible."""

    identity: str
    request_id: str
    granted_by: Who
    approved_by: tuple[Who, ...]
    granted_at: datetime
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """The bot's replacement of a flow's list, with the requests and ended grants behind it."""

    id: int
    at: datetime
    change: Change
    request_ids: tuple[str, ...]
    ended: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preset:
    """People under one name, without its `@`, and the person who saved them last."""

    name: str
    identities: tuple[str, ...]
    saved_by: Who
    saved_at: datetime
