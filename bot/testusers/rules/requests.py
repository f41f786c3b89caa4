"""Requests and grants as stored, and the values derived from them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from bot.approvals.rules import ApprovedByRule, Facts, State
from bot.flows.rules.flows import Flow
from bot.flows.rules.lists import NO_CHANGE, Change, outside_edits
from bot.permissions import Person
from bot.store.audit_entry import BOT

MAX_REASON_CHARS = 500
# If access is shorter than this, its end isn't announced.
ANNOUNCED_FROM = timedelta(hours=3)


class Effect(StrEnum):
    """The effect of a change on one person's access.

    `KEEP` lets somebody who is on the list keep access for longer, and `LIMIT` ends it sooner.
    """

    ADD = "add"
    REMOVE = "remove"
    KEEP = "keep"
    LIMIT = "limit"


TAKES_AWAY = frozenset({Effect.LIMIT, Effect.REMOVE})


@dataclass(frozen=True)
class Who:
    """A person's Slack ID, and the name they had when this record was created."""

    slack_user_id: str
    name: str

    @classmethod
    def of(cls, person: Person) -> "Who":
        """Return a person's Slack ID and current name."""
        return cls(person.slack_user_id, person.name)


THE_BOT = Who(BOT, "Gatehouse")


@dataclass(frozen=True)
class Approval:
    """A person's approval of a request, and when it was given."""

    who: Who
    at: datetime


@dataclass(frozen=True)
class RecordedChange:
    """A change that the bot made to a flow's list."""

    id: int
    at: datetime
    change: Change


@dataclass(frozen=True)
class Comparison:
    """The last comparison of a change with the flow's list.

    `seen` is the list, which includes the recorded changes up to `seen_change_id`. It's deleted
    once the request is closed. `outside` contains other people's changes that earlier comparisons
    have found. `shown_at` is the time of the comparison, or None if it's the first one.
    """

    seen: tuple[str, ...] = ()
    seen_change_id: int = 0
    outside: Change = NO_CHANGE
    shown_at: datetime | None = None

    def unseen(self, recorded: Iterable[RecordedChange]) -> list[Change]:
        """Return the recorded changes that came after the comparison."""
        return [one.change for one in recorded if one.id > self.seen_change_id]

    def edits_until(self, listed: Sequence[str], own: Iterable[Change]) -> Change:
        """Return other people's changes until the list was as `listed`, without the bot's own."""
        return self.outside.then(outside_edits(self.seen, own, listed))


@dataclass(frozen=True)
class RequestedChange:
    """A requested change, as shown on its card.

    A person's access ends at their time in `ends`, or `duration_seconds` after the access starts.

    Attributes:
        end_changes: Added people who are already on the list, so only the end of their access
            changes. `current_ends` maps them to their current end, if any.
        presets: The names of the presets that stood for people when the change was requested.
        card_version: The version of what the card says, which goes up when the effect changes.
    """

    change: Change
    compared: Comparison = Comparison()
    end_changes: tuple[str, ...] = ()
    duration_seconds: int | None = None
    ends: Mapping[str, datetime] = field(default_factory=dict)
    reason: str = ""
    without_approval: bool = False
    undo_of: str | None = None
    current_ends: Mapping[str, datetime] = field(default_factory=dict)
    presets: tuple[str, ...] = ()
    card_version: int = 1

    def is_the_same(self, other: "RequestedChange") -> bool:
        """Return True if another change has the same people, ends of access and reason."""
        ends = self.duration_seconds == other.duration_seconds and self.ends == other.ends
        return self.change == other.change and ends and self.reason == other.reason

    def end_of(self, identity: str, applied_at: datetime) -> datetime | None:
        """Return the end of an added person's access, or None if it has no end."""
        if identity in self.ends:
            return self.ends[identity]
        if self.duration_seconds is None:
            return None
        return applied_at + timedelta(seconds=self.duration_seconds)

    def lasting(self, applied_at: datetime) -> list[float | None]:
        """Return how many seconds each added person's access lasts, or None if it has no end."""
        ends = [self.end_of(identity, applied_at) for identity in self.change.additions]
        return [(end - applied_at).total_seconds() if end else None for end in ends]

    def effects(self, change: Change, at: datetime) -> dict[str, Effect]:
        """Return the effect of `change` on each person if it's applied at this time."""
        found = dict.fromkeys(change.removals, Effect.REMOVE)
        for identity in change.additions:
            current = self.current_ends.get(identity)
            new = self.end_of(identity, at)
            if identity not in self.end_changes:
                found[identity] = Effect.ADD
            elif new is None or (current is not None and new >= current):
                found[identity] = Effect.KEEP
            else:
                found[identity] = Effect.LIMIT
        return found


@dataclass(frozen=True)
class Done:
    """The changes that a request actually made, in all its attempts.

    `already` is the part of the request that the list already showed. `outside` contains other
    people's changes since the request was made. If a grant was removed or changed, `previous_ends`
    maps its identity to its earlier end, or to None if it had no end.
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
        """Return the record with identities replaced by their current spellings."""
        people = (*self.change.identities, *self.already.identities)
        now = {identity: spellings.get(identity, identity) for identity in people}
        # A spelling is ignored if it would turn two people in the record into one.
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

    def after(self, earlier: "Done | None") -> "Done":
        """Return this record merged with the record of earlier attempts."""
        if earlier is None:
            return self
        return replace(
            self,
            change=earlier.change.then(self.change),
            size_before=earlier.size_before,
            ends_at={**earlier.ends_at, **self.ends_at},
            previous_ends={**earlier.previous_ends, **self.previous_ends},
        )


@dataclass(frozen=True)
class Ended:
    """A grant that ended. `was_gone` is True if somebody else had already removed the person."""

    identity: str
    at: datetime
    was_gone: bool


@dataclass(frozen=True)
class Round:
    """The decisions in the current round of approval.

    `rule` is the automatic rule that approved the request. `news` explains why the card asks for a
    new decision, and `asked_at` is when it last asked again after a decision. `rung` lists the
    timers that have fired. `decided_by` made the decision that led to the current state.
    """

    approvals: tuple[Approval, ...] = ()
    rule: ApprovedByRule | None = None
    denial_reason: str = ""
    news: tuple[str, ...] = ()
    asked_at: datetime | None = None
    rung: tuple[str, ...] = ()
    decided_by: Who | None = None
    decided_at: datetime | None = None


@dataclass(frozen=True)
class Attempts:
    """The attempts to apply an approved change.

    `is_unsure` is True if a failed change may have reached the service anyway. `retried_by` is the
    last person who pressed Retry.
    """

    tries: int = 0
    retry_at: datetime | None = None
    failure: str = ""
    is_unsure: bool = False
    retried_by: Who | None = None

    def cleared(self) -> "Attempts":
        """Return the record as if no attempt had failed."""
        return replace(self, tries=0, retry_at=None, failure="", is_unsure=False)


@dataclass(frozen=True)
class Result:
    """The results of the attempts.

    `done` records what all attempts have changed so far, which can be less than what was requested.
    `respelled` maps requested identities to the service's spellings. `superseded` lists people who
    had a grant that a later request replaced or removed. `overdue` is the reason that expired
    access hasn't been removed yet. `undone_by` is the ID of the request to undo this one, and
    `is_undone` is True once that request is applied. Ends of access up to `announced_until` have
    been announced.
    """

    done: Done | None = None
    respelled: Mapping[str, str] = field(default_factory=dict)
    ended: tuple[Ended, ...] = ()
    superseded: tuple[str, ...] = ()
    overdue: str = ""
    undone_by: str | None = None
    is_undone: bool = False
    announced_until: datetime | None = None


@dataclass(frozen=True)
class Request:
    """A request to change a flow's test users. `version` increases with every write."""

    id: str
    flow: Flow
    requester: Who
    requested: RequestedChange
    created_at: datetime
    expires_at: datetime
    state: State = State.PENDING
    round: Round = Round()
    attempts: Attempts = Attempts()
    result: Result = Result()
    version: int = 1

    @property
    def facts(self) -> Facts:
        """The parts of the request that the state machine in `bot.approvals` needs."""
        return Facts(
            self.state,
            self.requester.slack_user_id,
            self.expires_at,
            tuple(approval.who.slack_user_id for approval in self.round.approvals),
            is_being_undone=self.result.undone_by is not None,
        )

    @property
    def next_end(self) -> datetime | None:
        """The next end of access that still has to be announced, or None if there's none."""
        done = self.result.done
        if done is None:
            return None
        said = self.result.announced_until or done.at
        ends = {
            end
            for identity, end in done.ends_at.items()
            if identity not in self.gone and end > said and end - done.at > ANNOUNCED_FROM
        }
        return min(ends, default=None)

    @property
    def left(self) -> Change:
        """The part of the change that hasn't taken effect yet."""
        change = self.requested.change
        result = self.result
        made = {*result.done.change.identities} if result.done else set()
        now = {name: result.respelled.get(name, name) for name in change.identities}
        return change.without([name for name in now if {name, now[name]} & made])

    def names_the_same(self, other: "Request") -> bool:
        """Return True if another request for the flow affects any of the same people."""
        people = set(self.requested.change.identities)
        is_for_flow = self.flow.key == other.flow.key and self.id != other.id
        return is_for_flow and not people.isdisjoint(other.requested.change.identities)

    @property
    def gone(self) -> set[str]:
        """The people who no longer have the access that this request gave them."""
        return {ended.identity for ended in self.result.ended} | set(self.result.superseded)

    @property
    def is_over(self) -> bool:
        """True if this request no longer gives anyone access."""
        change = self.requested.change
        if self.result.done is not None and self.state is not State.APPLIED:
            change = self.result.done.change
        let_in = {self.result.respelled.get(identity, identity) for identity in change.additions}
        return self.result.is_undone or self.gone.issuperset(let_in)

    @property
    def can_be_undone(self) -> bool:
        """True if the request has changed something that's still in effect."""
        done = self.result.done
        if done is None or self.state not in {State.APPLIED, State.FAILED}:
            return False
        return not self.is_over or bool(done.change.removals)

    def moved(self, state: State, by: Who, at: datetime) -> "Request":
        """Return the request in a new state, with the person and the time of the decision."""
        decided = replace(self.round, decided_by=by, decided_at=at)
        return replace(self, state=state, round=decided)

    def change_at(self, at: datetime) -> Change:
        """Return the change left to apply at this time, without access that would already be over.

        If an undo would restore access that has already ended, the person is removed instead.
        """
        change = self.left
        ends = {identity: self.requested.end_of(identity, at) for identity in change.additions}
        late = tuple(identity for identity, end in ends.items() if end is not None and end <= at)
        gone = late if self.requested.undo_of else ()
        return Change(change.without(late).additions, change.removals + gone)

    def is_late_at(self, at: datetime) -> bool:
        """Return True if all of the access left to give would already be over at this time."""
        return not self.left.removals and not self.change_at(at).additions


@dataclass(frozen=True)
class Grant:
    """A person's access to a flow, including who requested and approved it, and when it ends."""

    identity: str
    request_id: str
    granted_by: Who
    approved_by: tuple[Who, ...]
    granted_at: datetime
    ends_at: datetime | None


@dataclass(frozen=True)
class ReadList:
    """A flow's list, and what was stored about it at the time `at`, just before it was read.

    The list includes the bot's changes up to `change_id`. `grants` is keyed by identity.
    """

    identities: tuple[str, ...]
    at: datetime
    change_id: int
    grants: Mapping[str, Grant]


def planned_change(read: ReadList, wanted: RequestedChange) -> tuple[RequestedChange, Change]:
    """Compare a change with a list. Return what's left to do, and what the list already shows.

    Adding someone again changes or removes the end of their grant.
    """
    ends = {identity: grant.ends_at for identity, grant in read.grants.items() if grant.ends_at}
    timed = wanted.ends if wanted.duration_seconds is None else wanted.change.additions
    shown = wanted.change.shown_in(read.identities)
    end_changes = tuple(
        identity for identity in shown.additions if identity in timed or identity in ends
    )
    dropped = shown.without(end_changes)
    planned = replace(
        wanted,
        change=wanted.change.without(dropped.identities),
        compared=Comparison(read.identities, read.change_id),
        end_changes=end_changes,
        current_ends={identity: ends[identity] for identity in end_changes if identity in ends},
    )
    return planned, dropped


@dataclass(frozen=True)
class Preset:
    """A list of people saved under a name. The name doesn't include the `@`."""

    name: str
    identities: tuple[str, ...]
    saved_by: Who
    saved_at: datetime
