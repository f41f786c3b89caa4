"""Decisions on requests: approve, deny, cancel and retry. The first decision wins."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

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
from bot.testusers import store
from bot.testusers.messages.phrases import outdated, state_sentence
from bot.testusers.parse.command import ShownRequest
from bot.testusers.parts import Parts, policy_of
from bot.testusers.reading import reader_of
from bot.testusers.rules.applying import FOR_THE_REST
from bot.testusers.rules.requests import Approval, Attempts, Request, Review, Who
from bot.testusers.work import Work, current_list, review_now, write_card

STILL_CHECKING = (
    "I'm still checking whether this change went through. Please try again in a minute."
)
UNSURE = "I couldn't check a permission with Slack, so I did nothing."
# What the audit log calls a decision, and the states in which it has been carried out.
_DECISIONS = {
    Act.APPROVE: ("request.approved", (State.APPLYING, State.APPLIED)),
    Act.DENY: ("request.denied", (State.DENIED,)),
    Act.CANCEL: ("request.cancelled", (State.CANCELLED,)),
    Act.RETRY: ("request.retried", (State.APPLYING, State.APPLIED)),
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
    # The earlier approvers who can't approve the request anymore.
    lapsed = set[str]()
    for user_id in request.facts.approver_ids if click.act is Act.APPROVE else ():
        if not await _may_still(bot, user_id, Permission.DECIDE, request):
            lapsed.add(user_id)
    may_ask = await _may_still_ask(bot, request, click.act)
    rule_stands = click.act is not Act.RETRY or await _rule_stands(bot, request)
    async with bot.database.transaction() as tx:
        stored, related, listed = await store.and_related(tx, request.id, is_locked=True)
        request = stored or request
        work = Work(bot, tx, await tx.now(), [request], listed)
        if not rule_stands:
            request = replace(request, round=replace(request.round, rule=None))
        result = await _carry_out(work, click, request, lapsed, may_ask=may_ask)
        await work.write(related)
    if isinstance(result, GatehouseError):
        raise result
    return result


async def _carry_out(
    work: Work,
    click: Click,
    request: Request,
    lapsed: set[str],
    *,
    may_ask: bool,
) -> Request | GatehouseError:
    """Do what follows from the click. Return the request, or why the click wasn't followed.

    The reason is returned instead of raised, so that what was stored is committed. `may_ask` is
    False if the requester may no longer ask for changes to the flow.
    """
    at, person, act, facts = work.at, click.person, click.act, request.facts
    needed = policy_of(work.bot, request.flow).approvals_needed
    decision = decide_by_state(
        act,
        facts,
        person.slack_user_id,
        approvals_needed=needed,
        entitled_ids={*facts.approver_ids} - lapsed,
        at=at,
    )
    reason, review = decision.reason, Review(request)
    if decision.is_followed:
        reason, review = await _reviewed(work, click, request, decision, may_ask=may_ask)
    elif reason is Reason.WRONG_STATE:
        by = request.attempts.retried_by if act is Act.RETRY else request.round.decided_by
        if by == Who.of(person) and request.state in _DECISIONS[act][1]:
            # The same click again, after a commit whose outcome was unknown.
            return request
    news = review.news
    match reason:
        case Reason.ALLOWED | Reason.QUORUM_OPEN:
            return _follow(work, click, request, decision)
        case Reason.TOO_LATE:
            moved = work.close(request, State.EXPIRED)
        case Reason.NEWS if not request.has_effect:
            moved = work.ask_again(review, person.slack_user_id)
        case Reason.MAY_NOT_ASK if not request.has_effect:
            # What failed before isn't why it's cancelled.
            tried = replace(request, attempts=Attempts())
            moved = work.close(tried, State.CANCELLED, *news)
        case Reason.APPROVED_BEFORE:
            # The approval stands, so nothing was refused.
            moved = request
        case _:
            moved = request
            detail = {"act": act, "reason": reason, "state": request.state}
            work.note(person.slack_user_id, "request.refused", request, **detail)
            # The person may see an outdated card.
            work.show(request.id)
    return _refusal(work, reason, click, moved, news)


async def require_current(bot: Parts, request: Request, shown: ShownRequest) -> None:
    """Raise Conflict if a clicked card is outdated, and bring the request's card up to date."""
    if shown.version == request.requested.card_version:
        return
    async with bot.database.transaction() as tx:
        await write_card(tx, request.id)
    raise Conflict(outdated(request, shown.version))


async def look_to_deny(bot: Parts, person: Person, shown: ShownRequest) -> Request:
    """Return the request for the denial form, or raise Conflict if it can't be denied."""
    request = await look(bot, person, Act.DENY, shown.request_id)
    if request.state is not State.PENDING:
        show = reader_of(bot, person).show
        raise Conflict(state_sentence(request, await bot.database.now(), show))
    await require_current(bot, request, shown)
    return request


async def look(bot: Parts, person: Person, act: Act, request_id: str) -> Request:
    """Return the request in any state, or raise Refused if the person can't take this action."""
    async with bot.database.read_only(sees_snapshot=False) as tx:
        request = await store.load_request(tx, request_id)
    permission = Permission.REQUEST if act in (Act.CANCEL, Act.UNDO) else Permission.DECIDE
    sid = request.flow.sid if request and act is not Act.CANCEL else None
    requester = request.requester.slack_user_id if request and act is Act.APPROVE else None
    await bot.people.require(person, permission, flow_sid=sid, requester=requester)
    if request is None:
        raise NotFound("That request no longer exists.")
    return request


async def _may_still_ask(bot: Parts, request: Request, act: Act) -> bool:
    """Return False if the requester may no longer ask for changes to the flow."""
    if act not in (Act.APPROVE, Act.RETRY) or request.requested.without_approval:
        return True
    owner, client = request.requester.slack_user_id, request.requested.client
    if client and not bot.settings.may_ask(client, owner, request.flow.sid):
        return False
    return await _may_still(bot, owner, Permission.REQUEST, request)


async def _rule_stands(bot: Parts, request: Request) -> bool:
    """Return True unless an automatic rule approved the request and wouldn't do so anymore."""
    if request.round.rule is None:
        return True
    if not may_be_automatic(bot, request):
        return False
    automatic = policy_of(bot, request.flow).automatic or ()
    requester = await _find(bot, request.requester.slack_user_id)
    if requester is None:
        return False
    return not {requester.slack_user_id, *requester.groups}.isdisjoint(automatic)


def may_be_automatic(bot: Parts, request: Request) -> bool:
    """Return True unless a program asked whose requests need a person's approval."""
    if not request.requested.client:
        return True
    client = bot.settings.gateway_clients.get(request.requested.client)
    return client is not None and client.auto


async def _may_still(
    bot: Parts, slack_user_id: str, permission: Permission, request: Request
) -> bool:
    """Look the person up again, and return True if they have the permission for the flow."""
    person = await _find(bot, slack_user_id)
    if person is None:
        return False
    requester = request.requester.slack_user_id if permission is Permission.DECIDE else None
    may = bot.people.may(person, permission, request.flow.sid, requester)
    if person.doubt and not may:
        raise UnknownPerson(f"{UNSURE} {person.doubt}")
    return may


async def _find(bot: Parts, slack_user_id: str) -> Person | None:
    """Look a person up again. Return None if they no longer exist.

    If Slack doesn't say, what it said in the last five minutes counts.
    """
    people = bot.people
    # Requests don't record a workspace, so people are looked up in the bot's workspace.
    teams = (people.team_id,)
    try:
        person = await people.find(slack_user_id, teams, fresh=True)
        return await people.find(slack_user_id, teams) if person.doubt else person
    except UnknownPerson as error:
        if is_not_found(error.__cause__):
            return None
    try:
        return await people.find(slack_user_id, teams)
    except UnknownPerson as error:
        raise UnknownPerson(f"{UNSURE} {advice_after(error.__cause__)}") from error


async def _reviewed(
    work: Work, click: Click, request: Request, decision: Decision, *, may_ask: bool
) -> tuple[Reason, Review]:
    """Compare what a click would do with what its card says, before it's carried out."""
    if click.shown.version != request.requested.card_version:
        return Reason.OUTDATED, Review(request)
    if click.act not in (Act.APPROVE, Act.RETRY):
        return decision.reason, Review(request)
    current = await current_list(work.tx, request, work.listed)
    review, reason = review_now(work.bot, request, work.at, current), decision.reason
    if decision.next_state is not None and not may_ask:
        said = f"{request.asker} may no longer ask for changes to this flow."
        reason, review = Reason.MAY_NOT_ASK, Review(request, (said,))
    elif review.news:
        reason = Reason.NEWS
    if review.news and click.act is Act.RETRY and await work.is_in_doubt(request):
        reason = Reason.IN_DOUBT
    return reason, review


def _follow(work: Work, click: Click, request: Request, decision: Decision) -> Request:
    """Carry out a click that the rules allow. Return the updated request."""
    by, at = Who.of(click.person), work.at
    moved = request
    if click.act is Act.RETRY:
        # A retry keeps the approvals, so nobody has to approve again.
        moved = replace(request, state=State.APPLYING, attempts=Attempts(retried_by=by))
    elif decision.next_state is not None:
        moved = request.moved(decision.next_state, by, at, click.denial_reason)
    if click.act is Act.APPROVE:
        given = {approval.who.slack_user_id: approval for approval in request.round.approvals}
        given.setdefault(by.slack_user_id, Approval(by, at))
        approvals = tuple(given[approver_id] for approver_id in decision.approver_ids)
        moved = replace(moved, round=replace(moved.round, approvals=approvals))
    work.put(moved)
    work.note(
        by.slack_user_id,
        _DECISIONS[click.act][0],
        request,
        state=moved.state,
        approvers=decision.approver_ids,
        reason=moved.round.denial_reason,
    )
    return moved


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
    work: Work, reason: Reason, click: Click, request: Request, news: Iterable[str]
) -> Conflict | Refused:
    """Return what the person reads whose click wasn't carried out. `request` is up to date."""
    if reason is Reason.NOT_THE_REQUESTER:
        return Refused(f"Only {request.requester.name} can cancel this request.")
    if reason is Reason.OUTDATED:
        return Conflict(outdated(request, click.shown.version))
    if reason in (Reason.NEWS, Reason.MAY_NOT_ASK):
        return Conflict(" ".join(("Nothing was applied.", *news, NEXT_STEP[request.state])))
    show = reader_of(work.bot, click.person).show
    return Conflict(SENTENCES.get(reason) or state_sentence(request, work.at, show))
