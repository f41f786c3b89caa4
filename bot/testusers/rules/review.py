"""A comparison of a request's current effect with the effect that its card shows.

Lists, grants and policies may have changed since the card was drawn. Before a request is decided or
applied, its effect is therefore calculated again. If the effect has changed, nothing is applied.
Instead, the card is redrawn and asks for a new decision.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from bot.approvals.rules import FlowPolicy, State
from bot.approvals.times import spell_duration
from bot.flows.rules.flows import Flow
from bot.flows.rules.lists import Change
from bot.testusers.rules.requests import (
    Comparison,
    Effect,
    Grant,
    RecordedChange,
    Request,
    RequestedChange,
)

LATER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Review:
    """A request with its current effect. `news` describes the differences from its card."""

    request: Request
    news: tuple[str, ...]

    @property
    def is_over(self) -> bool:
        """True if nothing is left to do, because the requested access would already have ended."""
        return self.request.left.is_empty


@dataclass(frozen=True)
class CurrentList:
    """A flow's list, and the bot's recorded changes that requests haven't been compared with.

    `grants` is keyed by identity.
    """

    identities: tuple[str, ...]
    recorded: Sequence[RecordedChange]
    grants: Mapping[str, Grant]


def reconsidered(request: Request, review: Review, at: datetime, request_hours: float) -> Request:
    """Return the request as pending again, without its approvals."""
    is_waiting = request.state is State.PENDING
    new_round = replace(
        request.round,
        news=review.news,
        approvals=(),
        rule=None,
        decided_by=None,
        decided_at=None,
    )
    if not is_waiting:
        # A new round of approval has its own reminder and escalation.
        new_round = replace(new_round, asked_at=at, rung=())
    requested = replace(
        review.request.requested,
        without_approval=False,
        card_version=request.requested.card_version + 1,
    )
    return replace(
        review.request,
        state=State.PENDING,
        requested=requested,
        expires_at=request.expires_at if is_waiting else at + timedelta(hours=request_hours),
        round=new_round,
        attempts=request.attempts.cleared(),
    )


def review(
    request: Request,
    flow: Flow,
    policy: FlowPolicy,
    at: datetime,
    current: CurrentList,
) -> Review:
    """Calculate a request's effect at this time, and compare it with what its card shows."""
    requested = request.requested
    compared = requested.compared
    listed = current.identities
    edits = compared.edits_until(listed, compared.unseen(current.recorded))
    grant_ends = {
        identity: grant.ends_at for identity, grant in current.grants.items() if grant.ends_at
    }
    capped, longest = requested, policy.longest_seconds
    if longest is not None and requested.change.additions:
        last = at + timedelta(seconds=longest)
        ends = {identity: min(end, last) for identity, end in requested.ends.items()}
        duration = requested.duration_seconds
        if set(requested.change.additions) - requested.ends.keys():
            duration = min(duration or longest, longest)
        capped = replace(requested, ends=ends, duration_seconds=duration)
    present = {identity for identity in listed if grant_ends.get(identity, LATER) > at}
    change, end_changes = _change(capped, request.left, at, present, grant_ends)
    over = set(request.left.additions) - set(change.identities)
    settled = requested.change.without(request.left.identities)
    now = replace(
        capped,
        change=Change(settled.additions + change.additions, settled.removals + change.removals),
        end_changes=end_changes,
        current_ends={person: grant_ends[person] for person in end_changes if person in grant_ends},
        compared=Comparison(
            listed,
            max([compared.seen_change_id, *(one.id for one in current.recorded)]),
            edits.without(requested.change.identities),
            at,
        ),
    )
    before = requested.effects(request.left, compared.shown_at or request.created_at)
    after = now.effects(change, at)
    news = list(_news(request, flow, policy, capped, len(over), before, after))
    # An approval by a rule counts as one approval.
    given = len(request.round.approvals) or int(request.round.rule is not None)
    has_enough = given >= policy.approvals_needed or requested.without_approval
    if request.state is State.FAILED and not has_enough:
        news.append(f"{policy.approvals_needed} approvals are now needed.")
    return Review(replace(request, flow=flow, requested=now), tuple(news))


def _change(
    requested: RequestedChange,
    left: Change,
    at: datetime,
    present: Collection[str],
    grant_ends: Mapping[str, datetime],
) -> tuple[Change, tuple[str, ...]]:
    """Return the change left to apply and the added people who only get a new end of access."""
    additions, removals, end_changes = [], list(left.removals), []
    for identity in left.additions:
        end, is_there = requested.end_of(identity, at), identity in present
        if end is not None and end <= at:
            # An undo restores an earlier end. If that end has passed, the person is removed.
            removals += [identity] if requested.undo_of and is_there else []
            continue
        additions.append(identity)
        has_end = end is not None or identity in grant_ends
        if is_there and (has_end or identity in requested.end_changes):
            end_changes.append(identity)
    return Change(tuple(additions), tuple(removals)), tuple(end_changes)


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
}


def _news(
    request: Request,
    flow: Flow,
    policy: FlowPolicy,
    capped: RequestedChange,
    number_over: int,
    before: Mapping[str, Effect],
    after: Mapping[str, Effect],
) -> Iterator[str]:
    was = request.flow
    if was.alias is not None and was.alias != flow.alias:
        yield f"“{was.alias}” is no longer this flow's alias. The request still changes this flow."
    if capped != request.requested:
        longest = spell_duration(policy.longest_seconds or 0)
        yield f"Access to this flow can now last at most {longest}."
    if number_over:
        yield f"This leaves out {_people(number_over)}, because the requested end date has passed."
    changed = Counter(
        effect for person, effect in after.items() if before.get(person) is not effect
    )
    for effect, number in changed.items():
        yield _NEWS[effect].format(who=_people(number))


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"
