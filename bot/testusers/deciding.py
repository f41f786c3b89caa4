"""Decisions on requests: approve, deny, cancel and retry. The first decision wins."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from bot.approvals.rules import Act, Decision, Reason, State
from bot.approvals.rules import decide as decide_by_state
from bot.errors import (
    Conflict,
    GatehouseError,
    NotFound,
    Refused,
    UnknownPerson,
)
from bot.permissions import Permission, Person
from bot.slack.people import advice_after, is_not_found
from bot.store import audit
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Transaction
from bot.testusers import store
from bot.testusers.messages.phrases import outdated, state_sentence
from bot.testusers.parse.form import ShownRequest
from bot.testusers.parts import Parts
from bot.testusers.rules.applying import FOR_THE_REST
from bot.testusers.rules.requests import Approval, Request, Who
from bot.testusers.rules.review import Review
from bot.testusers.transitions import (
    STILL_CHECKING,
    apply_transition,
    ask_again,
    close,
    current_list,
    is_in_doubt,
    require_current,
    review_now,
    write_card,
)

UNSURE = "I couldn't check a permission with Slack, so I did nothing."
_ACTION = {
    Act.APPROVE: "request.approved",
    Act.DENY: "request.denied",
    Act.CANCEL: "request.cancelled",
    Act.RETRY: "request.retried",
}


@dataclass(frozen=True)
class Click:
    """A person's click on a button of a request, and the reason if it's a denial."""

    person: Person
    act: Act
    shown: ShownRequest
    denial_reason: str = ""


async def decide(bot: Parts, click: Click) -> Request:
    """Carry out a click if the person has permission and the state allows it. Return the request.

    If the change would no longer do what the clicked card says, nothing is applied. If the
    request's card says something else by now, it's brought up to date. Otherwise, it asks for a new
    decision.
    """
    request = await look(bot, click.person, click.act, click.shown.request_id)
    lapsed = await _lapsed(bot, request) if click.act is Act.APPROVE else set()
    may_ask = await _may_still_ask(bot, request, click.act)
    async with bot.database.transaction() as tx:
        request = await store.load_request(tx, request.id, lock=True) or request
        result = await _carry_out(bot, tx, click, request, lapsed, may_ask=may_ask)
    if isinstance(result, GatehouseError):
        raise result
    return result


async def _lapsed(bot: Parts, request: Request) -> set[str]:
    """Return the earlier approvers who can't approve the request anymore."""
    approvers = [approval.who.slack_user_id for approval in request.round.approvals]
    return {
        user_id
        for user_id in approvers
        if not await _may_still(bot, user_id, Permission.DECIDE, request)
    }


async def _carry_out(
    bot: Parts,
    tx: Transaction,
    click: Click,
    request: Request,
    lapsed: set[str],
    *,
    may_ask: bool,
) -> Request | GatehouseError:
    """Store what follows from the click. Return the request, or why the click wasn't followed.

    The reason is returned instead of raised, so that what was stored is committed. `may_ask` is
    False if the requester may no longer ask for changes to the flow.
    """
    at = await tx.now()
    person, act, facts = click.person, click.act, request.facts
    needed = bot.people.policy.of_flow(request.flow.sid).approvals_needed
    decision = decide_by_state(
        act,
        facts,
        person.slack_user_id,
        approvals_needed=needed,
        entitled_ids={*facts.approver_ids} - lapsed,
        at=at,
    )
    reason = decision.reason
    review = Review(request, ())
    news: tuple[str, ...] = ()
    if decision.is_followed and click.shown.version != request.requested.card_version:
        reason = Reason.OUTDATED
    elif decision.is_followed and act in (Act.APPROVE, Act.RETRY):
        review = review_now(bot, request, at, await current_list(tx, request))
        news = review.news
        if decision.next_state is not None and not may_ask:
            reason = Reason.MAY_NOT_ASK
            news = (f"{request.requester.name} may no longer ask for changes to this flow.",)
        elif news:
            reason = Reason.NEWS
        if news and act is Act.RETRY and await is_in_doubt(tx, request):
            reason = Reason.IN_DOUBT
    has_effect = request.result.done is not None
    match reason:
        case Reason.ALLOWED | Reason.QUORUM_OPEN:
            moved, entry = _followed(click, request, decision, at)
            await apply_transition(tx, request, moved, entry)
            return moved
        case Reason.TOO_LATE:
            moved = await close(tx, request, State.EXPIRED)
        case Reason.NEWS if not has_effect:
            moved = await ask_again(
                tx, request, review, bot.settings.request_hours, person.slack_user_id
            )
        case Reason.MAY_NOT_ASK if not has_effect:
            moved = await close(tx, request, State.CANCELLED, *news)
        case _:
            moved = request
            detail = {"act": act, "reason": reason, "state": request.state}
            entry = AuditEntry(person.slack_user_id, "request.refused", request.id, detail)
            await audit.append(tx, entry)
            # The person may see an outdated card.
            await write_card(tx, request.id)
    return _refusal(reason, click, moved, news, at)


async def look_to_deny(bot: Parts, person: Person, shown: ShownRequest) -> Request:
    """Return the request for the denial form, or raise Conflict if it can't be denied."""
    request = await look(bot, person, Act.DENY, shown.request_id)
    if request.state is not State.PENDING:
        raise Conflict(state_sentence(request, await bot.database.now()))
    await require_current(bot, request, shown)
    return request


async def look(bot: Parts, person: Person, act: Act, request_id: str) -> Request:
    """Return the request in any state, or raise Refused if the person can't take this action."""
    async with bot.database.read_only(sees_snapshot=False) as tx:
        request = await store.load_request(tx, request_id)
    sid = request.flow.sid if request else None
    if act is Act.CANCEL:
        await bot.people.require(person, Permission.REQUEST)
    elif act is Act.UNDO:
        await bot.people.require(person, Permission.REQUEST, flow_sid=sid)
    else:
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


async def _may_still(
    bot: Parts, slack_user_id: str, permission: Permission, request: Request
) -> bool:
    """Look the person up again, and return True if they have the permission for the flow."""
    people = bot.people
    try:
        # Requests don't record a workspace, so people are looked up in the bot's workspace.
        person = await people.find(slack_user_id, (people.team_id,), fresh=True)
    except UnknownPerson as error:
        # People who no longer exist have no permissions.
        if is_not_found(error.__cause__):
            return False
        raise UnknownPerson(f"{UNSURE} {advice_after(error.__cause__)}") from error
    requester = request.requester.slack_user_id if permission is Permission.DECIDE else None
    may = people.may(person, permission, request.flow.sid, requester)
    if person.doubt and not may:
        raise UnknownPerson(f"{UNSURE} {person.doubt}")
    return may


def _followed(
    click: Click, request: Request, decision: Decision, at: datetime
) -> tuple[Request, AuditEntry]:
    """Return the updated request and the click's audit log entry."""
    by = Who.of(click.person)
    moved = request
    if click.act is Act.RETRY:
        # A retry keeps the approvals, so nobody has to approve again.
        attempts = replace(request.attempts.cleared(), retried_by=by)
        moved = replace(request, state=State.APPLYING, attempts=attempts)
    elif decision.next_state is not None:
        moved = request.moved(decision.next_state, by, at)
    if click.act is Act.APPROVE:
        given = {approval.who.slack_user_id: approval for approval in request.round.approvals}
        given.setdefault(by.slack_user_id, Approval(by, at))
        approvals = tuple(given[approver_id] for approver_id in decision.approver_ids)
        moved = replace(moved, round=replace(moved.round, approvals=approvals))
    elif click.act is not Act.RETRY:
        moved = replace(moved, round=replace(moved.round, denial_reason=click.denial_reason))
    detail = {
        "flow": request.flow.sid,
        "state": moved.state,
        "approvers": decision.approver_ids,
        "reason": moved.round.denial_reason,
    }
    return moved, AuditEntry(click.person.slack_user_id, _ACTION[click.act], request.id, detail)


NEXT_STEP = {
    State.PENDING: "The card now shows what the change would do. Check it and decide again.",
    State.CANCELLED: "The request has been cancelled.",
    State.EXPIRED: "The request has expired.",
    State.FAILED: FOR_THE_REST,
}


SENTENCES = {
    Reason.APPROVED_BEFORE: (
        "You've already approved this request, but it still needs someone else's approval."
    ),
    Reason.BEING_UNDONE: (
        "This change can't be retried, because it was undone or someone has asked to undo it."
    ),
    Reason.IN_DOUBT: STILL_CHECKING,
}


def _refusal(
    reason: Reason, click: Click, request: Request, news: Iterable[str], now: datetime
) -> Conflict | Refused:
    """Return what the person reads whose click wasn't carried out. `request` is up to date."""
    if reason is Reason.NOT_THE_REQUESTER:
        return Refused(f"Only {request.requester.name} can cancel this request.")
    if reason is Reason.OUTDATED:
        return Conflict(outdated(request, click.shown.version))
    if reason in (Reason.NEWS, Reason.MAY_NOT_ASK):
        return Conflict(" ".join(("Nothing was applied.", *news, NEXT_STEP[request.state])))
    return Conflict(SENTENCES.get(reason) or state_sentence(request, now))
