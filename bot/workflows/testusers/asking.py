"""Asking: a wish is checked against the list as it stands, stored, and put before the approvers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256

from bot.errors import Conflict, NotFound
from bot.model.applying import inverse_of
from bot.model.approval import State
from bot.model.audit import AuditEntry
from bot.model.requests import Done, Grant, Request, Wish
from bot.model.testusers import Change, Effect, Flow, effect_of
from bot.parsing.testusers import ChangeRequest
from bot.permissions import Permission, Person
from bot.store import flows, grants, requests
from bot.store.engine import Transaction
from bot.workflows.testusers.moves import put_apply_job, put_deadlines, write_card
from bot.workflows.testusers.setup import Setup, who
from bot.workflows.testusers.words import state_sentence

_WAITING = frozenset({State.PENDING, State.APPLYING})


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of a wish: the request, or None when all of it is true already."""

    flow: Flow
    effect: Effect
    request: Request | None


@dataclass(frozen=True, slots=True)
class _Ground:
    """What is known of a flow when a request is made."""

    change_id: int
    grants: Mapping[str, Grant]
    listed: tuple[str, ...]


class Asking:
    """Makes requests, from commands, the form, and `Undo`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def admit(self, person: Person, permission: Permission = Permission.REQUEST) -> None:
        """Return if the person may ask, and there is a service to ask for.

        Raises:
            Refused: The person may not.
            NotConfigured: The flow service lacks settings.
        """
        await self._setup.people.admit(person, permission)
        self._setup.service()

    async def ask(self, person: Person, wish: ChangeRequest, delivery: str = "") -> Asked:
        """Make a request of what was typed, or apply it at once when it says `now`.

        Args:
            person: Who asks.
            wish: What was typed.
            delivery: What only this delivery of Slack's has; one that comes again, as happens
                when a connection breaks, asks for the same request and not for another one.

        Raises:
            Refused: The person may not ask, or not apply without approval.
            NotFound: There is no such flow.
            NotConfigured, ServiceError: The list cannot be read.
        """
        await self.admit(person, Permission.OVERRIDE if wish.now else Permission.REQUEST)
        flow = self._setup.flow(wish.flow)
        ground = await self._ground(flow)
        change = _change(wish)
        timed = change.additions if wish.duration_seconds else ()
        effect = effect_of(change, set(ground.listed), grants.timed(ground.grants), timed=timed)
        if effect.change.is_empty:
            return Asked(flow, effect, None)
        stored = self._wish(ground, effect)
        stored = replace(
            stored,
            duration_seconds=wish.duration_seconds,
            reason=wish.reason,
            without_approval=wish.now,
        )
        return Asked(flow, effect, await self._open_once(person, flow, stored, delivery))

    async def undo(self, person: Person, request_id: str) -> Asked:
        """Make a request of its own that takes an applied one back.

        Asked again by the same person, while it waits, it is the same request.

        Raises:
            Refused: The person may not ask.
            NotFound: There is no such request.
            Conflict: It is not applied, or its undo is asked already.
        """
        await self._setup.people.admit(person, Permission.REQUEST)
        undone, done = await self._applied(request_id)
        if undone.progress.undone_by is not None:
            return await self._undo_before(person, undone.progress.undone_by)
        ground = await self._ground(undone.flow)
        wished, ends = inverse_of(done, set(ground.listed), await self._now())
        timed = grants.timed(ground.grants)
        effect = effect_of(wished, set(ground.listed), timed, timed=ends.keys())
        if effect.change.is_empty:
            return Asked(undone.flow, effect, None)
        stored = replace(
            self._wish(ground, effect),
            ends={one: end for one, end in ends.items() if one in effect.change.additions},
            undo_of=undone.id,
            reason=f"Undo of the request of {undone.requester.name}",
        )
        return Asked(undone.flow, effect, await self._open(person, undone.flow, stored, undone))

    async def _applied(self, request_id: str) -> tuple[Request, Done]:
        async with self._setup.database.reading() as tx:
            request = await requests.load(tx, request_id)
        if request is None:
            raise NotFound("There is no such request any more.")
        if request.state is not State.APPLIED or request.progress.done is None:
            raise Conflict(f"Only an applied change can be undone. {state_sentence(request)}")
        return request, request.progress.done

    async def _undo_before(self, person: Person, request_id: str) -> Asked:
        """Return the undo that was asked before, if it was the person who asked and it waits."""
        async with self._setup.database.reading() as tx:
            undo = await requests.load(tx, request_id)
        if (
            undo is None
            or undo.requester.slack_user_id != person.slack_user_id
            or undo.state is not State.PENDING
        ):
            raise Conflict("The undo of this change was asked before.")
        return Asked(undo.flow, Effect(undo.wish.change, Change(), undo.wish.end_changes), undo)

    async def _now(self) -> datetime:
        async with self._setup.database.reading() as tx:
            return await tx.now()

    async def _ground(self, flow: Flow) -> _Ground:
        """The bot's own changes are looked at first, so that none is later taken for another's."""
        service = self._setup.service()
        async with self._setup.database.reading() as tx:
            change_id = await flows.latest_change_id(tx, flow.key)
            granted = await grants.of_flow(tx, flow.key)
        return _Ground(change_id, granted, tuple(await service.read(flow.sid)))

    def _wish(self, ground: _Ground, effect: Effect) -> Wish:
        return Wish(effect.change, ground.listed, ground.change_id, effect.end_changes)

    async def _open_once(self, person: Person, flow: Flow, wish: Wish, delivery: str) -> Request:
        """Open a request, unless this delivery has one that still waits."""
        request_id = sha256(delivery.encode()).hexdigest()[:16] if delivery else None
        while True:
            request = await self._open(person, flow, wish, request_id=request_id)
            if request is not None:
                return request
            async with self._setup.database.reading() as tx:
                there = await requests.load(tx, request_id or "")
            if there is not None and there.state in _WAITING:
                return there
            request_id = None

    async def _open(
        self,
        person: Person,
        flow: Flow,
        wish: Wish,
        undone: Request | None = None,
        request_id: str | None = None,
    ) -> Request | None:
        """Store a request with all that follows from it; None when there is one of its id."""
        async with self._setup.database.transaction() as tx:
            new_id = request_id or self._setup.new_id()
            request = self._request(new_id, person, flow, wish, await tx.now())
            if not await requests.insert(tx, request):
                return None
            if undone is not None:
                await _mark_undone(tx, undone, request.id)
            await self._setup.audit.append(tx, _entry(request))
            if undone is not None:
                await write_card(tx, undone.id)
            if wish.without_approval:
                await put_apply_job(tx, flow.key)
            else:
                await put_deadlines(tx, request, self._setup.rules.remind_hours)
                await write_card(tx, request.id)
        self._setup.wake()
        return request

    def _request(
        self, request_id: str, person: Person, flow: Flow, wish: Wish, at: datetime
    ) -> Request:
        expires_at = at + timedelta(hours=self._setup.rules.request_hours)
        request = Request(request_id, flow, who(person), wish, at, expires_at)
        if wish.without_approval:
            return request.moved(State.APPLYING, who(person), at, request.progress)
        return request


async def _mark_undone(tx: Transaction, undone: Request, request_id: str) -> None:
    progress = replace(undone.progress, undone_by=request_id)
    if not await requests.replace(tx, replace(undone, progress=progress)):
        raise Conflict("Somebody else was faster with this change; please look at its card.")


def _change(wish: ChangeRequest) -> Change:
    return Change(wish.identities) if wish.kind == "add" else Change(removals=wish.identities)


def _entry(request: Request) -> AuditEntry:
    wish = request.wish
    detail = {
        "flow": request.flow.sid,
        "additions": wish.change.additions,
        "removals": wish.change.removals,
        "end_changes": wish.end_changes,
        "duration_seconds": wish.duration_seconds,
        "reason": wish.reason,
        "undo_of": wish.undo_of,
    }
    action = "request.created_without_approval" if wish.without_approval else "request.created"
    return AuditEntry(request.requester.slack_user_id, action, request.id, detail)
