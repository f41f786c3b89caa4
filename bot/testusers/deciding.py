"""Decisions on requests: approve, deny, cancel and retry. The first decision wins."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bot.approvals.rules import Act, Decision, Reason, State
from bot.approvals.rules import decide as decide_by_state
from bot.errors import Conflict, NotFound, Refused, SlackRefused, UnknownPerson
from bot.ops.current_delivery import delivery_id
from bot.permissions import Permission, Person
from bot.slack.people import NOT_FOUND
from bot.store import audit
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.testusers import store
from bot.testusers.messages.phrases import state_sentence
from bot.testusers.parts import Parts
from bot.testusers.rules.applying import FOR_THE_REST
from bot.testusers.rules.requests import THE_BOT, Approval, Request, Who
from bot.testusers.transitions import (
    apply_transition,
    ask_again,
    expired_entry,
    is_in_doubt,
    review_of,
)

STILL_CHECKING = (
    "I'm still checking whether this change went through. Please try again in a minute."
)
UNSURE = "I couldn't check a permission with Slack, so I did nothing. Please try again."
_ACTION = {
    Act.APPROVE: "request.approved",
    Act.DENY: "request.denied",
    Act.CANCEL: "request.cancelled",
    Act.RETRY: "request.retried",
}


@dataclass(frozen=True, slots=True)
class Decided:
    """The result of a click, with the current request and the number of approvals it needs."""

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
    clicked_at: datetime | None = None,
) -> Decided:
    """Carry out a click if the person has permission and the request's state allows it.

    If the change would no longer do what the card shows, nothing is applied and the card asks
    for a new decision.
    """
    request = await _look(bot, person, act, request_id)
    checked = request.progress.approvals if act is Act.APPROVE else ()
    lapsed = {
        approval.who.slack_user_id
        for approval in checked
        if not await _may_still(bot, approval.who.slack_user_id, Permission.DECIDE, request)
    }
    may_ask = await _may_still_ask(bot, request, act)
    async with bot.database.transaction() as tx:
        request, at = await store.load_request(tx, request_id, lock=True) or request, await tx.now()
        facts, needed = request.facts, bot.people.policy.of_flow(request.flow.sid).approvals_needed
        decision = decide_by_state(
            act,
            facts,
            person.slack_user_id,
            approvals_needed=needed,
            entitled_ids={*facts.approver_ids} - lapsed,
            at=at,
        )
        moved = review = None
        news: Sequence[str] = ()
        if decision.is_followed and act in (Act.APPROVE, Act.RETRY):
            shown_at, known = request.requested.shown_at, request.progress.news
            if known and shown_at and clicked_at and clicked_at < shown_at:
                raise Conflict(_nothing_applied(request, known))
            if decision.next_state is State.APPLYING and not may_ask:
                moved = await _cancel(tx, request, at)
                news = (moved.progress.denial_reason,)
            else:
                review = await review_of(bot, tx, request)
                news = review.news
        if news and act is Act.RETRY and await is_in_doubt(tx, request):
            raise Conflict(STILL_CHECKING)
        step = None if news else _moved(person, act, request, decision, at, denial_reason)
        if step is not None:
            moved, entry = step
            await apply_transition(tx, request, moved, entry)
        elif review and news and request.progress.done is None:
            hours, actor = bot.settings.request_hours, person.slack_user_id
            moved = await ask_again(tx, request, review, hours, actor)
        else:
            detail = {"act": act, "reason": decision.reason, "state": request.state}
            entry = AuditEntry(person.slack_user_id, "request.refused", request.id, detail)
            await audit.append(tx, entry)
    now = moved or request
    if news:
        raise Conflict(_nothing_applied(now, news))
    if not decision.is_followed:
        raise _refusal(decision.reason, now, at)
    return Decided(act, decision.reason, now, needed)


async def look_to_deny(bot: Parts, person: Person, request_id: str) -> Request:
    """Return the request for the denial form, or raise Conflict if it can't be denied anymore."""
    request = await _look(bot, person, Act.DENY, request_id)
    if request.state is not State.PENDING:
        raise Conflict(state_sentence(request, await bot.database.now()))
    return request


async def _look(bot: Parts, person: Person, act: Act, request_id: str) -> Request:
    """Return the request in any state, or raise Refused if the person has no permission."""
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


async def _may_still_ask(bot: Parts, request: Request, act: Act) -> bool:
    """Return False if the requester may no longer ask for changes to a flow with `requesters`."""
    is_limited = bot.people.policy.of_flow(request.flow.sid).requesters is not None
    if act not in (Act.APPROVE, Act.RETRY) or not is_limited or request.requested.without_approval:
        return True
    return await _may_still(bot, request.requester.slack_user_id, Permission.REQUEST, request)


async def _cancel(tx: Transaction, request: Request, at: datetime) -> Request:
    """Cancel a request whose requester may no longer ask for it."""
    reason = f"{request.requester.name} may no longer ask for changes to this flow."
    if request.progress.done is not None:
        raise Conflict(f"Nothing was applied. {reason}")
    cancelled = request.moved(
        State.CANCELLED, THE_BOT, at, replace(request.progress, denial_reason=reason)
    )
    detail = {"flow": request.flow.sid, "reason": reason}
    entry = AuditEntry(BOT, "request.cancelled", request.id, detail)
    await apply_transition(tx, request, cancelled, entry)
    return cancelled


async def _may_still(
    bot: Parts, slack_user_id: str, permission: Permission, request: Request
) -> bool:
    """Look the person up again, and return True if they have the permission for the flow."""
    people = bot.people
    try:
        # Requests don't record a workspace, so people are looked up in the bot's workspace.
        person = await people.find(slack_user_id, (people.team_id,), fresh=True)
    except UnknownPerson as error:
        cause = error.__cause__
        # People who no longer exist have no permissions.
        if isinstance(cause, SlackRefused) and cause.error in NOT_FOUND:
            return False
        raise UnknownPerson(UNSURE) from error
    requester = request.requester.slack_user_id if permission is Permission.DECIDE else None
    may = people.may(person, permission, request.flow.sid, requester)
    if person.doubt and not may:
        raise UnknownPerson(UNSURE)
    return may


def _moved(
    person: Person, act: Act, request: Request, decision: Decision, at: datetime, reason: str
) -> tuple[Request, AuditEntry] | None:
    """Return the updated request and the click's audit log entry, or None if nothing changes."""
    progress, by = request.progress, Who.of(person)
    if decision.next_state is State.EXPIRED:
        expired = request.moved(State.EXPIRED, THE_BOT, at, progress)
        return expired, expired_entry(expired)
    if not decision.is_followed:
        return None
    progress = replace(progress, delivery_id=delivery_id())
    if act is Act.RETRY:
        # A retry keeps the approvals, so nobody has to approve again.
        retries = (*progress.retries, at.isoformat())
        progress = replace(progress.cleared(), retries=retries, retried_by=by)
        moved = replace(request, state=State.APPLYING, progress=progress)
    else:
        given = {approval.who.slack_user_id: approval for approval in progress.approvals}
        given[by.slack_user_id] = given.get(by.slack_user_id) or Approval(by, at)
        if act is Act.APPROVE:
            approvals = tuple(given[approver_id] for approver_id in decision.approver_ids)
            progress = replace(progress, approvals=approvals)
        else:
            progress = replace(progress, denial_reason=reason)
        moved = replace(request, progress=progress)
        if decision.next_state is not None:
            moved = request.moved(decision.next_state, by, at, progress)
    detail = {
        "flow": request.flow.sid,
        "state": moved.state,
        "approvers": decision.approver_ids,
        "lapsed": sorted({*request.facts.approver_ids} - {*moved.facts.approver_ids}),
        "reason": moved.progress.denial_reason,
    }
    return moved, AuditEntry(person.slack_user_id, _ACTION[act], request.id, detail)


def _nothing_applied(request: Request, news: Iterable[str]) -> str:
    next_step = {
        State.PENDING: "The card now shows what the change would do. Check it and decide again.",
        State.CANCELLED: "The request has been cancelled.",
        State.EXPIRED: "The request has expired.",
        State.FAILED: FOR_THE_REST,
    }[request.state]
    return " ".join(("Nothing was applied.", *news, next_step))


def _refusal(reason: Reason, request: Request, now: datetime) -> Conflict | Refused:
    if reason is Reason.NOT_THE_REQUESTER:
        return Refused(f"Only {request.requester.name} can cancel this request.")
    if reason is Reason.APPROVED_BEFORE:
        return Conflict("You've already approved this. It still needs someone else's approval.")
    if reason is Reason.BEING_UNDONE:
        if request.progress.is_undone:
            return Conflict("This was undone, so it can't be retried. Please make a new request.")
        return Conflict("This can't be retried, because someone has asked to undo it.")
    if reason is Reason.TOO_LATE:
        return Conflict(f"Too late. {state_sentence(request, now)}")
    return Conflict(state_sentence(request, now))
