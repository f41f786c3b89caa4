"""What follows from a look at a list, or from a new one: all of it, in one transaction, or nothing.

States, grants, the audit and what people are told are collected first and written in one order:
rows of requests, the audit, then jobs and messages, as in `transitions.apply_transition`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.model.audit import BOT, AuditEntry
from bot.model.doubt import DoubtfulPost, latest
from bot.model.testusers.applying import Ending, ListChangePlan, Step
from bot.model.testusers.approval import State, can_move
from bot.model.testusers.changes import NO_CHANGE, Change, Flow, apply_change, difference
from bot.model.testusers.requests import Done, Ended, Grant, Progress, Request, Who
from bot.store import flows, grants, requests
from bot.store.audit import IN_PART, AuditStore
from bot.store.engine import Transaction
from bot.workflows.testusers.endings import put_announcements
from bot.workflows.testusers.transitions import tell_requester, tell_thread_of_failure, write_card


class ChangeSet:
    """Collects what changes on a flow; `write` writes it.

    Args:
        tx: The transaction of it all.
        flow: Whose list it is.
        at: The time of the transaction.
        granted: The grants of the flow by identity; those that are made and dropped are kept up.
    """

    def __init__(
        self, tx: Transaction, flow: Flow, at: datetime, granted: dict[str, Grant]
    ) -> None:
        self._tx = tx
        self._flow = flow
        self._at = at
        self._granted = granted
        self._requests: dict[str, Request] = {}
        self._shown: dict[str, None] = {}
        self._changes: list[tuple[Change, Sequence[str], Sequence[str]]] = []
        self._entries: list[AuditEntry] = []
        self._decided: list[tuple[Request, str, dict[str, Any]]] = []
        self._over: dict[str, list[str]] = {}
        self._made: dict[str, list[Grant]] = {}
        self.decided = Change()
        """Who was let in or removed by all of it."""

    @classmethod
    async def begin(cls, tx: Transaction, flow: Flow) -> "ChangeSet":
        """Return an empty one."""
        return cls(tx, flow, await tx.now(), await grants.of_flow(tx, flow.key))

    def is_in_force(self, grant: Grant) -> bool:
        """Whether the grant stands as it was read: neither ended nor replaced by now."""
        return self._granted.get(grant.identity) == grant

    async def carry_out(
        self, plan: ListChangePlan, sent_at: Mapping[str, datetime] | None = None
    ) -> None:
        """Everything that the plan is for is true now.

        `sent_at` has when the change of a request was sent that was found on the list later: that
        is when it took effect.
        """
        self.decided = latest(self.decided, plan.repair)
        for step in plan.steps:
            await self._apply(step, (sent_at or {}).get(step.request_id, self._at))
        for ending in plan.endings:
            await self._end(ending)

    def replaced(self, plan: ListChangePlan, change: Change | None = None) -> None:
        """The bot replaced the list; `change` is how much of the plan's is seen, if not all."""
        change = difference(plan.before, plan.after) if change is None else change
        ids = [step.request_id for step in plan.steps]
        ended = [ending.identity for ending in plan.endings]
        self._changes.append((change, ids, ended))
        self._entries.append(_change_entry(self._flow, plan, change))

    async def arrived(self, post: DoubtfulPost, part: Change) -> None:
        """A part of what was in doubt was found on the list."""
        self.replaced(post.plan, part)
        for step in post.plan.steps:
            mine = step.change.without(set(step.change.identities) - set(part.identities))
            request = await self._request(step.request_id)
            if request is not None and not mine.is_empty:
                landed = latest(request.progress.landed, mine)
                self._put(request, replace(request.progress, landed=landed), is_shown=False)

    def never_arrived(self, post: DoubtfulPost) -> None:
        """A POST in doubt has not arrived and is not expected to any more; `times` as often."""
        change = post.own
        detail = {
            "additions": change.additions,
            "removals": change.removals,
            "requests": [step.request_id for step in post.plan.steps],
            "times": post.times,
        }
        self._entries.append(AuditEntry(BOT, "flow.change_not_found", self._flow.sid, detail))

    async def write_failed_try(
        self,
        request_id: str,
        tried: Callable[[Request], Request],
        sent_at: Mapping[str, datetime],
    ) -> None:
        """A request's next try is later, or it has failed; `sent_at` is as for `keep_part`."""
        stored = await self._request(request_id)
        if stored is None or stored.state is not State.APPLYING:
            return
        request = tried(stored)
        is_failed = request.state is State.FAILED
        # The card of a change without approval is first seen when it is decided.
        is_shown = is_failed or not request.requested.without_approval
        self._put(request, request.progress, is_shown=is_shown)
        if is_failed:
            detail = {"flow": self._flow.sid, "reason": request.progress.failure}
            self._entries.append(AuditEntry(BOT, "request.failed", request_id, detail))
            if not await self.keep_part(request_id, sent_at):
                self._tell_of_failure(request)

    async def keep_part(self, request_id: str, sent_at: Mapping[str, datetime]) -> bool:
        """What of a failed request is on the list took effect; return whether anything is new.

        Who got in has a grant with its end, as if there were no others. `sent_at` has when each
        request was sent that is in doubt, which is when that took effect.
        """
        request = await self._request(request_id)
        if request is None or request.state is not State.FAILED:
            return False
        landed, part = request.progress.landed, request.progress.part
        change = landed.without(part.change.identities) if part else landed
        if change.is_empty:
            return False
        self.decided = latest(self.decided, change)
        seen = request.requested.seen
        size = len(apply_change(seen, change))
        step = Step(request_id, change, NO_CHANGE, NO_CHANGE, len(seen), size, change)
        done = step.done(sent_at.get(request_id, self._at), request, self._granted)
        kept = await self._take_effect(request, change, done)
        self._put(kept, replace(kept.progress, part=done.after(part), landed=NO_CHANGE))
        self._entries.append(_part_entry(request, change))
        self._tell_of_failure(request)
        return True

    def _tell_of_failure(self, request: Request) -> None:
        self._decided.append((request, "failed", {"reason": request.progress.failure}))

    async def say_what_is_known(
        self, request_id: str, known: Callable[[Progress], Progress]
    ) -> None:
        """More is known of a request that has failed."""
        stored = await self._request(request_id)
        if stored and stored.state is State.FAILED and stored.progress != known(stored.progress):
            self._put(stored, known(stored.progress))

    async def say_overdue(self, request_id: str, reason: str) -> None:
        """Grants of a request that are over cannot be ended; on record once, why whenever new."""
        request = await self._request(request_id)
        if request is None or request.progress.overdue == reason:
            return
        if not request.progress.overdue:
            detail = {"flow": self._flow.sid, "reason": reason}
            self._entries.append(AuditEntry(BOT, "grant.end_failed", request_id, detail))
        self._put(request, replace(request.progress, overdue=reason))

    async def write(self, audit: AuditStore) -> None:
        """Write requests, then the audit, then what is told of it."""
        for request in self._requests.values():
            await requests.replace(self._tx, request)
        for change in self._changes:
            await flows.record_change(self._tx, self._flow.key, *change)
        for entry in self._entries:
            await audit.append(self._tx, entry)
        for request_id in self._shown:
            await write_card(self._tx, request_id)
        for request, event, detail in self._decided:
            await tell_requester(self._tx, request, event, detail)
            if event == "failed":
                await tell_thread_of_failure(self._tx, request)
        for request_id, identities in self._over.items():
            detail = {"identities": identities}
            await tell_requester(self._tx, self._requests[request_id], "ended", detail)
        await put_announcements(self._tx, self._made)

    async def _apply(self, step: Step, at: datetime) -> None:
        """The request of a step is applied, and its grants begin or go."""
        request = await self._request(step.request_id)
        if request is None or not can_move(request.state, State.APPLIED):
            return
        self.decided = latest(self.decided, step.wanted)
        done = step.done(at, request, self._granted)
        ended = tuple(Ended(one, request.requested.ends[one], was_gone=True) for one in step.over)
        progress = replace(
            request.progress,
            landed=NO_CHANGE,
            part=None,
            done=done.after(request.progress.part),
            failure="",
            is_unsure=False,
            retry_at=None,
            ended=(*request.progress.ended, *ended),
        )
        applied = replace(request, state=State.APPLIED, progress=progress)
        applied = await self._take_effect(applied, step.wanted, done)
        await self._mark_undone(applied)
        self._entries.append(_applied_entry(applied, step))
        self._decided.append((applied, "applied", {}))

    async def _take_effect(self, request: Request, change: Change, done: Done) -> Request:
        """The grants of a change begin or go; return its request with whom others decided on."""
        # What was found late took effect before some of what was granted since.
        later = {
            one
            for one, grant in self._granted.items()
            if done.at < self._at and grant.granted_at > done.at
        }
        superseded = tuple(one for one in change.additions if one in later)
        progress = request.progress
        self._put(request, replace(progress, superseded=(*progress.superseded, *superseded)))
        for identity in change.without(later).identities:
            await self._end_grant(identity, request.id)
        for identity in change.without(later).additions:
            grant = self._grant(request, identity, done.ends_at.get(identity), done.at)
            await grants.put(self._tx, self._flow, grant)
            self._granted[identity] = grant
            self._made.setdefault(request.id, []).append(grant)
        return self._requests[request.id]

    async def _end(self, ending: Ending) -> None:
        """A grant is over."""
        self.decided = latest(self.decided, Change(removals=(ending.identity,)))
        self._granted.pop(ending.identity, None)
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
        progress = replace(request.progress, ended=(*request.progress.ended, ended))
        self._put(request, self._not_overdue(request.id, progress))
        self._over.setdefault(request.id, []).append(ending.identity)

    async def _request(self, request_id: str) -> Request | None:
        if request_id not in self._requests:
            request = await requests.load(self._tx, request_id, lock=True)
            if request is None:
                return None
            self._requests[request_id] = request
        return self._requests[request_id]

    def _put(self, request: Request, progress: Progress, *, is_shown: bool = True) -> None:
        self._requests[request.id] = replace(request, progress=progress)
        if is_shown:
            self._shown[request.id] = None

    async def _mark_undone(self, undo: Request) -> None:
        """What an undo takes back is undone, and what that had taken back is in force again."""
        is_undone = True
        while undo.requested.undo_of and (undone := await self._request(undo.requested.undo_of)):
            undone_by = undo.id if is_undone else None
            progress = replace(undone.progress, is_undone=is_undone, undone_by=undone_by)
            self._put(undone, progress)
            undo, is_undone = undone, not is_undone

    async def _end_grant(self, identity: str, request_id: str) -> None:
        """Drop a grant; the card of the request that made it says that it is replaced."""
        grant = self._granted.pop(identity, None)
        if grant is None:
            return
        await grants.drop(self._tx, self._flow.key, identity)
        earlier = await self._request(grant.request_id)
        if earlier is None or earlier.id == request_id:
            return
        superseded = (*earlier.progress.superseded, identity)
        progress = replace(earlier.progress, superseded=superseded)
        self._put(earlier, self._not_overdue(earlier.id, progress))

    def _not_overdue(self, request_id: str, progress: Progress) -> Progress:
        """The same, nothing overdue any more unless another grant of the request is."""
        mine = [one for one in self._granted.values() if one.request_id == request_id]
        is_overdue = any(one.ends_at is not None and one.ends_at <= self._at for one in mine)
        return progress if is_overdue else replace(progress, overdue="")

    def _grant(
        self, request: Request, identity: str, ends_at: datetime | None, at: datetime
    ) -> Grant:
        approvers: tuple[Who, ...] = tuple(one.who for one in request.progress.approvals)
        return Grant(identity, request.id, request.requester, approvers, at, ends_at)


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


def _part_entry(request: Request, change: Change) -> AuditEntry:
    detail = {
        "flow": request.flow.sid,
        "additions": change.additions,
        "removals": change.removals,
        "approvers": [one.who.slack_user_id for one in request.progress.approvals],
    }
    return AuditEntry(BOT, IN_PART, request.id, detail)


def _change_entry(flow: Flow, plan: ListChangePlan, change: Change) -> AuditEntry:
    detail = {
        "before": plan.before,
        "after": apply_change(plan.before, change),
        "requests": [step.request_id for step in plan.steps],
        "ended": [ending.identity for ending in plan.endings],
        "repaired": plan.repair.identities,
    }
    return AuditEntry(BOT, "flow.changed", flow.sid, detail)
