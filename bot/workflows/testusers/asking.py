"""Asking: a change is checked against the list as it stands, stored, and put to approvers."""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.dataclass import dataclass
from bot.errors import Conflict, NotFound, RecordEdited
from bot.model.audit import AuditEntry
from bot.model.durations import spell_duration
from bot.model.policies import duration_problem
from bot.model.start_times import StartTime, moment_of
from bot.model.testusers.applying import inverse_of
from bot.model.testusers.approval import State
from bot.model.testusers.changes import Change, Effect, Flow, effect_of, identities_problem
from bot.model.testusers.requests import Done, Grant, Request, RequestedChange
from bot.model.testusers.spellings import Spellings
from bot.ops.deliveries import delivery_id
from bot.parsing.testusers_requests import ChangeRequest, misuse
from bot.permissions import Permission, Person
from bot.store import flows, grants, presets, requests
from bot.store.engine import Transaction
from bot.ui import text
from bot.workflows.testusers.presets import unknown_preset
from bot.workflows.testusers.setup import Setup, who
from bot.workflows.testusers.state_text import state_sentence
from bot.workflows.testusers.transitions import put_apply_job, put_deadlines, write_card

MOST_PENDING = 20
# Each undo posts a card that mentions the approvers: who cancels one cannot ask again at once.
UNDO_PAUSE = timedelta(minutes=1)
_WAITING = frozenset({State.PENDING, State.SCHEDULED, State.APPLYING})
_DONE = frozenset({State.APPLIED, State.FAILED})


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of a requested change: the request, or None when all of it is true already.

    `earlier` is an open request for the same, because of which nothing was requested; `age` is how
    old it is.
    """

    flow: Flow
    effect: Effect
    request: Request | None
    earlier: Request | None = None
    age: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known of a flow when a request is made."""

    change_id: int
    grants: Mapping[str, Grant]
    listed: tuple[str, ...]


class Asking:
    """Makes requests, from commands, the form, and `Undo`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def require(self, person: Person, permission: Permission = Permission.REQUEST) -> None:
        """Return if the person may ask, and there is a service to ask for.

        Raises:
            Refused: The person may not.
            NotConfigured: The flow service lacks settings.
        """
        await self._setup.people.require(person, permission)
        self._setup.service()

    def flow(self, typed: str) -> Flow:
        """Return the flow of that alias or SID.

        Raises:
            NotConfigured, NotFound: There is none.
        """
        return self._setup.flow(typed)

    async def ask(
        self,
        person: Person,
        requested: ChangeRequest,
        delivery: str = "",
        *,
        anyway: bool = True,
    ) -> Asked:
        """Make a request of what was typed, or apply it at once when it says `now`.

        Args:
            person: Who asks.
            requested: What was typed.
            delivery: What only this delivery of Slack's has; one that comes again, as happens
                when a connection breaks, asks for the same request and not for another one.
            anyway: Whether to ask although an open request asks for the same.

        Raises:
            Refused: The person may not ask, or not apply without approval.
            NotFound: There is no such flow.
            NotConfigured, ServiceError: The list cannot be read.
        """
        await self.require(person, Permission.OVERRIDE if requested.now else Permission.REQUEST)
        flow = self._setup.flow(requested.flow)
        starts_at = await self._start(person, requested.start)
        identities = await self._identities(requested)
        snapshot = await self._snapshot(flow)
        effect = _effect(requested, identities, snapshot)
        if effect.change.is_empty:
            return Asked(flow, effect, None)
        if effect.change.additions and (
            problem := self._too_long(flow, requested.duration_seconds)
        ):
            raise misuse("add", problem)
        stored = self._requested(snapshot, effect)
        stored = replace(
            stored,
            duration_seconds=requested.duration_seconds,
            reason=requested.reason,
            without_approval=requested.now,
            starts_at=starts_at,
        )
        if not (anyway or requested.now):
            earlier, age = await self._earlier(flow, stored, delivery)
            if earlier is not None:
                return Asked(flow, effect, None, earlier, age)
        return Asked(flow, effect, await self._open_once(person, flow, stored, delivery))

    async def _earlier(
        self, flow: Flow, wanted: RequestedChange, delivery: str
    ) -> tuple[Request | None, timedelta]:
        """Return an open request for the same and its age, if it is not of this very delivery."""
        async with self._setup.database.read_only() as tx:
            now = await tx.now()
            waiting = await requests.waiting(tx, flow.key)
        own = _id_of(delivery)
        same = [one for one in waiting if one.id != own and one.requested.effect == wanted.effect]
        return (same[0], now - same[0].created_at) if same else (None, timedelta())

    async def undo(self, person: Person, request_id: str) -> Asked:
        """Make a request of its own that takes back what an earlier one did.

        Asked again by the same person, while it waits, it is the same request.

        Raises:
            Refused: The person may not ask.
            NotFound: There is no such request.
            Conflict: Nothing of it is applied, more of it may yet be, its undo is asked already,
                or the last one was given up less than a minute ago.
        """
        await self._setup.people.require(person, Permission.REQUEST)
        undone, done = await self._applied(request_id)
        if undone.progress.undone_by is not None:
            return await self._undo_before(person, undone.progress.undone_by)
        _require_pause(undone, await self._now())
        snapshot = await self._snapshot(undone.flow, is_typed=False)
        done = done.respelled(Spellings(snapshot.listed).respelled)
        wanted, ends = inverse_of(done, set(snapshot.listed), await self._now())
        timed = grants.timed(snapshot.grants)
        effect = effect_of(wanted, set(snapshot.listed), timed, timed=ends.keys())
        if effect.change.is_empty:
            return Asked(undone.flow, effect, None)
        for identity in effect.change.additions:
            end = ends.get(identity)
            left = (end - await self._now()).total_seconds() if end else None
            if problem := self._too_long(undone.flow, left):
                raise Conflict(f"This can't be undone with a button. {problem}")
        stored = replace(
            self._requested(snapshot, effect),
            ends={one: end for one, end in ends.items() if one in effect.change.additions},
            undo_of=undone.id,
            reason=f"Undo of the request of {undone.requester.name}",
        )
        return Asked(undone.flow, effect, await self._open(person, undone.flow, stored, undone))

    async def _applied(self, request_id: str) -> tuple[Request, Done]:
        async with self._setup.database.read_only() as tx:
            request = await requests.load(tx, request_id)
        if request is None:
            raise NotFound("That request no longer exists.")
        if not request.is_genuine:
            raise RecordEdited("request", request.id)
        if request.state not in _DONE or request.took_effect is None:
            state = state_sentence(request, await self._now())
            raise Conflict(f"Only an applied change can be undone. {state}")
        return request, request.took_effect

    async def _undo_before(self, person: Person, request_id: str) -> Asked:
        """Return the undo that was asked before, if it was the person who asked and it waits."""
        async with self._setup.database.read_only() as tx:
            undo = await requests.load(tx, request_id)
        if (
            undo is None
            or undo.requester.slack_user_id != person.slack_user_id
            or undo.state is not State.PENDING
        ):
            raise Conflict("Someone has already asked to undo this.")
        return Asked(
            undo.flow, Effect(undo.requested.change, Change(), undo.requested.end_changes), undo
        )

    async def _now(self) -> datetime:
        async with self._setup.database.read_only() as tx:
            return await tx.now()

    def _too_long(self, flow: Flow, duration_seconds: float | None) -> str | None:
        """Return why nobody can be added to the flow for so long, or None."""
        rules = self._setup.flow_rules(flow.sid)
        longest = spell_duration(rules.longest_seconds) if rules.longest_seconds else ""
        return duration_problem(rules, duration_seconds, longest)

    async def _start(self, person: Person, start: StartTime | None) -> datetime | None:
        """Return when the change is to be applied, read in the zone of who asks.

        Raises:
            UsageError: It has passed, or the zone is not known here.
        """
        if start is None:
            return None
        try:
            zone = ZoneInfo(person.time_zone)
        except (ZoneInfoNotFoundError, ValueError):
            problem = f"I don't know your time zone ({person.time_zone}), so I can't read the time."
            raise misuse("add", problem, has_right_form=True) from None
        moment = moment_of(start, await self._now(), zone)
        if moment is None:
            problem = f"“{start}” has passed, or is more than a year away."
            raise misuse("add", problem, has_right_form=True)
        return moment

    async def _identities(self, requested: ChangeRequest) -> tuple[str, ...]:
        """Return everybody who is named, those of presets at this moment among them.

        Raises:
            NotFound: There is no such preset.
            UsageError: Together they are too many.
        """
        if not requested.presets:
            return requested.identities
        async with self._setup.database.read_only() as tx:
            saved = await presets.load(tx, requested.presets)
            missing = [name for name in requested.presets if name not in saved]
            if missing:
                quoted = f" If “@{missing[0]}” is a test user, put it in quotes."
                raise unknown_preset(missing[0], await presets.names(tx), quoted)
        named = [one for name in requested.presets for one in saved[name].identities]
        identities = tuple(dict.fromkeys((*requested.identities, *named)))
        if problem := identities_problem(identities):
            raise misuse(requested.kind, problem, has_right_form=True)
        return identities

    async def _snapshot(self, flow: Flow, *, is_typed: bool = True) -> Snapshot:
        """The bot's own changes are looked at first, so that none is later taken for another's."""
        async with self._setup.database.read_only() as tx:
            change_id = await flows.latest_change_id(tx, flow.key)
            granted = await grants.of_flow(tx, flow.key)
        listed = await self._setup.read(flow.sid, is_typed=is_typed)
        return Snapshot(change_id, granted, tuple(listed))

    def _requested(self, snapshot: Snapshot, effect: Effect) -> RequestedChange:
        ends = grants.timed(snapshot.grants)
        return RequestedChange(
            effect.change,
            snapshot.listed,
            snapshot.change_id,
            effect.end_changes,
            current_ends={one: ends[one] for one in effect.end_changes if one in ends},
        )

    async def _open_once(
        self, person: Person, flow: Flow, requested: RequestedChange, delivery: str
    ) -> Request:
        """Open a request, unless this delivery has one that still waits."""
        request_id = _id_of(delivery)
        while True:
            request = await self._open(person, flow, requested, request_id=request_id)
            if request is not None:
                return request
            async with self._setup.database.read_only() as tx:
                there = await requests.load(tx, request_id or "")
            if there is not None and there.state in _WAITING:
                return there
            request_id = None

    async def _open(
        self,
        person: Person,
        flow: Flow,
        requested: RequestedChange,
        undone: Request | None = None,
        request_id: str | None = None,
    ) -> Request | None:
        """Store a request with all that follows from it; None when there is one of its id."""
        async with self._setup.database.transaction() as tx:
            new_id = request_id or self._setup.new_id()
            request = self._request(new_id, person, flow, requested, await tx.now())
            if not await requests.insert(tx, request):
                return None
            if undone is not None:
                await _mark_undone(tx, undone, request.id)
            await self._setup.audit.append(tx, _entry(request))
            await _decline_too_many(tx, request)
            if undone is not None:
                await write_card(tx, undone.id)
            if requested.without_approval:
                await put_apply_job(tx, flow.key)
            else:
                escalate_after = self._setup.flow_rules(flow.sid).escalate_after_seconds
                remind_hours = self._setup.rules.remind_hours
                await put_deadlines(tx, request, remind_hours, escalate_after)
                await write_card(tx, request.id)
        return request

    def _request(
        self, request_id: str, person: Person, flow: Flow, requested: RequestedChange, at: datetime
    ) -> Request:
        expires_at = at + timedelta(hours=self._setup.rules.request_hours)
        request = Request(request_id, flow, who(person), requested, at, expires_at)
        if requested.without_approval:
            progress = replace(request.progress, delivery_id=delivery_id())
            return request.moved(State.APPLYING, who(person), at, progress)
        return request


def _effect(requested: ChangeRequest, typed: tuple[str, ...], snapshot: Snapshot) -> Effect:
    """What the change would do to the list, of whoever is meant there.

    Raises:
        UsageError: They are too many.
    """
    spellings = Spellings(snapshot.listed)
    meant, others = spellings.meant(typed), spellings.others(typed)
    if meant != typed and (problem := identities_problem(meant)):
        raise misuse(requested.kind, problem, has_right_form=True)
    change = Change(meant) if requested.kind == "add" else Change(removals=meant)
    timed = change.additions if requested.duration_seconds else ()
    effect = effect_of(change, set(snapshot.listed), grants.timed(snapshot.grants), timed=timed)
    respelled = tuple(one for one in meant if one not in typed)
    kept = tuple(one for one in others if one not in meant)
    return replace(effect, respelled=respelled, kept=kept)


async def _decline_too_many(tx: Transaction, request: Request) -> None:
    """Keep one person's requests from filling the approvals channel.

    They are counted when the audit is locked, so that two at once are not both the last.
    """
    if request.state is not State.PENDING:
        return
    if await requests.count_pending_of(tx, request.requester.slack_user_id) > MOST_PENDING:
        raise Conflict(
            f"{MOST_PENDING} requests of yours wait for a decision already. Cancel one of them,"
            " or wait until some are decided: /testusers requests"
        )


def _id_of(delivery: str) -> str | None:
    """The id of the request that a delivery opens, so that it opens one only."""
    return sha256(delivery.encode()).hexdigest()[:16] if delivery else None


def _require_pause(undone: Request, now: datetime) -> None:
    given_up_at = undone.progress.undo_given_up_at
    if given_up_at is not None and now < given_up_at + UNDO_PAUSE:
        seconds = math.ceil((given_up_at + UNDO_PAUSE - now).total_seconds())
        raise Conflict(
            "The last request to undo this has only just ended."
            f" You can ask again in {text.duration(seconds)}."
        )


async def _mark_undone(tx: Transaction, undone: Request, request_id: str) -> None:
    """What else has changed meanwhile, such as a grant that ended, is in nobody's way."""
    stored = await requests.load(tx, undone.id, lock=True)
    is_same = stored is not None and (stored.state, stored.took_effect) == (
        undone.state,
        undone.took_effect,
    )
    if stored is None or not is_same or stored.progress.undone_by:
        raise Conflict("Someone else just changed this. See the card.")
    if stored.state is State.FAILED and await _is_in_doubt(tx, stored):
        raise Conflict(
            "I'm still checking whether more of this change goes through."
            " Please try again in a minute."
        )
    progress = replace(stored.progress, undone_by=request_id)
    await requests.replace(tx, replace(stored, progress=progress))


async def _is_in_doubt(tx: Transaction, request: Request) -> bool:
    return any(post.is_of(request.id) for post in await flows.posts(tx, request.flow.key))


def _entry(request: Request) -> AuditEntry:
    requested = request.requested
    detail = {
        "flow": request.flow.sid,
        "additions": requested.change.additions,
        "removals": requested.change.removals,
        "end_changes": requested.end_changes,
        "duration_seconds": requested.duration_seconds,
        "starts_at": requested.starts_at and requested.starts_at.isoformat(),
        "reason": requested.reason,
        "undo_of": requested.undo_of,
    }
    action = "request.created_without_approval" if requested.without_approval else "request.created"
    return AuditEntry(request.requester.slack_user_id, action, request.id, detail)
