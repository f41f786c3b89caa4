"""Approves, denies, cancels and retries requests; if several people click, the first wins."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from bot.approvals.parse import zone_of
from bot.approvals.rules import (
    RULE_NAME,
    Act,
    ApprovedByRule,
    Decision,
    Reason,
    State,
    is_automatic,
    rule_id,
)
from bot.approvals.rules import decide as decide_by_state
from bot.errors import Conflict, NotFound, Refused, SlackRefused, UnknownPerson
from bot.ops.current_delivery import delivery_id
from bot.permissions import Permission, Person
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.testusers import store
from bot.testusers.flows import THE_BOT, Parts, who
from bot.testusers.messages.phrases import state_sentence
from bot.testusers.rules.requests import Approval, Request, Who
from bot.testusers.rules.review import TAKES_AWAY, effects, reconsidered
from bot.testusers.transitions import (
    apply_transition,
    asked_again_entry,
    expired_entry,
    is_in_doubt,
    review_of,
)

ROUNDS = 10
STILL_CHECKING = (
    "I'm still checking whether this change went through. Please try again in a minute."
)
UNSURE = "I couldn't re-check an earlier approver with Slack. Please try again."
_ACTION = {
    Act.APPROVE: "request.approved",
    Act.DENY: "request.denied",
    Act.CANCEL: "request.cancelled",
    Act.RETRY: "request.retried",
}
# Slack's error names for an id that no longer belongs to anybody, whose approval doesn't count.
GONE_PEOPLE = frozenset({"user_not_found", "user_not_visible", "users_not_found"})
# The effect of these actions is compared with the card before anything is applied.
_ACTING = frozenset({Act.APPROVE, Act.RETRY})
GIVEN_UP = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED})
_MADE_BY = {
    Act.APPROVE: {State.SCHEDULED, State.APPLYING, State.APPLIED},
    Act.DENY: {State.DENIED},
    Act.CANCEL: {State.CANCELLED},
}


@dataclass(frozen=True, slots=True)
class Click:
    """The stored click behind a decision, and the time of the click, if known."""

    id: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """The result of a click: the current request, the reason, and the approvals `needed`."""

    act: Act
    reason: Reason
    request: Request
    needed: int


async def decide(
    bot: Parts,
    person: Person,
    act: Act,
    request_id: str,
    denial_reason: str = "",
    click: Click = Click(),
) -> Decided:
    """Carry out a click, if the person is allowed to and nobody has decided before.

    Repeating a click returns the same result, so it is safe.
    """
    for _ in range(ROUNDS):
        request = await _look(bot, person, act, request_id)
        if _did_so_before(person, act, request, denial_reason, click):
            if act is Act.APPROVE and request.state in GIVEN_UP:
                raise _refusal(Reason.WRONG_STATE, request, await bot.database.now())
            is_open = request.state is State.PENDING
            reason = Reason.QUORUM_OPEN if is_open else Reason.ALLOWED
            return Decided(act, reason, request, _needed(bot, request))
        decided = await _try(bot, person, act, request, denial_reason, click)
        if decided is not None:
            return decided
    raise Conflict("Someone else is deciding right now. Please try again.")


async def look_to_deny(bot: Parts, person: Person, request_id: str) -> Request:
    """Return the request if the person may deny it now, to ask for a reason."""
    request = await _look(bot, person, Act.DENY, request_id)
    if request.state not in {State.PENDING, State.SCHEDULED}:
        raise Conflict(state_sentence(request, await bot.database.now()))
    return request


async def _look(bot: Parts, person: Person, act: Act, request_id: str) -> Request:
    """Return the request, in any state, if the person has the permission for the action."""
    async with bot.database.read_only() as tx:
        request = await store.load_request(tx, request_id)
    if act is Act.CANCEL:
        await bot.people.require(person, Permission.REQUEST)
    else:
        sid = request.flow.sid if request else None
        requester = request.requester.slack_user_id if request and act is Act.APPROVE else None
        await bot.people.require(person, Permission.DECIDE, flow_sid=sid, requester=requester)
    if request is None:
        raise NotFound("That request no longer exists.")
    return request


def _needed(bot: Parts, request: Request) -> int:
    return bot.people.policy.of_flow(request.flow.sid).approvals_needed


async def _try(
    bot: Parts, person: Person, act: Act, request: Request, denial_reason: str, click: Click
) -> Decided | None:
    """Try once; return None if the request was changed in between."""
    given_by = [approval.who.slack_user_id for approval in request.progress.approvals]
    checked = given_by if act is Act.APPROVE else ()
    entitled = [user_id for user_id in checked if await _is_entitled(bot, user_id, request)]
    async with bot.database.transaction() as tx:
        at = await tx.now()
        decision = decide_by_state(
            act,
            request.facts,
            person.slack_user_id,
            approvals_needed=_needed(bot, request),
            entitled_ids=entitled,
            at=at,
        )
        given = Approval(who(person), at, click.id)
        moved = _moved(request, act, decision, given, denial_reason)
        news = None
        if act in _ACTING and decision.is_followed:
            shown_at, known = request.requested.shown_at, request.progress.news
            if known and shown_at and click.at and click.at < shown_at:
                raise Conflict(_nothing_applied(request, known))
            review = await review_of(bot, tx, request)
            news = review if review.news else None
        if news is not None:
            if act is Act.RETRY and await is_in_doubt(tx, request):
                raise Conflict(STILL_CHECKING)
            # Not reconsidered if a part has already taken effect.
            hours, has_part = bot.settings.request_hours, request.progress.part is not None
            moved = None if has_part else reconsidered(request, news, at, hours, THE_BOT)
        if moved is None:
            detail = {"act": act, "reason": decision.reason, "state": request.state}
            entry = AuditEntry(person.slack_user_id, "request.refused", request.id, detail)
            await bot.audit.append(tx, entry)
        elif not await apply_transition(
            tx, bot.audit, request, moved, _entry(person, act, request, moved, decision)
        ):
            return None
    now = moved or request
    if news is not None:
        raise Conflict(_nothing_applied(now, news.news))
    if not decision.is_followed:
        raise _refusal(decision.reason, now, at)
    return Decided(act, decision.reason, now, _needed(bot, now))


async def _is_entitled(bot: Parts, slack_user_id: str, request: Request) -> bool:
    people = bot.people
    try:
        # In earlier versions, only people in this workspace could approve.
        person = await people.find(slack_user_id, (people.team_id,), fresh=True)
    except UnknownPerson as error:
        cause = error.__cause__
        if isinstance(cause, SlackRefused) and cause.error in GONE_PEOPLE:
            return False
        raise UnknownPerson(UNSURE) from error
    requester = request.requester.slack_user_id
    may = people.may(person, Permission.DECIDE, request.flow.sid, requester)
    if person.doubt and not may:
        raise UnknownPerson(UNSURE)
    return may


def _did_so_before(
    person: Person, act: Act, request: Request, denial_reason: str, click: Click
) -> bool:
    """Return True if this click, or the person's last click like it, was already carried out.

    A process may have died before it answered or before Slack received its acknowledgement, so that
    the person pressed the button again.
    """
    approvals = (approval.click_id for approval in request.progress.approvals)
    if click.id and click.id in {*approvals, *request.progress.retries}:
        return True
    by = request.decided_by and request.decided_by.slack_user_id
    return (
        request.state in _MADE_BY.get(act, ())
        and by == person.slack_user_id
        and request.progress.denial_reason == denial_reason
    )


def _moved(
    request: Request, act: Act, decision: Decision, given: Approval, denial_reason: str
) -> Request | None:
    progress = request.progress
    if decision.next_state is State.EXPIRED:
        return request.moved(State.EXPIRED, THE_BOT, given.at, progress)
    if not decision.is_followed:
        return None
    progress = replace(progress, delivery_id=delivery_id())
    if act is Act.APPROVE:
        counting = set(decision.approver_ids)
        standing = {
            approval.who.slack_user_id: approval
            for approval in progress.approvals
            if approval.who.slack_user_id in counting
        }
        standing.setdefault(given.who.slack_user_id, given)
        progress = replace(progress, approvals=tuple(standing.values()))
    elif act is Act.RETRY:
        progress = replace(
            progress,
            tries=0,
            retry_at=None,
            failure="",
            is_unsure=False,
            retries=(*progress.retries, *filter(None, [given.click_id])),
            retried_by=given.who,
        )
    else:
        progress = replace(progress, denial_reason=denial_reason)
    # A retry keeps the approval and the people who gave it.
    if decision.next_state is None or act is Act.RETRY:
        return replace(request, state=decision.next_state or request.state, progress=progress)
    return request.moved(decision.next_state, given.who, given.at, progress)


def _entry(
    person: Person, act: Act, request: Request, moved: Request, decision: Decision
) -> AuditEntry:
    if moved.state is State.EXPIRED:
        return expired_entry(moved)
    if moved.requested.shown_at != request.requested.shown_at:
        return asked_again_entry(person.slack_user_id, moved)
    lapsed = {approval.who.slack_user_id for approval in request.progress.approvals} - {
        approval.who.slack_user_id for approval in moved.progress.approvals
    }
    detail = {
        "flow": request.flow.sid,
        "state": moved.state,
        "approvers": decision.approver_ids,
        "lapsed": sorted(lapsed),
        "reason": moved.progress.denial_reason,
    }
    return AuditEntry(person.slack_user_id, _ACTION[act], request.id, detail)


def _nothing_applied(request: Request, news: Iterable[str]) -> str:
    next_step = {
        State.PENDING: "The card now shows what this would do. Check it, and decide again.",
        State.EXPIRED: "The request has expired.",
        State.FAILED: "Please make a new request for the rest.",
    }[request.state]
    return " ".join(("Nothing was applied.", *news, next_step))


def _refusal(reason: Reason, request: Request, now: datetime) -> Conflict | Refused:
    if reason is Reason.NOT_THE_REQUESTER:
        return Refused(f"Only {request.requester.name} can cancel this request.")
    if reason is Reason.APPROVED_BEFORE:
        return Conflict("You've already approved this. Someone else has to approve it too.")
    if reason is Reason.BEING_UNDONE:
        if request.progress.is_undone:
            return Conflict("This has been undone. Please ask for it again.")
        return Conflict("Someone has asked to undo this, so it can't be retried now.")
    if reason is Reason.TOO_LATE:
        return Conflict(f"Too late. {state_sentence(request, now)}")
    return Conflict(state_sentence(request, now))


async def approved_by_rule(
    bot: Parts, tx: Transaction, person: Person, request: Request
) -> Request | None:
    """Return the new request as approved, if the flow's policy approves it automatically.

    The caller has locked the audit log, so two simultaneous requests count each other.
    """
    policy, requested = bot.people.policy.of_flow(request.flow.sid), request.requested
    if policy.auto is None or request.state is not State.PENDING or requested.starts_at:
        return None
    now, counted_as = request.created_at, rule_id(policy, request.flow.key)
    zone = zone_of(person.time_zone) or UTC
    midnight = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    used = await store.count_by_rule(tx, person.slack_user_id, counted_as, midnight)
    ends = [requested.end_of(identity, now) for identity in requested.change.additions]
    by_person = effects(requested, requested.change, now)
    if not is_automatic(
        policy,
        used,
        {person.slack_user_id, *person.groups},
        [(end - now).total_seconds() if end else None for end in ends],
        takes_away=not TAKES_AWAY.isdisjoint(by_person.values()),
    ):
        return None
    rule = ApprovedByRule(
        policy.sources["auto"], policy.auto.longest_seconds, used + 1, policy.auto.a_day
    )
    progress = replace(request.progress, rule=rule, delivery_id=delivery_id())
    approved = request.moved(State.APPLYING, Who(counted_as, RULE_NAME), now, progress)
    detail = {"flow": request.flow.sid, **asdict(rule)}
    entry = AuditEntry(BOT, "request.approved_by_rule", request.id, detail)
    await apply_transition(tx, bot.audit, request, approved, entry)
    return approved
