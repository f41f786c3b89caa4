"""What follows when a list has been replaced: states, grants, audit and news, all or nothing."""

from dataclasses import replace
from datetime import datetime

from bot.model.applying import Ending, Plan, Step
from bot.model.approval import State
from bot.model.audit import BOT, AuditEntry
from bot.model.requests import Ended, Grant, Request, Who
from bot.model.testusers import Change, Flow
from bot.store import flows, grants, requests
from bot.store.audit import AuditStore
from bot.store.engine import Transaction
from bot.workflows.testusers.moves import tell_requester, write_card


async def finish(tx: Transaction, audit: AuditStore, flow: Flow, plan: Plan, later: Change) -> None:
    """Write all that follows from a plan that is true now.

    Args:
        tx: The transaction of it all.
        audit: The chain.
        flow: Whose list it is.
        plan: What was sent, or needed no sending.
        later: What others did to the list since it was sent, when it is settled later.
    """
    sheet = _Sheet(tx, flow, await tx.now(), await grants.of_flow(tx, flow.key))
    for step in plan.steps:
        await sheet.apply(step, later)
    for ending in plan.endings:
        await sheet.end(ending)
    await sheet.write(audit, plan)


class _Sheet:
    """Collects what changes, so that rows are locked before the audit is: see `moves.move`."""

    def __init__(
        self, tx: Transaction, flow: Flow, at: datetime, granted: dict[str, Grant]
    ) -> None:
        self._tx = tx
        self._flow = flow
        self._at = at
        self._granted = granted
        self._requests: dict[str, Request] = {}
        self._entries: list[AuditEntry] = []
        self._told: list[Request] = []
        self._over: dict[str, list[str]] = {}

    async def apply(self, step: Step, later: Change) -> None:
        """The request of a step is applied, and its grants begin or go."""
        request = await self._request(step.request_id)
        if request is None or request.state is not State.APPLYING:
            return
        done = step.done(self._at, request, later, self._granted)
        progress = replace(request.progress, done=done, failure="", retry_at=None)
        applied = replace(request, state=State.APPLIED, progress=progress)
        self._requests[request.id] = applied
        for identity in request.wish.change.identities:
            await self._end_grant(identity, request.id)
        for identity in request.wish.change.additions:
            grant = self._grant(applied, identity, done.ends_at.get(identity))
            await grants.put(self._tx, self._flow, grant)
            self._granted[identity] = grant
        await self._mark_undone(request)
        self._entries.append(_applied_entry(applied, step))
        self._told.append(applied)

    async def end(self, ending: Ending) -> None:
        """A grant is over."""
        await grants.drop(self._tx, self._flow.key, ending.identity)
        detail = {
            "flow": self._flow.sid,
            "identity": ending.identity,
            "was_gone": ending.was_gone,
        }
        self._entries.append(AuditEntry(BOT, "grant.ended", ending.request_id, detail))
        request = await self._request(ending.request_id)
        if request is None:
            return
        ended = Ended(ending.identity, self._at, ending.was_gone)
        all_ended = (*request.progress.ended, ended)
        progress = replace(request.progress, ended=all_ended, overdue="")
        changed = replace(request, progress=progress)
        self._requests[request.id] = changed
        self._over.setdefault(request.id, []).append(ending.identity)

    async def write(self, audit: AuditStore, plan: Plan) -> None:
        """Write requests, then the audit, then what is told of it."""
        for request in self._requests.values():
            await requests.replace(self._tx, request)
        if not plan.changes_nothing:
            await flows.record_change(self._tx, self._flow.key, plan)
            await audit.append(self._tx, _change_entry(self._flow, plan))
        for entry in self._entries:
            await audit.append(self._tx, entry)
        for request_id in self._requests:
            await write_card(self._tx, request_id)
        for request in self._told:
            await tell_requester(self._tx, request, "applied")
        for request_id, identities in self._over.items():
            detail = {"identities": identities}
            await tell_requester(self._tx, self._requests[request_id], "ended", detail)

    async def _request(self, request_id: str) -> Request | None:
        if request_id not in self._requests:
            found = await requests.load(self._tx, request_id, lock=True)
            if found is None:
                return None
            self._requests[request_id] = found
        return self._requests[request_id]

    async def _mark_undone(self, undo: Request) -> None:
        """What an undo takes back is undone, and what that had taken back is in force again."""
        is_undone = True
        while undo.wish.undo_of and (undone := await self._request(undo.wish.undo_of)):
            undone_by = undo.id if is_undone else None
            progress = replace(undone.progress, is_undone=is_undone, undone_by=undone_by)
            self._requests[undone.id] = replace(undone, progress=progress)
            undo, is_undone = undone, not is_undone

    async def _end_grant(self, identity: str, request_id: str) -> None:
        """Drop a grant; the card that promised its end says that this holds no longer."""
        grant = self._granted.pop(identity, None)
        if grant is None:
            return
        await grants.drop(self._tx, self._flow.key, identity)
        earlier = await self._request(grant.request_id)
        if earlier is None or grant.ends_at is None or earlier.id == request_id:
            return
        superseded = (*earlier.progress.superseded, identity)
        progress = replace(earlier.progress, superseded=superseded)
        self._requests[earlier.id] = replace(earlier, progress=progress)

    def _grant(self, request: Request, identity: str, ends_at: datetime | None) -> Grant:
        approvers: tuple[Who, ...] = tuple(one.who for one in request.progress.approvals)
        return Grant(identity, request.id, request.requester, approvers, self._at, ends_at)


def _applied_entry(request: Request, step: Step) -> AuditEntry:
    detail = {
        "flow": request.flow.sid,
        "additions": step.change.additions,
        "removals": step.change.removals,
        "already_there": step.already.additions,
        "already_gone": step.already.removals,
        "outside_additions": step.outside.additions,
        "outside_removals": step.outside.removals,
        "approvers": [one.who.slack_user_id for one in request.progress.approvals],
    }
    return AuditEntry(BOT, "request.applied", request.id, detail)


def _change_entry(flow: Flow, plan: Plan) -> AuditEntry:
    detail = {
        "before": plan.before,
        "after": plan.after,
        "requests": [step.request_id for step in plan.steps],
        "ended": [ending.identity for ending in plan.endings],
    }
    return AuditEntry(BOT, "flow.changed", flow.sid, detail)
