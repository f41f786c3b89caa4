"""Deciding: approve, deny, cancel and retry; each is one conditional write, and the first wins."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from bot.approvals.rules.approval import Act, Decision, Reason, State, decide
from bot.errors import Conflict, NotFound, Refused, SlackRefused, UnknownPerson
from bot.ops.current_delivery import delivery_id
from bot.permissions import Permission, Person
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Transaction
from bot.testusers.messages.phrases import state_sentence
from bot.testusers.rules.requests import Approval, Progress, Request
from bot.testusers.rules.review import Review, reconsidered
from bot.testusers.setup import THE_BOT, Setup, who
from bot.testusers.store import requests
from bot.testusers.transitions import (
    apply_transition,
    asked_again_entry,
    expired_entry,
    is_in_doubt,
)

ROUNDS = 10
_ACTION = {
    Act.APPROVE: "request.approved",
    Act.DENY: "request.denied",
    Act.CANCEL: "request.cancelled",
    Act.RETRY: "request.retried",
}
# By these names Slack says that it knows nobody of that id any more: their approval doesn't count.
GONE_PEOPLE = frozenset({"user_not_found", "user_not_visible", "users_not_found"})
# What these do is compared with what the card says, before anything is applied.
_ACTING = frozenset({Act.APPROVE, Act.RETRY})
GIVEN_UP = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED})
_MADE_BY = {
    Act.APPROVE: {State.SCHEDULED, State.APPLYING, State.APPLIED},
    Act.DENY: {State.DENIED},
    Act.CANCEL: {State.CANCELLED},
}


@dataclass(frozen=True, slots=True)
class Click:
    """The stored click behind a decision, and when it was made, where that is known."""

    id: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """The result of a click: the current request, and the reason; `needed` approvals move it."""

    act: Act
    reason: Reason
    request: Request
    needed: int


class Deciding:
    """Carries out clicks on requests after checking permissions."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def decide(
        self,
        person: Person,
        act: Act,
        request_id: str,
        denial_reason: str = "",
        click: Click = Click(),
        known: Request | None = None,
    ) -> Decided:
        """Do what a click says, if the person may and nobody was faster.

        Repeating a click returns the same result, so it is safe. `known` is the request as read
        before; it saves a read, and the write that follows fails if anybody has written since.

        Raises:
            Refused: The person may not, or Slack can't confirm an earlier approver's permission.
            NotFound: The request does not exist.
            Conflict: Somebody has decided already; the sentence says who and when.
        """
        if known is not None:
            decided = await self._try_known(person, act, known, denial_reason, click)
            if decided is not None:
                return decided
        for _ in range(ROUNDS):
            request = await self.look(person, act, request_id)
            if _did_so_before(person, act, request, denial_reason, click):
                if act is Act.APPROVE and request.state in GIVEN_UP:
                    raise _refusal(Reason.WRONG_STATE, request, await self._setup.database.now())
                is_open = request.state is State.PENDING
                reason = Reason.QUORUM_OPEN if is_open else Reason.ALLOWED
                return self._decided(act, reason, request)
            decided = await self._try(person, act, request, denial_reason, click)
            if decided is not None:
                return decided
        raise Conflict("Someone else is deciding right now. Please try again.")

    async def _try_known(
        self, person: Person, act: Act, known: Request, denial_reason: str, click: Click
    ) -> Decided | None:
        await self._require(person, act, known)
        if _did_so_before(person, act, known, denial_reason, click):
            return None
        return await self._try(person, act, known, denial_reason, click, is_old=True)

    async def look(self, person: Person, act: Act, request_id: str) -> Request:
        """Return the request if the person may do this with it, in any state.

        Raises:
            Refused: The person lacks the permission.
            NotFound: The request does not exist.
        """
        async with self._setup.database.read_only() as tx:
            request = await requests.load(tx, request_id)
        await self._require(person, act, request)
        if request is None:
            raise NotFound("That request no longer exists.")
        return request

    async def _require(self, person: Person, act: Act, request: Request | None) -> None:
        people, sid = self._setup.people, request.flow.sid if request else None
        if act is Act.CANCEL:
            await people.require(person, Permission.REQUEST)
            return
        requester = request.requester.slack_user_id if request and act is Act.APPROVE else None
        await people.require(person, Permission.DECIDE, flow_sid=sid, requester=requester)

    async def look_to_deny(self, person: Person, request_id: str) -> Request:
        """Return the request if the person may deny it now, to ask them for a reason.

        Raises:
            Refused: The person lacks the permission.
            NotFound: The request does not exist.
            Conflict: Somebody has decided already; the sentence says who.
        """
        request = await self.look(person, Act.DENY, request_id)
        if request.state not in {State.PENDING, State.SCHEDULED}:
            async with self._setup.database.read_only() as tx:
                raise Conflict(state_sentence(request, await tx.now()))
        return request

    async def _try(
        self,
        person: Person,
        act: Act,
        request: Request,
        denial_reason: str,
        click: Click,
        *,
        is_old: bool = False,
    ) -> Decided | None:
        """Try once; None if somebody wrote in between, or if `known` is outdated and says no."""
        entitled = await self._entitled(request) if act is Act.APPROVE else ()
        async with self._setup.database.transaction() as tx:
            at = await tx.now()
            decision = decide(
                act,
                request.facts,
                person.slack_user_id,
                approvals_needed=self._setup.flow_rules(request.flow.sid).approvals_needed,
                entitled_ids=entitled,
                at=at,
            )
            moved = _moved(
                request, act, decision, Approval(who(person), at, click.id), denial_reason
            )
            news = None
            if act in _ACTING and decision.is_followed:
                _require_seen(request, click)
                news = await self._news(tx, request, act)
            if news is not None:
                moved = self._reconsidered(request, news, at)
            if moved is not None:
                entry = _entry(person, act, request, moved, decision)
                if not await apply_transition(tx, self._setup.audit, request, moved, entry):
                    return None
            elif is_old:
                return None
            else:
                await self._audit_refusal(tx, person, act, request, decision)
        if news is not None:
            raise Conflict(_nothing_applied(moved or request, news.news))
        if not decision.is_followed:
            raise _refusal(decision.reason, moved or request, at)
        return self._decided(act, decision.reason, moved or request)

    def _reconsidered(self, request: Request, review: Review, at: datetime) -> Request | None:
        """Return the request as it asks again; None if a part of it has taken effect."""
        hours = self._setup.rules.request_hours
        part = request.progress.part
        return None if part else reconsidered(request, review, at, hours, THE_BOT)

    async def _news(self, tx: Transaction, request: Request, act: Act) -> Review | None:
        """Return the request's current effect, if it differs from its card."""
        review = await self._setup.review(tx, request)
        if not review.news:
            return None
        if act is Act.RETRY and await is_in_doubt(tx, request):
            raise Conflict(
                "I'm still checking whether this change went through. Please try again in a minute."
            )
        return review

    def _decided(self, act: Act, reason: Reason, request: Request) -> Decided:
        needed = self._setup.flow_rules(request.flow.sid).approvals_needed
        return Decided(act, reason, request, needed)

    async def _entitled(self, request: Request) -> frozenset[str]:
        """Return the earlier approvers who may still approve.

        Raises:
            UnknownPerson: Slack can't say whether an approver's approval still counts.
        """
        ids = [approval.who.slack_user_id for approval in request.progress.approvals]
        return frozenset([user_id for user_id in ids if await self._is_entitled(user_id, request)])

    async def _is_entitled(self, slack_user_id: str, request: Request) -> bool:
        people = self._setup.people
        try:
            # Only who is of this workspace could approve before.
            person = await people.find(slack_user_id, (people.team_id,), fresh=True)
        except UnknownPerson as error:
            cause = error.__cause__
            if isinstance(cause, SlackRefused) and cause.error in GONE_PEOPLE:
                return False
            raise UnknownPerson(_UNSURE) from error
        requester = request.requester.slack_user_id
        may = people.may(person, Permission.DECIDE, request.flow.sid, requester)
        if person.doubt and not may:
            raise UnknownPerson(_UNSURE)
        return may

    async def _audit_refusal(
        self, tx: Transaction, person: Person, act: Act, request: Request, decision: Decision
    ) -> None:
        detail = {"act": act, "reason": decision.reason, "state": request.state}
        entry = AuditEntry(person.slack_user_id, "request.refused", request.id, detail)
        await self._setup.audit.append(tx, entry)


_UNSURE = "I couldn't re-check an earlier approver with Slack. Please try again."


def _did_so_before(
    person: Person, act: Act, request: Request, denial_reason: str, click: Click
) -> bool:
    """Return True if this click, or the person's last one like it, was carried out before.

    A process may have died before it answered, or before Slack had its acknowledgement; then the
    person presses again.
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
    """Return the request after the decision, or None if its state stays the same."""
    if decision.next_state is State.EXPIRED:
        return request.moved(State.EXPIRED, THE_BOT, given.at, request.progress)
    if not decision.is_followed:
        return None
    progress = _progress(request.progress, act, decision, given, denial_reason)
    progress = replace(progress, delivery_id=delivery_id())
    if decision.next_state is None:
        return replace(request, progress=progress)
    if act is Act.RETRY:  # the approval stands, and with it who gave it
        return replace(request, state=decision.next_state, progress=progress)
    return request.moved(decision.next_state, given.who, given.at, progress)


def _progress(
    progress: Progress, act: Act, decision: Decision, given: Approval, denial_reason: str
) -> Progress:
    if act is Act.APPROVE:
        standing = _standing(progress.approvals, decision.approver_ids)
        is_new = given.who.slack_user_id not in {
            approval.who.slack_user_id for approval in standing
        }
        return replace(progress, approvals=(*standing, given) if is_new else standing)
    if act is Act.RETRY:
        retries = (*progress.retries, given.click_id) if given.click_id else progress.retries
        return replace(
            progress,
            tries=0,
            retry_at=None,
            failure="",
            is_unsure=False,
            retries=retries,
            retried_by=given.who,
        )
    return replace(progress, denial_reason=denial_reason)


def _standing(approvals: Iterable[Approval], ids: Iterable[str]) -> tuple[Approval, ...]:
    counting = set(ids)
    return tuple(approval for approval in approvals if approval.who.slack_user_id in counting)


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


def _require_seen(request: Request, click: Click) -> None:
    """Require that the card has not changed since it was clicked.

    Raises:
        Conflict: The card has been redrawn.
    """
    shown_at = request.requested.shown_at
    if request.progress.news and shown_at and click.at and click.at < shown_at:
        raise Conflict(_nothing_applied(request, request.progress.news))


def _nothing_applied(request: Request, news: Iterable[str]) -> str:
    next_step = {
        State.PENDING: "The card now shows what this would do: look at it and decide again.",
        State.EXPIRED: "The request has expired.",
        State.FAILED: "Please ask for what is left again.",
    }[request.state]
    return " ".join(("Nothing was applied, because something has changed.", *news, next_step))


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
