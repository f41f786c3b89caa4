"""What a flow's list shows of a plan, as changes to requests and to people's access."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bot.approvals.rules import State, can_move
from bot.flows.rules.flows import Flow
from bot.flows.rules.identities import plain
from bot.flows.rules.lists import apply_change, difference
from bot.flows.store import note_list
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.testusers import store
from bot.testusers.rules.applying import ListChangePlan, Step
from bot.testusers.rules.people import Access, Did, Over, RequestPerson, Wants
from bot.testusers.rules.requests import Request
from bot.testusers.work import Work


def plan_detail(plan: ListChangePlan, after: Sequence[str]) -> dict[str, object]:
    """Return the details of a plan for the audit log: the list before and after, and for whom."""
    return {
        "before": plan.before.identities,
        "after": after,
        "requests": plan.request_ids,
        "ended": plan.over,
    }


async def concerned(
    tx: Transaction, flow: Flow, plan: ListChangePlan, access: Mapping[str, Access]
) -> list[Request]:
    """Return the requests that a plan may change: its own, and earlier ones for the same people."""
    wanted = [identity for step in plan.steps for identity in step.wanted.identities]
    people = [*wanted, *plan.over]
    request_ids = {*plan.request_ids, *(access[one].request_id for one in people if one in access)}
    return await store.requests_and_removals(tx, request_ids, flow.key, wanted)


class Settling:
    """Records in a `Work` what a flow's list shows.

    `access` maps spellings to people's current access to the flow, and is kept up to date.
    """

    def __init__(self, work: Work, flow: Flow, access: dict[str, Access]) -> None:
        self.access = access
        self._work = work
        self._flow = flow

    async def settle(
        self,
        plan: ListChangePlan,
        at: datetime,
        listed: Sequence[str],
        spellings: Mapping[str, str],
    ) -> None:
        """Record the part of a plan that the flow's list shows.

        `at` is when the plan took effect. `spellings` maps added identities to the list's
        spellings. The work has loaded the requests that are `concerned`.
        """
        work, latest = self._work, plan.before.identities
        sent = {stored_as: identity for identity, stored_as in spellings.items()}
        as_sent = tuple(sent.get(identity, identity) for identity in listed)
        on_list = {*as_sent}
        shown = plan.change.shown_in(on_list)
        if not shown.is_empty:
            latest = apply_change(plan.before.identities, shown.spelled(spellings))
            await note_list(work.tx, self._flow.key, latest, is_own=True)
            detail = plan_detail(plan, latest)
            work.record(AuditEntry(BOT, "flow.changed", self._flow.sid, detail))
        if latest != tuple(listed):
            await note_list(work.tx, self._flow.key, listed, is_own=False)
        edits = difference(plan.after, as_sent).without(plan.change.identities)
        for step in plan.steps:
            if shown == plan.change or step.wanted.shown_in(on_list) == step.wanted:
                seen = replace(step, outside=step.outside.then(edits))
                await self._take_effect(seen, at, spellings, is_all=True)
                continue
            part = step.change.shown_in(on_list)
            if not part.is_empty:
                await self._take_effect(step.part(part), at, spellings, is_all=False)
            request = await work.request(step.request_id)
            if request is not None and request.attempts.is_unsure:
                work.put(replace(request, attempts=replace(request.attempts, is_unsure=False)))
        for spelling in plan.over:
            if spelling not in on_list:
                was_gone = spelling not in plan.before.identities
                await self.end(spelling, Over.GONE if was_gone else Over.ENDED)

    async def _take_effect(
        self, step: Step, at: datetime, spellings: Mapping[str, str], *, is_all: bool
    ) -> None:
        """Record what came of a step's wishes. With `is_all`, mark its request as applied."""
        request = await self._work.request(step.request_id)
        if request is None or not can_move(request.state, State.APPLIED):
            return
        people = list[RequestPerson]()
        for person in request.left:
            spelling = person.spelling
            stored_as = spellings.get(spelling, spelling)
            before = self.access.get(spelling)
            if spelling in step.wanted.additions:
                was_listed = spelling not in step.change.additions
                settled = person.made(stored_as, at, before, was_listed=was_listed)
            elif spelling in step.wanted.removals:
                # An undo removes somebody whose earlier end has passed by now.
                removed = replace(person, wants=Wants.REMOVE)
                was_listed = spelling in step.change.removals
                settled = removed.made(spelling, at, before, was_listed=was_listed)
            elif is_all:
                # The access would already have ended.
                settled = replace(person, did=Did.LATE, did_at=at)
            else:
                settled = person
            people.append(settled)
        is_first = not request.those(Did.MADE, Did.FOUND)
        change = step.change
        result = replace(
            request.result,
            size_before=step.size_before if is_first else request.result.size_before,
            size_after=step.size_before + len(change.additions) - len(change.removals),
        )
        request = replace(request.with_left(people), result=result)
        if is_all:
            result = replace(result, applied_at=at, outside=step.outside)
            attempts = request.attempts.cleared()
            request = replace(request, state=State.APPLIED, result=result, attempts=attempts)
            self._note_applied(request)
        self._work.put(request)
        for person in people:
            if person.did is Did.MADE:
                await self._replace(person, request)

    def _note_applied(self, request: Request) -> None:
        """Record in the audit log what came of a request."""
        names: dict[tuple[Did, Wants], list[str]] = {}
        for person in request.people:
            names.setdefault((person.did, person.wants), []).append(person.identity)
        self._work.note(
            BOT,
            "request.applied",
            request,
            additions=names.get((Did.MADE, Wants.ADD), []),
            removals=names.get((Did.MADE, Wants.REMOVE), []),
            already_there=names.get((Did.FOUND, Wants.ADD), []),
            already_gone=names.get((Did.FOUND, Wants.REMOVE), []),
            approvers=[approver.slack_user_id for approver in request.approvers],
        )

    async def _replace(self, person: RequestPerson, request: Request) -> None:
        """End what earlier requests changed for this person, and begin the new access, if any."""
        replaced = set[str]()
        if person.wants is Wants.ADD:
            replaced.update(one.id for one in self._work.requests if one.has_removed(person))
        for spelling in {person.spelling, person.identity} & self.access.keys():
            replaced.add(self.access.pop(spelling).request_id)
        for request_id in replaced - {request.id}:
            over = Over.UNDONE if request_id == request.undo_of else Over.REPLACED
            await self._finish(request_id, person.spelling, over)
        if person.wants is Wants.ADD:
            since = person.did_at or self._work.at
            new = Access(request.id, person.spelling, since, person.ends_at)
            self.access[person.spelling] = new

    async def _finish(self, request_id: str, spelling: str, over: Over) -> None:
        """Record that what a request changed for a person isn't in effect anymore."""
        request = await self._work.request(request_id)
        if request is None:
            return
        people = [
            replace(person, over=over, over_at=self._work.at)
            if person.stands and plain(person.spelling) == plain(spelling)
            else person
            for person in request.people
        ]
        result = replace(request.result, overdue="")
        self._work.put(replace(request, people=tuple(people), result=result))

    async def respell(self, access: Access, stored_as: str) -> None:
        """Record the spelling that the service now uses for somebody with access."""
        del self.access[access.spelling]
        self.access[stored_as] = replace(access, spelling=stored_as)
        request = await self._work.request(access.request_id)
        if request is not None:
            people = [
                replace(person, spelling=stored_as)
                if person.has_access and person.spelling == access.spelling
                else person
                for person in request.people
            ]
            self._work.put(replace(request, people=tuple(people)))

    async def end(self, spelling: str, over: Over) -> None:
        """End access that ran out, or that somebody has who is no longer on the list."""
        access = self.access.pop(spelling, None)
        request = await self._work.request(access.request_id) if access else None
        if request is not None:
            detail = {"identity": spelling, "was_gone": over is Over.GONE}
            self._work.note(BOT, "grant.ended", request, **detail)
            await self._finish(request.id, spelling, over)

    async def note_try(self, request_id: str, tried: Callable[[Request], Request]) -> None:
        """Record a failed attempt. `tried` returns the request with the failure recorded."""
        request = await self._work.request(request_id)
        if request is None or request.state is not State.APPLYING:
            return
        after = tried(request)
        self._work.put(after)
        if after.state is State.FAILED:
            self._work.note(BOT, "request.failed", after, reason=after.attempts.failure)

    async def say_overdue(self, request_id: str, reason: str) -> None:
        """Note on the card and in the audit log that expired access couldn't be removed."""
        request = await self._work.request(request_id)
        if request is None:
            return
        if not request.result.overdue:
            self._work.note(BOT, "grant.end_failed", request, reason=reason)
        self._work.put(replace(request, result=replace(request.result, overdue=reason)))
