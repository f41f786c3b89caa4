"""A request to change a flow's test users, as it is stored and shown."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta

from bot.dataclass import dataclass
from bot.model.testusers.approval import Facts, State
from bot.model.testusers.changes import NO_CHANGE, Change, Flow


@dataclass(frozen=True, slots=True)
class Who:
    """A person, by Slack's id and the name that Slack showed at the time."""

    slack_user_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval, when it was given, and the id of the stored click that gave it."""

    who: Who
    at: datetime
    click_id: str = ""


@dataclass(frozen=True, slots=True)
class RequestedChange:
    """What was asked for; it never changes.

    `end_changes` are additions of people who were there already, for whom only the end changes.
    `ends` are fixed ends of an undo; otherwise the end is `duration_seconds` after the change.
    `starts_at` is when an approved change is applied; None for at once.
    `current_ends` are those that stood for the people of `end_changes` when it was asked.
    `seen` is the list as it stood when asked, after the recorded change `seen_change_id`; what is
    over has it no longer.
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

    @property
    def effect(self) -> tuple[object, ...]:
        """What two requests for the same share: who, for how long, and from when on."""
        people = frozenset(self.change.additions), frozenset(self.change.removals)
        return (*people, self.duration_seconds, self.starts_at, tuple(sorted(self.ends.items())))


@dataclass(frozen=True, slots=True)
class Done:
    """What applying a request really did.

    `previous_ends` holds the end that the grant of a removed or changed person had before; an
    end of None was a grant without one. `outside` is what others did since the request was made.
    """

    at: datetime
    change: Change
    already: Change
    outside: Change
    size_before: int
    size_after: int
    ends_at: Mapping[str, datetime] = field(default_factory=dict)
    previous_ends: Mapping[str, datetime | None] = field(default_factory=dict)

    def respelled(self, spell: Callable[[str], str]) -> "Done":
        """The same, of people who are spelled otherwise by now."""
        people = (*self.change.identities, *self.already.identities)
        now = {one: spell(one) for one in people}
        # Nobody becomes somebody else whom it is about too.
        taken = Counter(now.values())
        now = {one: new if taken[new] == 1 else one for one, new in now.items()}

        def spelled(change: Change) -> Change:
            additions = tuple(now[one] for one in change.additions)
            return Change(additions, tuple(now[one] for one in change.removals))

        return replace(
            self,
            change=spelled(self.change),
            already=spelled(self.already),
            ends_at={now.get(one, one): end for one, end in self.ends_at.items()},
            previous_ends={now.get(one, one): end for one, end in self.previous_ends.items()},
        )

    def after(self, part: "Done | None") -> "Done":
        """The same, with what took effect before."""
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
    """A grant that came to its end, and whether somebody else had removed the person before."""

    identity: str
    at: datetime
    was_gone: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """What has happened to a request so far.

    `is_unsure` says of a failure that nobody knows whether the change arrived all the same.
    `retries` are the ids of the clicks that had it tried again. `landed` is what of it was found on
    the list before all of it was true; once it has failed, that has taken effect and is `part`.
    `superseded` are people whose grant a later request replaced or removed; `overdue` is why a
    grant that is over could not be ended yet; `undone_by` is the id of the request that undoes this
    one, and `is_undone` that it did; `undo_given_up_at` is when the last one was denied, cancelled
    or ran out; `delivery_id` is the id in the log of what Slack sent last to have it applied.
    """

    approvals: tuple[Approval, ...] = ()
    denial_reason: str = ""
    failure: str = ""
    is_unsure: bool = False
    tries: int = 0
    retry_at: datetime | None = None
    retries: tuple[str, ...] = ()
    landed: Change = NO_CHANGE
    part: Done | None = None
    done: Done | None = None
    ended: tuple[Ended, ...] = ()
    superseded: tuple[str, ...] = ()
    overdue: str = ""
    undone_by: str | None = None
    is_undone: bool = False
    undo_given_up_at: datetime | None = None
    delivery_id: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `version` grows with every write, so that of two writers one wins.

    `is_genuine` is False when it does not stand in the database as the bot wrote it.
    """

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
    is_genuine: bool = field(default=True, compare=False)

    @property
    def facts(self) -> Facts:
        """What the state machine needs to know."""
        return Facts(
            self.state,
            self.requester.slack_user_id,
            self.expires_at,
            tuple(approval.who.slack_user_id for approval in self.progress.approvals),
            self.requested.starts_at,
            is_being_undone=self.progress.undone_by is not None,
        )

    @property
    def has_failed_in_part(self) -> bool:
        """Whether it has failed, and the service has carried out a part of it."""
        return self.state is State.FAILED and self.progress.part is not None

    @property
    def took_effect(self) -> Done | None:
        """What of it took effect: all, or a part of what failed; None for nothing."""
        return self.progress.done or self.progress.part

    @property
    def left(self) -> Change:
        """What of it has not taken effect: a part that has is not done a second time."""
        if self.progress.part is None:
            return self.requested.change
        return self.requested.change.without(self.progress.part.change.identities)

    @property
    def is_over(self) -> bool:
        """Whether nobody whom it added has access by it any more."""
        gone = {one.identity for one in self.progress.ended} | set(self.progress.superseded)
        part = self.progress.part
        change = self.requested.change if part is None else part.change
        return self.progress.is_undone or gone.issuperset(change.additions)

    def has_enough_approvals(self, needed: int) -> bool:
        """Whether it has them though it waits: more were needed when they were given.

        It takes one more press of `Approve`, of anybody who may, even of one who has.
        """
        return self.state is State.PENDING and len(self.progress.approvals) >= needed

    def moved(self, state: State, by: Who, at: datetime, progress: Progress) -> "Request":
        """The request after somebody decided."""
        return replace(self, state=state, decided_by=by, decided_at=at, progress=progress)

    def change_at(self, at: datetime) -> Change:
        """What is left of it at a moment: a fixed end that is over lets nobody stay or come."""
        over = [one for one, end in self.requested.ends.items() if end <= at]
        change = self.left
        late = tuple(one for one in change.additions if one in over)
        return Change(change.without(late).additions, change.removals + late)

    def end_for(self, identity: str, applied_at: datetime) -> datetime | None:
        """When the grant of an added person ends, or None for never."""
        if identity in self.requested.ends:
            return self.requested.ends[identity]
        if self.requested.duration_seconds is None:
            return None
        return applied_at + timedelta(seconds=self.requested.duration_seconds)


@dataclass(frozen=True, slots=True)
class Grant:
    """A person who was added by a request, until when, and who stands for it."""

    identity: str
    request_id: str
    granted_by: Who
    approved_by: tuple[Who, ...]
    granted_at: datetime
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """One replacement of a flow's list by the bot, and the requests and ended grants behind it."""

    id: int
    at: datetime
    change: Change
    request_ids: tuple[str, ...]
    ended: tuple[str, ...]
