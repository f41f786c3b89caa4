"""Requests as stored, the values derived from them, and what they would do now.

Lists, access and policies may have changed since a request's card was drawn. Before a request is
decided or applied, its effect is therefore calculated again. If the effect has changed, nothing is
applied. Instead, the card is redrawn and asks for a new decision.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.approvals.rules import ApprovedByRule, Facts, FlowPolicy, State
from bot.approvals.times import spell_duration
from bot.flows.rules import NO_CHANGE, Change, Flow, plain
from bot.permissions import Person
from bot.store.audit_entry import BOT
from bot.testusers.rules.people import CurrentList, Did, Effect, RequestPerson, Wants

MAX_REASON_CHARS = 500
# If access is shorter than this, its end isn't announced.
ANNOUNCED_FROM = timedelta(hours=3)


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
class Requested:
    """What a request says besides its people.

    Attributes:
        presets: The names of the presets that stood for people when the change was requested.
        card_version: The version of what the card says, which goes up when the effect changes.
        client: The gateway client that asked in the requester's name, if any.
        text_sha256: The hash of the text that the client sent, which identifies repeats.
    """

    reason: str = ""
    presets: tuple[str, ...] = ()
    without_approval: bool = False
    card_version: int = 1
    client: str = ""
    text_sha256: str = ""


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


@dataclass(frozen=True)
class Result:
    """What is known of all attempts together, besides what came of each person's wish.

    `outside` contains other people's changes since the request was made. `overdue` is the reason
    that expired access hasn't been removed yet. Ends of access up to `announced_until` have been
    announced.
    """

    applied_at: datetime | None = None
    size_before: int = 0
    size_after: int = 0
    outside: Change = NO_CHANGE
    overdue: str = ""
    announced_until: datetime | None = None


@dataclass(frozen=True)
class Request:
    """A request to change a flow's test users.

    Attributes:
        people: The entries of the list that the request is about.
        list_id: The list that the people were first compared with.
        undo_of: The ID of the request that this one reverses, if any.
        undo: The state of the request that reverses this one, unless it was given up.
        version: A number that increases with every write.
    """

    id: str
    flow: Flow
    requester: Who
    people: tuple[RequestPerson, ...]
    created_at: datetime
    expires_at: datetime
    requested: Requested = Requested()
    list_id: int = 0
    undo_of: str | None = None
    undo: State | None = None
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
            is_being_undone=self.undo is not None,
        )

    @property
    def asker(self) -> str:
        """The requester's name, and the program that asked in their name, if any."""
        client = self.requested.client
        return f"{self.requester.name}{f' (through {client})' if client else ''}"

    @property
    def decision(self) -> tuple[str | None, str | None]:
        """The name of whoever decided, unless it's pending, and the reason of a denial."""
        by = self.round.decided_by if self.state is not State.PENDING else None
        reason = self.round.denial_reason if self.state is State.DENIED else None
        return by.name if by else None, reason

    @property
    def approvers(self) -> tuple[Who, ...]:
        """Whoever approved the request: people, or an automatic rule. Empty without approval."""
        if self.round.rule and self.round.decided_by:
            return (self.round.decided_by,)
        return tuple(approval.who for approval in self.round.approvals)

    @property
    def left(self) -> list[RequestPerson]:
        """The people for whom nothing has come of the request yet."""
        return self.those(Did.OPEN)

    def counted(self, needed: int) -> tuple[str, ...]:
        """Return the IDs of the people who approved and can't again, because others must, too.

        If there are enough approvals, because fewer are needed than before, anybody can.
        """
        given = self.facts.approver_ids
        return given if len(given) < needed else ()

    @property
    def has_effect(self) -> bool:
        """True if the request has changed something."""
        return bool(self.those(Did.MADE))

    @property
    def can_be_undone(self) -> bool:
        """True if the request has changed something that's still in effect."""
        is_settled = self.state in {State.APPLIED, State.FAILED}
        return is_settled and any(person.stands for person in self.people)

    @property
    def next_end(self) -> datetime | None:
        """The next end of access that still has to be announced, or None if there's none."""
        ends = list[datetime]()
        for person in self.people:
            end, since = person.ends_at, person.did_at
            if not person.has_access or end is None or since is None:
                continue
            if end > (self.result.announced_until or since) and end - since > ANNOUNCED_FROM:
                ends.append(end)
        return min(ends, default=None)

    def has_removed(self, person: RequestPerson) -> bool:
        """Return True if the request removed a person, and that is still in effect."""
        key = plain(person.spelling)
        return any(
            one.wants is Wants.REMOVE and one.stands and plain(one.spelling) == key
            for one in self.people
        )

    def those(self, *outcomes: Did) -> list[RequestPerson]:
        """Return the people whose wish had one of these outcomes."""
        return [person for person in self.people if person.did in outcomes]

    def with_left(self, left: Sequence[RequestPerson]) -> "Request":
        """Return the request with other values for the people left, and more people at the end.

        Everybody keeps their position.
        """
        new = iter(left)
        people = [next(new) if person.is_open else person for person in self.people]
        return replace(self, people=(*people, *new))

    def moved(self, state: State, by: Who, at: datetime, denial_reason: str = "") -> "Request":
        """Return the request in a new state, with the person and the time of the decision."""
        decided = replace(self.round, decided_by=by, decided_at=at, denial_reason=denial_reason)
        return replace(self, state=state, round=decided)

    def is_late_at(self, at: datetime) -> bool:
        """Return True if all of the access left to give would already be over at this time."""
        return all(person.is_late_at(at) for person in self.left)

    @property
    def asked(self) -> object:
        """What was asked for, and how, for comparing requests."""
        people = {
            (plain(person.identity), person.wants, person.asked_end, person.asked_seconds)
            for person in self.people
        }
        words = self.requested
        return self.flow.key, people, words.reason, self.undo_of, words.client, words.text_sha256


@dataclass(frozen=True)
class Asked:
    """The result of asking for a change.

    Attributes:
        dropped: The part that's left out because the list already shows it. If nothing is left, no
            request is made, and `request` is None.
        related: Other open requests for any of the people.
        is_repeated: True if the person had already asked for exactly this.
    """

    flow: Flow
    dropped: Change = NO_CHANGE
    request: Request | None = None
    related: Sequence[Request] = ()
    is_repeated: bool = False


@dataclass(frozen=True)
class Preset:
    """A list of people saved under a name. The name doesn't include the `@`."""

    name: str
    identities: tuple[str, ...]
    saved_by: Who
    saved_at: datetime


@dataclass(frozen=True)
class Review:
    """A request with its current effect. `news` describes the differences from its card."""

    request: Request
    news: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """True if nothing is left to do, because the requested access would already have ended."""
        return not self.request.left


def review(
    request: Request, flow: Flow, policy: FlowPolicy, at: datetime, current: CurrentList
) -> Review:
    """Calculate a request's effect at this time, and compare it with what its card shows.

    A wish that the list shows by now isn't news, because it needs no change.
    """
    changes = Counter[Effect | None]()
    left, late, is_capped = list[RequestPerson](), 0, False
    for spelled in current.spelled(request.left):
        person = spelled.capped(policy.longest_seconds, at)
        is_capped |= person != spelled
        if person.is_late_at(at) and request.undo_of and person.spelling in current.listed:
            # An undo restores an earlier end. If that end has passed, the person is removed.
            person = replace(person, wants=Wants.REMOVE)
        if did := _did_at(at, person, current):
            late += did is Did.LATE
            left.append(replace(person, did=did, did_at=at))
            continue
        effect = current.effect(person, at)
        if effect not in (None, person.shown):
            changes[effect if person.shown else None] += 1
            person = replace(person, shown=effect)
        if person.shown is not None:
            left.append(person)
    news = list[str]()
    alias = request.flow.alias
    if alias is not None and alias != flow.alias:
        news.append(
            f"“{alias}” is no longer this flow's alias. The request still changes this flow."
        )
    if is_capped:
        longest = spell_duration(policy.longest_seconds or 0)
        news.append(f"Access to this flow can now last at most {longest}.")
    if late:
        news.append(f"This leaves out {_people(late)}, because the requested end date has passed.")
    news += [_NEWS[change].format(who=_people(number)) for change, number in changes.items()]
    # An approval by a rule is enough, however many people would have to approve.
    needs_nobody = request.requested.without_approval or request.round.rule is not None
    has_enough = needs_nobody or len(request.round.approvals) >= policy.approvals_needed
    if request.state is State.FAILED and not has_enough:
        news.append(f"This now needs approval by {_people(policy.approvals_needed)}.")
    return Review(replace(request.with_left(left), flow=flow), tuple(news))


def _did_at(at: datetime, person: RequestPerson, current: CurrentList) -> Did | None:
    """Return what has come of a wish without a change to the list, or None if it's still open."""
    if person.is_late_at(at):
        return Did.LATE
    # A removal takes off several spellings of a person, who may be there in a new one by now.
    is_there = current.spellings.of(person.identity) and person.spelling not in current.listed
    return Did.FOUND if is_there and person.wants is Wants.ADD else None


_NEWS = {
    Effect.ADD: (
        "{who} will no longer be on the list when this change takes effect, so it adds them again."
    ),
    Effect.KEEP: "This extends the access of {who}, because they are already on the list.",
    Effect.LIMIT: (
        "This shortens the access of {who}, because they are already on the list with longer"
        " access."
    ),
    Effect.REMOVE: "This removes {who} instead, because the earlier end date has passed.",
    None: "The list now has another spelling of {who}, and this changes both.",
}


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"
