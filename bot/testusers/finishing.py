"""The consequences of a look at a list, or of a new list, in one transaction.

States, grants, the audit and messages are collected first and written in one order: rows of
requests, the audit, then jobs and messages, as in `transitions.apply_transition`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.approvals.rules.approval import State, can_move
from bot.approvals.rules.timers import NO_PATIENCE, next_ring
from bot.store.audit import AuditStore
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.testusers.rules.applying import Ending, ListChangePlan, Step, is_true
from bot.testusers.rules.changes import NO_CHANGE, Change, Flow, apply_change, difference
from bot.testusers.rules.requests import Done, Ended, Grant, Progress, Request, Who
from bot.testusers.store import flows, grants, requests
from bot.testusers.transitions import (
    put_timer,
    put_timers_of,
    tell_requester,
    tell_thread,
    write_card,
)


class ChangeSet:
    """Collects the changes on a flow; `write` stores them.

    Args:
        tx: The transaction.
        flow: The flow.
        at: The time of the transaction.
        granted: The grants of the flow by identity, kept up to date as grants are made and dropped.
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
        self._touched: set[str] = set()

    @classmethod
    async def begin(cls, tx: Transaction, flow: Flow) -> "ChangeSet":
        """Return an empty change set."""
        return cls(tx, flow, await tx.now(), await grants.of_flow(tx, flow.key))

    def is_in_force(self, grant: Grant) -> bool:
        """Return True if the grant is unchanged: neither ended nor replaced since it was read."""
        return self._granted.get(grant.identity) == grant

    async def carry_out(
        self,
        plan: ListChangePlan,
        at: datetime | None = None,
        spellings: Mapping[str, str] | None = None,
    ) -> None:
        """Apply the whole plan; `at` is when it took effect, if not just now.

        `spellings` has the identities that the service stores in another spelling than they were
        sent.
        """
        for step in plan.steps:
            await self._apply(step, at or self._at, spellings or {})
        for ending in plan.endings:
            await self.end(ending)

    async def settle(
        self,
        plan: ListChangePlan,
        at: datetime,
        listed: Sequence[str],
        spellings: Mapping[str, str],
    ) -> bool:
        """Apply the part of a sent plan that a list shows; return whether it shows any of it.

        Args:
            plan: The plan that was sent.
            at: The time it was sent, which is when it took effect.
            listed: The list, spelled as it was sent.
            spellings: As for `carry_out`.
        """
        shown = _shown(plan.change, listed)
        if not shown.is_empty:
            self.replaced(plan, shown, spellings)
        edits = difference(plan.after, listed).without(plan.change.identities)
        for step in plan.steps:
            if is_true(step.wanted, listed):
                seen = replace(step, outside=step.outside.then(edits))
                await self._apply(seen, at, spellings)
            else:
                await self._keep_part(step, _shown(step.change, listed), at, spellings)
        for ending in plan.endings:
            if ending.identity not in listed:
                await self.end(ending)
        return not shown.is_empty

    def replaced(self, plan: ListChangePlan, change: Change, spellings: Mapping[str, str]) -> None:
        """Record that the bot replaced the list; `change` is the part of the plan that is on it."""
        stored = change.spelled(spellings)
        ended = [ending.identity for ending in plan.endings]
        self._changes.append((stored, plan.request_ids, ended))
        detail = {
            "before": plan.before,
            "after": apply_change(plan.before, stored),
            "requests": plan.request_ids,
            "ended": ended,
        }
        self._entries.append(AuditEntry(BOT, "flow.changed", self._flow.sid, detail))

    @property
    def made(self) -> list[Change]:
        """The changes made to the list so far, oldest first."""
        return [change for change, *_ in self._changes]

    @property
    def granted(self) -> Mapping[str, Grant]:
        """The current grants by identity."""
        return self._granted

    def now(self, request: Request) -> Request:
        """Return the request with the changes collected so far."""
        return self._requests.get(request.id, request)

    def never_arrived(self, plan: ListChangePlan) -> None:
        """Record in the audit that a POST was never seen to arrive."""
        change = plan.change
        detail = {
            "additions": change.additions,
            "removals": change.removals,
            "requests": plan.request_ids,
        }
        self._entries.append(AuditEntry(BOT, "flow.change_not_found", self._flow.sid, detail))

    async def note_try(self, request_id: str, tried: Callable[[Request], Request]) -> None:
        """Record a failed try: schedule the next one, or fail the request."""
        stored = await self._request(request_id)
        if stored is None or stored.state is not State.APPLYING:
            return
        request = tried(stored)
        is_failed = request.state is State.FAILED
        # The card of a change without approval is first seen when it is decided.
        is_shown = is_failed or not request.requested.without_approval
        self._requests[request.id] = request
        if is_shown:
            self._shown[request.id] = None
        if is_failed:
            detail = {"flow": self._flow.sid, "reason": request.progress.failure}
            self._entries.append(AuditEntry(BOT, "request.failed", request_id, detail))
            self._tell_of_failure(request)

    async def no_longer_unsure(self, request_ids: Iterable[str]) -> None:
        """Record that the outcome of these requests is known."""
        for request_id in request_ids:
            request = await self._request(request_id)
            if request is not None and request.progress.is_unsure:
                self._put(request, replace(request.progress, is_unsure=False))

    async def say_overdue(self, request_id: str, reason: str) -> None:
        """Show that a request's grants can't be ended yet; audit it once, and each new reason."""
        request = await self._request(request_id)
        if request is None or request.progress.overdue == reason:
            return
        if not request.progress.overdue:
            detail = {"flow": self._flow.sid, "reason": reason}
            self._entries.append(AuditEntry(BOT, "grant.end_failed", request_id, detail))
        self._put(request, replace(request.progress, overdue=reason))

    async def write(self, audit: AuditStore) -> None:
        """Write requests, then the audit, then messages."""
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
            await tell_thread(self._tx, request)
        for request_id, identities in self._over.items():
            detail = {"identities": identities}
            await tell_requester(self._tx, self._requests[request_id], "ended", detail)
        for request, _, _ in self._decided:
            await self._put_timer(self._requests[request.id])
        await put_timers_of(self._tx, self._flow.key, self._touched)

    async def _put_timer(self, request: Request) -> None:
        """Schedule the announcement of the next end, and the notice of a missing card."""
        is_posted = not request.requested.without_approval
        ring = next_ring(request, NO_PATIENCE, is_posted=is_posted)
        if ring is not None:
            await put_timer(self._tx, request.id, ring.at)

    async def _apply(self, step: Step, at: datetime, spellings: Mapping[str, str]) -> None:
        """Mark the request of a step as applied, and start or end its grants."""
        request = await self._request(step.request_id)
        if request is None or not can_move(request.state, State.APPLIED):
            return
        done = step.done(at, request, self._granted).respelled(_speller(spellings))
        ended = tuple(
            Ended(identity, request.requested.end_of(identity, at) or at, was_gone=True)
            for identity in step.over
        )
        progress = replace(
            request.progress,
            part=None,
            done=done.after(request.progress.part),
            failure="",
            is_unsure=False,
            retry_at=None,
            ended=(*request.progress.ended, *ended),
            respelled=_respelled(request, step.wanted, spellings),
        )
        applied = replace(request, state=State.APPLIED, progress=progress)
        applied = await self._take_effect(applied, step.wanted.spelled(spellings), done)
        await self._mark_undone(applied)
        self._entries.append(_applied_entry(applied, done))
        self._decided.append((applied, "applied", {}))

    async def _keep_part(
        self, step: Step, part: Change, at: datetime, spellings: Mapping[str, str]
    ) -> None:
        """Record the part of a step that took effect, with grants for the people it added."""
        request = await self._request(step.request_id)
        if request is None or part.is_empty or not can_move(request.state, State.APPLIED):
            return
        size = step.size_before + len(part.additions) - len(part.removals)
        shown = Step(request.id, part, NO_CHANGE, NO_CHANGE, step.size_before, size, part)
        done = shown.done(at, request, self._granted).respelled(_speller(spellings))
        kept = await self._take_effect(request, part.spelled(spellings), done)
        respelled = _respelled(request, part, spellings)
        progress = replace(kept.progress, part=done.after(kept.progress.part), respelled=respelled)
        self._put(kept, progress)
        detail = {
            "flow": request.flow.sid,
            "additions": done.change.additions,
            "removals": done.change.removals,
            "approvers": [approval.who.slack_user_id for approval in request.progress.approvals],
        }
        self._entries.append(AuditEntry(BOT, "request.applied_in_part", request.id, detail))
        if request.state is State.FAILED:
            self._tell_of_failure(self._requests[request.id])

    def _tell_of_failure(self, request: Request) -> None:
        self._decided.append((request, "failed", {"reason": request.progress.failure}))

    async def _take_effect(self, request: Request, change: Change, done: Done) -> Request:
        """Start and end the grants of a change; return its request."""
        self._put(request, request.progress)
        for identity in change.identities:
            await self._end_grant(identity, request.id)
        for identity in change.additions:
            grant = self._grant(request, identity, done.ends_at.get(identity), done.at)
            await self._put_grant(grant)
        return self._requests[request.id]

    async def _put_grant(self, grant: Grant) -> None:
        await grants.put(self._tx, self._flow, grant)
        self._granted[grant.identity] = grant
        self._touched.add(grant.identity)

    async def respell(self, grant: Grant, stored_as: str) -> None:
        """Move a grant to the spelling that the service uses now."""
        self._granted.pop(grant.identity)
        await grants.drop(self._tx, self._flow.key, grant.identity)
        await self._put_grant(replace(grant, identity=stored_as))
        request = await self._request(grant.request_id)
        if request is None:
            return
        done, part = request.progress.done, request.progress.part
        spelling = {grant.identity: stored_as}
        spell = _speller(spelling)
        respelled = {identity: spell(now) for identity, now in request.progress.respelled.items()}
        progress = replace(
            request.progress,
            done=done and done.respelled(spell),
            part=part and part.respelled(spell),
            respelled=respelled | (spelling if grant.identity not in respelled.values() else {}),
        )
        self._put(request, progress)

    async def end(self, ending: Ending) -> None:
        """End a grant that is over, or that belongs to a person who is gone."""
        self._granted.pop(ending.identity, None)
        self._touched.add(ending.identity)
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
        """Mark what an undo undoes as undone, and what that had undone as in force again."""
        is_undone = True
        while undo.requested.undo_of and (undone := await self._request(undo.requested.undo_of)):
            undone_by = undo.id if is_undone else None
            progress = replace(undone.progress, is_undone=is_undone, undone_by=undone_by)
            self._put(undone, progress)
            undo, is_undone = undone, not is_undone

    async def _end_grant(self, identity: str, request_id: str) -> None:
        """Drop a grant; the card of the request behind it shows that it is replaced."""
        grant = self._granted.pop(identity, None)
        if grant is None:
            return
        self._touched.add(identity)
        await grants.drop(self._tx, self._flow.key, identity)
        earlier = await self._request(grant.request_id)
        if earlier is None or earlier.id == request_id:
            return
        superseded = (*earlier.progress.superseded, identity)
        progress = replace(earlier.progress, superseded=superseded)
        self._put(earlier, self._not_overdue(earlier.id, progress))

    def _not_overdue(self, request_id: str, progress: Progress) -> Progress:
        """Return the progress without `overdue`, unless another grant of the request is over."""
        remaining = [grant for grant in self._granted.values() if grant.request_id == request_id]
        is_overdue = any(
            grant.ends_at is not None and grant.ends_at <= self._at for grant in remaining
        )
        return progress if is_overdue else replace(progress, overdue="")

    def _grant(
        self, request: Request, identity: str, ends_at: datetime | None, at: datetime
    ) -> Grant:
        approvers: tuple[Who, ...] = tuple(approval.who for approval in request.progress.approvals)
        return Grant(identity, request.id, request.requester, approvers, at, ends_at)


def _shown(change: Change, listed: Collection[str]) -> Change:
    """Return the part of a change that a list shows."""
    return Change(
        tuple(identity for identity in change.additions if identity in listed),
        tuple(identity for identity in change.removals if identity not in listed),
    )


def _speller(spellings: Mapping[str, str]) -> Callable[[str], str]:
    return lambda identity: spellings.get(identity, identity)


def _respelled(request: Request, change: Change, spellings: Mapping[str, str]) -> Mapping[str, str]:
    changed = {added: spellings[added] for added in change.additions if added in spellings}
    return {**request.progress.respelled, **changed}


def _applied_entry(request: Request, done: Done) -> AuditEntry:
    detail = {
        "flow": request.flow.sid,
        "additions": done.change.additions,
        "removals": done.change.removals,
        "already_there": done.already.additions,
        "already_gone": done.already.removals,
        "outside_additions": done.outside.additions,
        "outside_removals": done.outside.removals,
        "approvers": [approval.who.slack_user_id for approval in request.progress.approvals],
    }
    return AuditEntry(BOT, "request.applied", request.id, detail)
