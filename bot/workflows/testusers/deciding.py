"""Deciding: approve, deny, cancel and retry, each one conditional write that the first one wins."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from bot.dataclass import dataclass
from bot.errors import Conflict, NotFound, RecordEdited, Refused, UnknownPerson
from bot.model.audit import BOT, AuditEntry
from bot.model.testusers.approval import Act, Decision, Reason, State, decide
from bot.model.testusers.requests import Approval, Progress, Request, Who
from bot.ops.deliveries import delivery_id
from bot.permissions import Permission, Person
from bot.store import requests
from bot.store.engine import Transaction
from bot.workflows.testusers.setup import Setup, who
from bot.workflows.testusers.state_text import state_sentence
from bot.workflows.testusers.transitions import apply_transition

ROUNDS = 10
THE_BOT = Who(BOT, "Gatehouse")
_ACTION = {
    Act.APPROVE: "request.approved",
    Act.DENY: "request.denied",
    Act.CANCEL: "request.cancelled",
    Act.RETRY: "request.retried",
}
GIVEN_UP = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED})
_MADE_BY = {
    Act.APPROVE: {State.SCHEDULED, State.APPLYING, State.APPLIED},
    Act.DENY: {State.DENIED},
    Act.CANCEL: {State.CANCELLED},
}


@dataclass(frozen=True, slots=True)
class Decided:
    """What a click did: the request as it stands now, and why; `needed` approvals move it."""

    act: Act
    reason: Reason
    request: Request
    needed: int


class Deciding:
    """Follows clicks on requests, after asking who may."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def decide(
        self,
        person: Person,
        act: Act,
        request_id: str,
        denial_reason: str = "",
        click_id: str = "",
        known: Request | None = None,
    ) -> Decided:
        """Do what a click says, if it may be done and nobody was faster.

        Asked again by the same person it says the same, so a click is safe to repeat. `known` is
        the request as it was read before. It saves a look; only a write follows from it, which
        fails if anybody wrote since.

        Raises:
            Refused: The person may not, or Slack does not tell whether an earlier approver may.
            NotFound: There is no such request.
            Conflict: It is decided already; the sentence says by whom and when.
        """
        if known is not None and known.is_genuine:
            decided = await self._try_known(person, act, known, denial_reason, click_id)
            if decided is not None:
                return decided
        for _ in range(ROUNDS):
            request = await self.look(person, act, request_id)
            if _did_so_before(person, act, request, denial_reason, click_id):
                if act is Act.APPROVE and request.state in GIVEN_UP:
                    raise _refusal(Reason.WRONG_STATE, request, await self._now())
                is_open = request.state is State.PENDING
                reason = Reason.QUORUM_OPEN if is_open else Reason.ALLOWED
                return self._decided(act, reason, request)
            decided = await self._try(person, act, request, denial_reason, click_id)
            if decided is not None:
                return decided
        raise Conflict("Someone else is deciding right now. Please try again.")

    async def _try_known(
        self, person: Person, act: Act, known: Request, denial_reason: str, click_id: str
    ) -> Decided | None:
        await self._require(person, act, known)
        if _did_so_before(person, act, known, denial_reason, click_id):
            return None
        return await self._try(person, act, known, denial_reason, click_id, is_old=True)

    async def _now(self) -> datetime:
        async with self._setup.database.read_only() as tx:
            return await tx.now()

    async def look(self, person: Person, act: Act, request_id: str) -> Request:
        """Return the request if the person may do this with it, whatever its state is.

        Raises:
            Refused: They may not.
            NotFound: There is no such request.
        """
        async with self._setup.database.read_only() as tx:
            request = await requests.load(tx, request_id)
        await self._require(person, act, request)
        if request is not None and not request.is_genuine:
            raise RecordEdited("request", request.id)
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
        """Return the request if the person may deny it now, to ask them why.

        Raises:
            Refused: They may not.
            NotFound: There is no such request.
            Conflict: It is decided already; the sentence says by whom.
        """
        request = await self.look(person, Act.DENY, request_id)
        if request.state is not State.PENDING:
            async with self._setup.database.read_only() as tx:
                raise Conflict(state_sentence(request, await tx.now()))
        return request

    async def _try(
        self,
        person: Person,
        act: Act,
        request: Request,
        denial_reason: str,
        click_id: str,
        *,
        is_old: bool = False,
    ) -> Decided | None:
        """Try once; None when somebody wrote in between, or an old request says no."""
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
                request, act, decision, Approval(who(person), at, click_id), denial_reason
            )
            if moved is not None:
                entry = _entry(person, act, request, moved, decision)
                if not await apply_transition(tx, self._setup.audit, request, moved, entry):
                    return None
            elif is_old:
                return None
            else:
                await self._audit_refusal(tx, person, act, request, decision)
        if not decision.is_followed:
            raise _refusal(decision.reason, moved or request, at)
        return self._decided(act, decision.reason, moved or request)

    def _decided(self, act: Act, reason: Reason, request: Request) -> Decided:
        needed = self._setup.flow_rules(request.flow.sid).approvals_needed
        return Decided(act, reason, request, needed)

    async def _entitled(self, request: Request) -> frozenset[str]:
        """Return who of the earlier approvers may still approve.

        Raises:
            UnknownPerson: Slack does not tell, so it is not known whether their approval counts.
        """
        ids = [approval.who.slack_user_id for approval in request.progress.approvals]
        return frozenset([one for one in ids if await self._is_entitled(one, request)])

    async def _is_entitled(self, slack_user_id: str, request: Request) -> bool:
        people = self._setup.people
        try:
            # Only who is of this workspace could approve before.
            person = await people.find(slack_user_id, (people.team_id,), fresh=True)
        except UnknownPerson as error:
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
    person: Person, act: Act, request: Request, denial_reason: str, click_id: str
) -> bool:
    """Whether this click, or one like it of the same person, was followed before.

    A process may have died before it could say so, or before Slack had its acknowledgement: then
    the person presses again.
    """
    approvals = (one.click_id for one in request.progress.approvals)
    if click_id and click_id in {*approvals, *request.progress.retries}:
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
    """The request after the decision, or None when it stays as it is."""
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
        is_new = given.who.slack_user_id not in {one.who.slack_user_id for one in standing}
        return replace(progress, approvals=(*standing, given) if is_new else standing)
    if act is Act.RETRY:
        retries = (*progress.retries, given.click_id) if given.click_id else progress.retries
        return replace(
            progress, tries=0, retry_at=None, failure="", is_unsure=False, retries=retries
        )
    return replace(progress, denial_reason=denial_reason)


def _standing(approvals: Iterable[Approval], ids: Iterable[str]) -> tuple[Approval, ...]:
    counting = set(ids)
    return tuple(one for one in approvals if one.who.slack_user_id in counting)


def _entry(
    person: Person, act: Act, request: Request, moved: Request, decision: Decision
) -> AuditEntry:
    if moved.state is State.EXPIRED:
        return AuditEntry(BOT, "request.expired", request.id)
    lapsed = {one.who.slack_user_id for one in request.progress.approvals} - {
        one.who.slack_user_id for one in moved.progress.approvals
    }
    detail = {
        "flow": request.flow.sid,
        "state": moved.state,
        "approvers": decision.approver_ids,
        "lapsed": sorted(lapsed),
        "reason": moved.progress.denial_reason,
    }
    return AuditEntry(person.slack_user_id, _ACTION[act], request.id, detail)


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
