"""A change set that stores the results of a list read or update in one transaction.

New states, audit log entries and messages are collected first. They're then written in the same
order as in `transitions.apply_transition`: requests, then the audit log, then jobs and messages.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.approvals.rules import State, can_move
from bot.flows.rules.flows import Flow
from bot.flows.rules.lists import NO_CHANGE, apply_change, difference
from bot.store import audit
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.testusers import store
from bot.testusers.rules.applying import Ending, ListChangePlan, Step
from bot.testusers.rules.requests import Ended, Grant, Request
from bot.testusers.rules.review import Review
from bot.testusers.transitions import (
    ask_again,
    put_timer,
    put_timers_of,
    tell_requester,
    write_card,
)


class ChangeSet:
    """A set of changes to a flow's requests and grants, stored by `write`.

    `granted` maps identities to the flow's current grants, and is kept up to date.
    """

    def __init__(
        self, tx: Transaction, flow: Flow, at: datetime, granted: dict[str, Grant]
    ) -> None:
        self.granted = granted
        self._tx = tx
        self._flow = flow
        self._at = at
        self._requests: dict[str, Request] = {}
        self._entries: list[AuditEntry] = []
        self._asking: list[tuple[Request, Review, float]] = []
        self._decided: dict[str, None] = {}
        self._over: dict[str, list[str]] = {}
        self._stored = dict(granted)

    def now(self, request: Request) -> Request:
        """Return the request with the changes collected so far."""
        return self._requests.get(request.id, request)

    async def write(self) -> None:
        """Write everything that was collected, in the order described at the top of this module."""
        tx = self._tx
        changed = {identity for identity, _ in self.granted.items() ^ self._stored.items()}
        await store.save_grants(tx, self._flow, self.granted, changed)
        for request in self._requests.values():
            await store.save_request(tx, request)
        for request, review, hours in self._asking:
            await ask_again(tx, request, review, hours)
        await audit.append(tx, *self._entries)
        for request in self._requests.values():
            # A change without approval gets a card only once it's applied or has failed.
            if not (request.requested.without_approval and request.state is State.APPLYING):
                await write_card(tx, request.id)
        for request in (self._requests[request_id] for request_id in self._decided):
            await tell_requester(tx, request, request.state.value)
            await put_timer(tx, request.id, self._at)
        for request_id, identities in self._over.items():
            await tell_requester(tx, self._requests[request_id], "ended", identities=identities)
        if changed:
            await put_timers_of(tx, self._flow.key)

    async def settle(
        self,
        plan: ListChangePlan,
        at: datetime,
        listed: Sequence[str],
        spellings: Mapping[str, str],
    ) -> None:
        """Record the part of a plan that the flow's list shows. `at` is when it took effect.

        `spellings` maps added identities to the list's spellings.
        """
        sent = {stored_as: identity for identity, stored_as in spellings.items()}
        as_sent = tuple(sent.get(identity, identity) for identity in listed)
        on_list = {*as_sent}
        shown = plan.change.shown_in(on_list)
        if not shown.is_empty:
            change = shown.spelled(spellings)
            await store.record_change(self._tx, self._flow.key, change)
            detail = {
                "before": plan.before,
                "after": apply_change(plan.before, change),
                "requests": plan.request_ids,
                "ended": [ending.identity for ending in plan.endings],
            }
            self._entries.append(AuditEntry(BOT, "flow.changed", self._flow.sid, detail))
        edits = difference(plan.after, as_sent).without(plan.change.identities)
        for step in plan.steps:
            if shown == plan.change or step.wanted.shown_in(on_list) == step.wanted:
                seen = replace(step, outside=step.outside.then(edits))
                await self._take_effect(seen, at, spellings, is_all=True)
                continue
            part = step.change.shown_in(on_list)
            if not part.is_empty:
                size = step.size_before
                seen = Step(step.request_id, part, NO_CHANGE, NO_CHANGE, size, part)
                await self._take_effect(seen, at, spellings, is_all=False)
            request = await self._request(step.request_id)
            if request is not None and request.attempts.is_unsure:
                attempts = replace(request.attempts, is_unsure=False)
                self._requests[request.id] = replace(request, attempts=attempts)
        for ending in plan.endings:
            if ending.identity not in on_list:
                await self.end(ending)

    def ask_again(self, request: Request, review: Review, request_hours: float) -> None:
        """Ask for a new decision, because the change would no longer do what its card shows."""
        self._asking.append((self._requests.pop(request.id, request), review, request_hours))

    async def note_try(self, request_id: str, tried: Callable[[Request], Request]) -> None:
        """Record a failed attempt. `tried` returns the request with the failure recorded."""
        stored = await self._request(request_id)
        if stored is None or stored.state is not State.APPLYING:
            return
        request = self._requests[request_id] = tried(stored)
        if request.state is State.FAILED:
            self._note("request.failed", request_id, reason=request.attempts.failure)
            self._decided[request_id] = None

    async def say_overdue(self, request_id: str, reason: str) -> None:
        """Note on the card and in the audit log that expired access couldn't be removed."""
        request = await self._request(request_id)
        if request is not None and not request.result.overdue:
            self._note("grant.end_failed", request_id, reason=reason)
        await self._put(request_id, overdue=reason)

    async def _take_effect(
        self, step: Step, at: datetime, spellings: Mapping[str, str], *, is_all: bool
    ) -> None:
        """Start and end a step's grants, and mark its request as applied if all of it is."""
        request = await self._request(step.request_id)
        if request is None or not can_move(request.state, State.APPLIED):
            return
        stored = step.wanted.spelled(spellings)
        done = step.done(at, request, self.granted).respelled(spellings)
        for identity in stored.identities:
            await self._supersede(identity, request.id)
        approvers = tuple(approval.who for approval in request.round.approvals)
        for identity in stored.additions:
            end = done.ends_at.get(identity)
            self.granted[identity] = Grant(
                identity, request.id, request.requester, approvers, done.at, end
            )
        wanted = step.wanted.additions
        respelled = {identity: spellings[identity] for identity in wanted if identity in spellings}
        result = replace(
            request.result,
            done=done.after(request.result.done),
            respelled={**request.result.respelled, **respelled},
        )
        if is_all:
            self._note(
                "request.applied",
                request.id,
                additions=done.change.additions,
                removals=done.change.removals,
                already_there=done.already.additions,
                already_gone=done.already.removals,
                approvers=[approver.slack_user_id for approver in approvers],
            )
            over = (
                Ended(identity, request.requested.end_of(identity, at) or at, was_gone=True)
                for identity in step.over
            )
            result = replace(result, ended=(*result.ended, *over))
            request = replace(request, state=State.APPLIED, attempts=request.attempts.cleared())
            if request.requested.undo_of:
                await self._put(request.requested.undo_of, is_undone=True, undone_by=request.id)
        self._requests[request.id] = replace(request, result=result)
        if request.state is not State.APPLYING:
            self._decided[request.id] = None

    async def _supersede(self, identity: str, request_id: str) -> None:
        """End a person's grant, if any, because another request replaces or removes it."""
        grant = self.granted.pop(identity, None)
        if grant is None:
            return
        earlier = await self._request(grant.request_id)
        # The earlier request's card will show that this request replaced its grant.
        if earlier is not None and earlier.id != request_id:
            superseded = (*earlier.result.superseded, identity)
            await self._put(earlier.id, superseded=superseded, overdue="")

    def _note(self, event: str, request_id: str, **detail: object) -> None:
        detail = {"flow": self._flow.sid, **detail}
        self._entries.append(AuditEntry(BOT, event, request_id, detail))

    async def respell(self, grant: Grant, stored_as: str) -> None:
        """Change a grant's identity to the spelling that the service now uses."""
        del self.granted[grant.identity]
        self.granted[stored_as] = replace(grant, identity=stored_as)
        request = await self._request(grant.request_id)
        if request is None:
            return
        result = request.result
        spelling = {grant.identity: stored_as}
        respelled = {identity: spelling.get(now, now) for identity, now in result.respelled.items()}
        await self._put(
            request.id,
            done=result.done and result.done.respelled(spelling),
            respelled=respelled | spelling,
        )

    async def end(self, ending: Ending) -> None:
        """End a grant that expired, or that belongs to someone who is no longer on the list."""
        identity, was_gone = ending.identity, ending.was_gone
        self.granted.pop(identity, None)
        self._note("grant.ended", ending.request_id, identity=identity, was_gone=was_gone)
        request = await self._request(ending.request_id)
        if request is not None:
            ended = (*request.result.ended, Ended(identity, self._at, was_gone))
            await self._put(request.id, ended=ended, overdue="")
            self._over.setdefault(request.id, []).append(identity)

    async def _request(self, request_id: str) -> Request | None:
        known = self._requests.get(request_id)
        return known or await store.load_request(self._tx, request_id, lock=True)

    async def _put(self, request_id: str, **result: Any) -> None:  # noqa: ANN401 - fields of Result
        request = await self._request(request_id)
        if request is not None:
            changed = replace(request.result, **result)
            if changed != request.result:
                self._requests[request_id] = replace(request, result=changed)
