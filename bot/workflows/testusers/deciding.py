"""Deciding: approve, deny, cancel and retry, each one conditional write that the first one wins."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bot.errors import Conflict, NotFound, Refused, UnknownPerson
from bot.model.approval import Act, Decision, Reason, State, decide
from bot.model.audit import BOT, AuditEntry
from bot.model.requests import Approval, Progress, Request, Who
from bot.permissions import Permission, Person
from bot.store import requests
from bot.store.engine import Transaction
from bot.workflows.testusers.moves import move
from bot.workflows.testusers.setup import Setup, who
from bot.workflows.testusers.words import state_sentence

ROUNDS = 10
THE_BOT = Who(BOT, "Gatehouse")
_ACTION = {
    Act.APPROVE: "request.approved",
    Act.DENY: "request.denied",
    Act.CANCEL: "request.cancelled",
    Act.RETRY: "request.retried",
}
_MADE_BY = {
    Act.APPROVE: {State.APPLYING, State.APPLIED},
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
    ) -> Decided:
        """Do what a click says, if it may be done and nobody was faster.

        Asked again by the same person it says the same, so a click is safe to repeat.

        Raises:
            Refused: The person may not.
            NotFound: There is no such request.
            Conflict: It is decided already; the sentence says by whom and when.
        """
        for _ in range(ROUNDS):
            request = await self.look(person, act, request_id)
            if _did_so_before(person, act, request, denial_reason, click_id):
                is_open = request.state is State.PENDING
                reason = Reason.QUORUM_OPEN if is_open else Reason.ALLOWED
                return self._decided(act, reason, request)
            decided = await self._try(person, act, request, denial_reason, click_id)
            if decided is not None:
                self._setup.wake()
                return decided
        raise Conflict("Too many people are deciding on this request at once; please try again.")

    async def look(self, person: Person, act: Act, request_id: str) -> Request:
        """Return the request if the person may do this with it, whatever its state is.

        Raises:
            Refused: They may not.
            NotFound: There is no such request.
        """
        async with self._setup.database.reading() as tx:
            request = await requests.load(tx, request_id)
        people, sid = self._setup.people, request.flow.sid if request else None
        if act is Act.CANCEL:
            await people.admit(person, Permission.REQUEST)
        else:
            requester = request.requester.slack_user_id if request and act is Act.APPROVE else None
            await people.admit(person, Permission.DECIDE, flow_sid=sid, requester=requester)
        if request is None:
            raise NotFound("There is no such request any more.")
        return request

    async def _try(
        self, person: Person, act: Act, request: Request, denial_reason: str, click_id: str
    ) -> Decided | None:
        """Try once; None when somebody wrote in between."""
        entitled = await self._entitled(request) if act is Act.APPROVE else ()
        async with self._setup.database.transaction() as tx:
            at = await tx.now()
            rules = self._setup.rules.approval
            actor_id = person.slack_user_id
            decision = decide(act, request.facts, actor_id, rules, entitled_ids=entitled, at=at)
            moved = _moved(
                request, act, decision, Approval(who(person), at, click_id), denial_reason
            )
            if moved is not None:
                entry = _entry(person, act, request, moved, decision)
                if not await move(tx, self._setup.audit, request, moved, entry):
                    return None
            else:
                await self._audit_refusal(tx, person, act, request, decision)
        if not decision.is_followed:
            raise _refusal(decision.reason, moved or request)
        return self._decided(act, decision.reason, moved or request)

    def _decided(self, act: Act, reason: Reason, request: Request) -> Decided:
        return Decided(act, reason, request, self._setup.rules.approval.approvals_needed)

    async def _entitled(self, request: Request) -> frozenset[str]:
        """Return who of the earlier approvers may still approve.

        Raises:
            Conflict: Slack does not tell, so it is not known whether their approval counts.
        """
        ids = [approval.who.slack_user_id for approval in request.progress.approvals]
        return frozenset([one for one in ids if await self._is_entitled(one, request)])

    async def _is_entitled(self, slack_user_id: str, request: Request) -> bool:
        people = self._setup.people
        try:
            # Only who is of this workspace could approve before.
            person = await people.find(slack_user_id, (people.team_id,), fresh=True)
        except UnknownPerson as error:
            raise Conflict(_UNSURE) from error
        requester = request.requester.slack_user_id
        may = people.may(person, Permission.DECIDE, request.flow.sid, requester)
        if person.doubt and not may:
            raise Conflict(_UNSURE)
        return may

    async def _audit_refusal(
        self, tx: Transaction, person: Person, act: Act, request: Request, decision: Decision
    ) -> None:
        detail = {"act": act, "reason": decision.reason, "state": request.state}
        entry = AuditEntry(person.slack_user_id, "request.refused", request.id, detail)
        await self._setup.audit.append(tx, entry)


_UNSURE = "Slack did not tell whether an earlier approver still may approve; please try again."


def _did_so_before(
    person: Person, act: Act, request: Request, denial_reason: str, click_id: str
) -> bool:
    """Whether this click, or one like it of the same person, was followed before.

    A process may have died before it could say so, or before Slack had its acknowledgement: then
    the person presses again.
    """
    if click_id and click_id in {one.click_id for one in request.progress.approvals}:
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
    if decision.next_state is None:
        return replace(request, progress=progress)
    if act is Act.RETRY:  # the approval stands, and with it who gave it
        return replace(request, state=decision.next_state, progress=progress)
    return request.moved(decision.next_state, given.who, given.at, progress)


def _progress(
    progress: Progress, act: Act, decision: Decision, given: Approval, denial_reason: str
) -> Progress:
    if act is Act.APPROVE:
        approvals = (*progress.approvals, given)
        return replace(progress, approvals=_standing(approvals, decision.approver_ids))
    if act is Act.RETRY:
        return replace(progress, tries=0, retry_at=None, failure="")
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


def _refusal(reason: Reason, request: Request) -> Conflict | Refused:
    if reason is Reason.NOT_THE_REQUESTER:
        return Refused(f"Only {request.requester.name}, who asked, may cancel this request.")
    if reason is Reason.APPROVED_BEFORE:
        return Conflict("You approved this before; it waits for somebody else.")
    if reason is Reason.TOO_LATE:
        return Conflict(f"This came too late. {state_sentence(request)}")
    return Conflict(state_sentence(request))
