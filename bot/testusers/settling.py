"""What a flow's list shows of a plan, as changes to requests and to people's access."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bot.approvals.rules import State, can_move
from bot.flows.rules import Change, Flow, apply_change, difference, plain
from bot.flows.store import note_list
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.testusers.parts import Parts
from bot.testusers.rules.applying import ListChangePlan, wishes_at
from bot.testusers.rules.people import Access, Did, Over, RequestPerson, Wants, change_of
from bot.testusers.rules.requests import Attempts, Request
from bot.testusers.work import Work


class Settling(Work):
    """The work of a flow's job, which records what the flow's list shows.

    `access` maps spellings to people's current access to the flow, and is kept up to date.
    """

    def __init__(
        self,
        bot: Parts,
        tx: Transaction,
        at: datetime,
        loaded: Iterable[Request],
        flow: Flow,
        access: dict[str, Access],
    ) -> None:
        super().__init__(bot, tx, at, loaded)
        self.flow = flow
        self.access = access

    @property
    def approved(self) -> list[Request]:
        """The loaded requests that are approved, and not applied yet."""
        return [request for request in self.requests.values() if request.state is State.APPLYING]

    def note_plan(self, action: str, plan: ListChangePlan, after: Sequence[str]) -> None:
        """Record a plan in the audit log: the list before and after, and for whom."""
        detail = {
            "before": plan.before.identities,
            "after": after,
            "requests": plan.request_ids,
            "ended": plan.over,
        }
        self.entries.append(AuditEntry(BOT, action, self.flow.sid, detail))

    async def settle(
        self,
        plan: ListChangePlan,
        at: datetime,
        listed: Sequence[str],
        spellings: Mapping[str, str],
    ) -> None:
        """Record the part of a plan that the flow's list shows.

        `at` is when the plan took effect. `spellings` maps added identities to the list's
        spellings. The work has loaded the requests that the plan concerns.
        """
        latest = plan.before.identities
        sent = {stored_as: identity for identity, stored_as in spellings.items()}
        as_sent = tuple(sent.get(identity, identity) for identity in listed)
        on_list = {*as_sent}
        shown = plan.change.shown_in(on_list)
        if not shown.is_empty:
            latest = apply_change(latest, shown.spelled(spellings))
            await note_list(self.tx, self.flow.key, latest, is_own=True)
            self.note_plan("flow.changed", plan, latest)
        if latest != tuple(listed):
            await note_list(self.tx, self.flow.key, listed, is_own=False)
        edits = difference(plan.after, as_sent).without(plan.change.identities)
        there = plan.before.identities
        for step in plan.steps:
            request = self.requests.get(step.request_id)
            if request is None:
                continue
            # A list can have an entry twice, and both count.
            size, before, wishes = len(there), {*there}, wishes_at(request, plan.at)
            wanted = [wish for wish in wishes if wish.is_open]
            there = apply_change(there, change_of(wanted))
            if not can_move(request.state, State.APPLIED):
                continue
            is_all = shown == plan.change or all(wish.is_shown_in(on_list) for wish in wanted)
            people = list[RequestPerson]()
            for person, wish in zip(request.left, wishes, strict=True):
                is_new = wish.is_shown_in(on_list) and not wish.is_shown_in(before)
                if wish.is_open and (is_all or is_new):
                    access, was_listed = self.access.get(wish.spelling), wish.spelling in before
                    stored_as = spellings.get(wish.spelling, wish.spelling)
                    people.append(wish.made(stored_as, at, access, was_listed=was_listed))
                else:
                    people.append(wish if is_all else person)
            outside = step.outside.then(edits) if is_all else None
            await self._take_effect(request, people, at, size, outside)
        for spelling in plan.over:
            if spelling not in on_list:
                was_gone = spelling not in plan.before.identities
                await self.end(spelling, Over.GONE if was_gone else Over.ENDED)

    async def _take_effect(
        self,
        request: Request,
        people: Sequence[RequestPerson],
        at: datetime,
        size: int,
        outside: Change | None,
    ) -> None:
        """Record what came of a request's wishes for the people left.

        `size` is the list's size before. If the whole request is done, `outside` has the changes
        that other people made since its making.
        """
        state = request.state
        result = request.result
        attempts = replace(request.attempts, is_unsure=False)
        if people != request.left:
            before = result.size_before if request.has_effect else size
            after = size + sum(person.gain for person in people)
            result = replace(result, size_before=before, size_after=after)
        request = request.with_left(people)
        if outside is not None:
            # The service may store entries in its own spelling, which is nobody's edit.
            outside = outside.of_people.without([person.spelling for person in request.people])
            result = replace(result, applied_at=at, outside=outside)
            state = State.APPLIED
            attempts = Attempts(retried_by=attempts.retried_by)
            names: dict[tuple[Did, Wants], list[str]] = {}
            for person in request.people:
                names.setdefault((person.did, person.wants), []).append(person.identity)
            self.note(
                BOT,
                "request.applied",
                request,
                additions=names.get((Did.MADE, Wants.ADD), []),
                removals=names.get((Did.MADE, Wants.REMOVE), []),
                already_there=names.get((Did.FOUND, Wants.ADD), []),
                already_gone=names.get((Did.FOUND, Wants.REMOVE), []),
                approvers=[approver.slack_user_id for approver in request.approvers],
            )
        self.put(replace(request, state=state, result=result, attempts=attempts))
        for person in people:
            if person.did is Did.MADE:
                await self._replace(person, request)

    async def _replace(self, person: RequestPerson, request: Request) -> None:
        """End what earlier requests changed for this person, and begin the new access, if any."""
        replaced = set[str]()
        if person.wants is Wants.ADD:
            replaced.update(one.id for one in self.requests.values() if one.has_removed(person))
        for spelling in {person.spelling, person.identity} & self.access.keys():
            replaced.add(self.access.pop(spelling).request_id)
        for request_id in replaced - {request.id}:
            over = Over.UNDONE if request_id == request.undo_of else Over.REPLACED
            await self._finish(request_id, person.spelling, over)
        if person.wants is Wants.ADD:
            since = person.did_at or self.at
            access = Access(request.id, person.spelling, since, person.ends_at)
            self.access[person.spelling] = access

    async def _finish(self, request_id: str, spelling: str, over: Over) -> None:
        """Record that what a request changed for a person isn't in effect anymore."""
        request = await self.request(request_id)
        people = [
            replace(person, over=over, over_at=self.at)
            if person.stands and plain(person.spelling) == plain(spelling)
            else person
            for person in request.people
        ]
        result = replace(request.result, overdue="")
        self.put(replace(request, people=tuple(people), result=result))

    async def respell(self, spelling: str, stored_as: str) -> None:
        """Record the spelling that the service now uses for somebody with access."""
        access = self.access.pop(spelling)
        self.access[stored_as] = replace(access, spelling=stored_as)
        request = await self.request(access.request_id)
        people = [
            replace(person, spelling=stored_as)
            if person.has_access and person.spelling == spelling
            else person
            for person in request.people
        ]
        self.put(replace(request, people=tuple(people)))

    async def end(self, spelling: str, over: Over) -> None:
        """End access that ran out, or that somebody has who is no longer on the list."""
        if access := self.access.pop(spelling, None):
            request = await self.request(access.request_id)
            is_gone = over is Over.GONE
            self.note(BOT, "grant.ended", request, identity=spelling, was_gone=is_gone)
            await self._finish(request.id, spelling, over)

    def put_tried(self, request: Request) -> None:
        """Change a request after a failed attempt."""
        self.put(request)
        if request.state is State.FAILED:
            self.note(BOT, "request.failed", request, reason=request.attempts.failure)
