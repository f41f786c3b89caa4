"""A comparison of a request's current effect with the effect that its card shows.

Lists, access and policies may have changed since the card was drawn. Before a request is decided or
applied, its effect is therefore calculated again. If the effect has changed, nothing is applied.
Instead, the card is redrawn and asks for a new decision.
"""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.approvals.rules import FlowPolicy, State
from bot.approvals.times import spell_duration
from bot.flows.rules.flows import Flow
from bot.testusers.rules.people import CurrentList, Did, Effect, RequestPerson, Wants
from bot.testusers.rules.requests import Attempts, Request, Round


@dataclass(frozen=True)
class Review:
    """A request with its current effect. `news` describes the differences from its card."""

    request: Request
    news: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """True if nothing is left to do, because the requested access would already have ended."""
        return not self.request.left


def reconsidered(review: Review, at: datetime, request_hours: float) -> Request:
    """Return the reviewed request as pending again, without its approvals."""
    request = review.request
    expires_at, asked_at, rung = request.expires_at, request.round.asked_at, request.round.rung
    if request.state is not State.PENDING:
        # A new round of approval has its own reminder and escalation.
        expires_at, asked_at, rung = at + timedelta(hours=request_hours), at, ()
    version = request.requested.card_version + 1
    return replace(
        request,
        state=State.PENDING,
        requested=replace(request.requested, without_approval=False, card_version=version),
        expires_at=expires_at,
        round=Round(news=review.news, asked_at=asked_at, rung=rung),
        attempts=Attempts(),
    )


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
        if person.is_late_at(at) and request.undo_of and current.has(person.spelling):
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
    count = policy.approvals_needed if request.round.rule else len(request.round.approvals)
    has_enough = count >= policy.approvals_needed or request.requested.without_approval
    if request.state is State.FAILED and not has_enough:
        news.append(f"This now needs approval by {_people(policy.approvals_needed)}.")
    return Review(replace(request.with_left(left), flow=flow), tuple(news))


def _did_at(at: datetime, person: RequestPerson, current: CurrentList) -> Did | None:
    """Return what has come of a wish without a change to the list, or None if it's still open."""
    if person.is_late_at(at):
        return Did.LATE
    # A removal takes off several spellings of a person, who may be there in a new one by now.
    is_there = current.spellings.of(person.identity) and not current.has(person.spelling)
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
