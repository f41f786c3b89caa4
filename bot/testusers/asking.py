"""Asking: check a change against the current list, store it, and ask the approvers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256

from bot.approvals.rules.approval import State
from bot.approvals.rules.durations import spell_duration
from bot.approvals.rules.policies import duration_problem
from bot.errors import Conflict, NotFound
from bot.ops.current_delivery import delivery_id
from bot.permissions import Permission, Person
from bot.slack.messages import text
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Transaction
from bot.testusers.deciding import approved_by_rule
from bot.testusers.messages.phrases import change_in_plain, state_sentence
from bot.testusers.parse.change import ChangeRequest, misuse, term_of
from bot.testusers.presets import unknown_preset
from bot.testusers.rules.applying import inverse_of
from bot.testusers.rules.changes import Change, Effect, Flow, effect_of, identities_problem
from bot.testusers.rules.requests import Done, Grant, Request, RequestedChange
from bot.testusers.rules.spellings import Spellings
from bot.testusers.setup import Setup, who
from bot.testusers.store import flows, grants, presets, requests
from bot.testusers.timers import first_look
from bot.testusers.transitions import (
    is_in_doubt,
    put_apply_job,
    put_timer,
    write_card,
    write_related_cards,
)

MOST_PENDING = 20
# Each undo posts a card that mentions the approvers, so it can't be requested again right after
# being cancelled.
UNDO_PAUSE = timedelta(minutes=1)
_WAITING = frozenset({State.PENDING, State.SCHEDULED, State.APPLYING})
_DONE = frozenset({State.APPLIED, State.FAILED})


@dataclass(frozen=True, slots=True)
class Asked:
    """The result of asking for a change: the request, or None if no change is needed.

    `earlier` is an open request for the same change, in which case no new request was made; `age`
    is its age.
    """

    flow: Flow
    effect: Effect
    request: Request | None
    earlier: Request | None = None
    age: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a flow when a request is made."""

    change_id: int
    grants: Mapping[str, Grant]
    listed: tuple[str, ...]

    def requested(self, effect: Effect) -> RequestedChange:
        """Return the change with the current information about its people."""
        ends = grants.timed(self.grants)
        current = {identity: ends[identity] for identity in effect.end_changes if identity in ends}
        return RequestedChange(
            effect.change, self.listed, self.change_id, effect.end_changes, current_ends=current
        )


async def require_asking(
    setup: Setup, person: Person, permission: Permission = Permission.REQUEST
) -> None:
    """Require that the person may ask and that the flow service is configured.

    Raises:
        Refused: The person lacks the permission.
        NotConfigured: The flow service lacks settings.
    """
    await setup.people.require(person, permission)
    setup.service()


async def ask(
    setup: Setup,
    person: Person,
    requested: ChangeRequest,
    delivery: str = "",
    *,
    anyway: bool = True,
) -> Asked:
    """Make a request from a command or form, or apply it immediately if it says `now`.

    Args:
        setup: The parts that all steps share.
        person: The requester.
        requested: The requested change.
        delivery: The id of Slack's delivery. Slack may deliver twice, for example when a
            connection breaks; both deliveries make the same request.
        anyway: Make the request even if an open one asks for the same change.

    Raises:
        Refused: The person may not ask, or not apply without approval.
        NotFound: The flow or a preset does not exist.
        NotConfigured, ServiceError: The list cannot be read.
    """
    permission = Permission.OVERRIDE if requested.now else Permission.REQUEST
    await require_asking(setup, person, permission)
    flow = setup.flow(requested.flow)
    now = await setup.database.now()
    term = term_of(person.time_zone, requested, now)
    identities = await _identities(setup, requested)
    snapshot = await _snapshot(setup, flow)
    effect = _effect(requested, identities, snapshot, term.starts_at)
    if effect.change.is_empty:
        return Asked(flow, effect, None)
    too_long = _too_long(setup, flow, term.seconds(requested, now))
    if effect.change.additions and too_long:
        raise misuse("add", too_long)
    stored = replace(
        snapshot.requested(effect),
        duration_seconds=requested.duration_seconds,
        reason=requested.reason,
        without_approval=requested.now,
        starts_at=term.starts_at,
        ends=dict.fromkeys(effect.change.additions, term.ends_at) if term.ends_at else {},
    )
    request_id = sha256(delivery.encode()).hexdigest()[:16] if delivery else None
    if not (anyway or requested.now):
        async with setup.database.read_only() as tx:
            waiting = await requests.waiting(tx, flow.key)
        for earlier in waiting:
            if earlier.id != request_id and earlier.requested.effect == stored.effect:
                return Asked(flow, effect, None, earlier, now - earlier.created_at)
    return Asked(flow, effect, await _open_once(setup, person, flow, stored, request_id))


async def undo(setup: Setup, person: Person, request_id: str) -> Asked:
    """Make a request that undoes an earlier one.

    While the undo request is open, the same person gets the same request again.

    Raises:
        Refused: The person may not ask.
        NotFound: The request does not exist.
        Conflict: No part of the request is applied, more of it may still be applied, its undo is
            already requested, or the last undo was abandoned less than a minute ago.
    """
    await setup.people.require(person, Permission.REQUEST)
    undone, done = await _applied(setup, request_id)
    if undone.progress.undone_by is not None:
        return await _undo_before(setup, person, undone.progress.undone_by)
    now, flow = await setup.database.now(), undone.flow
    _require_pause(undone, now)
    snapshot = await _snapshot(setup, flow, is_typed=False)
    people, spellings = (
        (*done.change.identities, *done.already.identities),
        Spellings(snapshot.listed),
    )
    done = done.respelled({identity: spellings.respelled(identity) for identity in people})
    wanted, ends = inverse_of(done, set(snapshot.listed), now)
    timed = grants.timed(snapshot.grants)
    effect = effect_of(wanted, set(snapshot.listed), timed, timed=ends.keys())
    if effect.change.is_empty:
        return Asked(flow, effect, None)
    if effect.change.removals:
        await _require_new(setup, undone, effect)
    for identity in effect.change.additions:
        end = ends.get(identity)
        if problem := _too_long(setup, flow, (end - now).total_seconds() if end else None):
            raise Conflict(f"This can't be undone with a button. {problem}")
    stored = replace(
        snapshot.requested(effect),
        ends={
            identity: end for identity, end in ends.items() if identity in effect.change.additions
        },
        undo_of=undone.id,
        reason=f"Undoes {undone.requester.name}'s request",
    )
    return Asked(flow, effect, await _open(setup, person, flow, stored, undone=undone))


async def _applied(setup: Setup, request_id: str) -> tuple[Request, Done]:
    async with setup.database.read_only() as tx:
        request = await requests.load(tx, request_id)
    if request is None:
        raise NotFound("That request no longer exists.")
    if request.state not in _DONE or request.took_effect is None:
        state = state_sentence(request, await setup.database.now())
        raise Conflict(f"Only an applied change can be undone. {state}")
    return request, request.took_effect


async def _undo_before(setup: Setup, person: Person, request_id: str) -> Asked:
    async with setup.database.read_only() as tx:
        earlier = await requests.load(tx, request_id)
    is_own = earlier and earlier.requester.slack_user_id == person.slack_user_id
    if earlier is None or not is_own or earlier.state is not State.PENDING:
        raise Conflict("Someone has already asked to undo this.")
    requested = earlier.requested
    effect = Effect(requested.change, Change(), requested.end_changes)
    return Asked(earlier.flow, effect, earlier)


def _require_pause(undone: Request, now: datetime) -> None:
    given_up_at = undone.progress.undo_given_up_at
    if given_up_at is not None and now < given_up_at + UNDO_PAUSE:
        seconds = math.ceil((given_up_at + UNDO_PAUSE - now).total_seconds())
        raise Conflict(
            "The last request to undo this was closed a moment ago."
            f" You can ask again in {text.duration(seconds)}."
        )


async def _require_new(setup: Setup, undone: Request, effect: Effect) -> None:
    async with setup.database.read_only() as tx:
        waiting = await requests.waiting(tx, undone.flow.key)
    for other in waiting:
        if other.requested.change == effect.change:
            change = change_in_plain(other)
            raise Conflict(
                f"{other.requester.name} has already asked to {change}. That request is still open."
            )


def limit_problem(setup: Setup, requested: ChangeRequest, now: datetime) -> str | None:
    """Return the reason why the flow's policy refuses a form's request, or None.

    Raises:
        NotConfigured: The flow service lacks settings.
        NotFound: The flow does not exist.
        UsageError: A time has passed.
    """
    flow = setup.flow(requested.flow)
    if requested.kind == "remove":
        return None
    return _too_long(setup, flow, term_of("UTC", requested, now).seconds(requested, now))


def longest(setup: Setup, flow: Flow) -> str:
    """Return the longest access that the flow's policy allows; "" for no limit."""
    rules = setup.flow_rules(flow.sid)
    return spell_duration(rules.longest_seconds) if rules.longest_seconds else ""


def _too_long(setup: Setup, flow: Flow, duration_seconds: float | None) -> str | None:
    return duration_problem(setup.flow_rules(flow.sid), duration_seconds, longest(setup, flow))


async def _identities(setup: Setup, requested: ChangeRequest) -> tuple[str, ...]:
    """Return all named people, including the current members of presets.

    Raises:
        NotFound: A preset does not exist.
        UsageError: The change names too many people.
    """
    if not requested.presets:
        return requested.identities
    async with setup.database.read_only() as tx:
        saved = await presets.load(tx, requested.presets)
        missing = [name for name in requested.presets if name not in saved]
        if missing:
            quoted = f" If “@{missing[0]}” is a test user, put it in quotes."
            raise unknown_preset(missing[0], await presets.names(tx), quoted)
    named = [identity for name in requested.presets for identity in saved[name].identities]
    identities = tuple(dict.fromkeys((*requested.identities, *named)))
    if problem := identities_problem(identities):
        raise misuse(requested.kind, problem, has_right_form=True)
    return identities


async def _snapshot(setup: Setup, flow: Flow, *, is_typed: bool = True) -> Snapshot:
    """Read the bot's own changes before the list, so that they never look like external changes."""
    async with setup.database.read_only() as tx:
        change_id = await flows.latest_change_id(tx, flow.key)
        granted = await grants.of_flow(tx, flow.key)
    listed = await setup.read(flow, is_typed=is_typed)
    return Snapshot(change_id, granted, tuple(listed))


def _effect(
    requested: ChangeRequest,
    typed: tuple[str, ...],
    snapshot: Snapshot,
    starts_at: datetime | None,
) -> Effect:
    """Return the change's effect on the list when it starts, with identities spelled as listed.

    Raises:
        UsageError: The change names too many people.
    """
    spellings = Spellings(snapshot.listed)
    meant, others = spellings.meant(typed), spellings.others(typed)
    if meant != typed and (problem := identities_problem(meant)):
        raise misuse(requested.kind, problem, has_right_form=True)
    change = Change(meant) if requested.kind == "add" else Change(removals=meant)
    timed = change.additions if requested.duration_seconds or requested.until else ()
    ends = grants.timed(snapshot.grants)
    over = {identity for identity, end in ends.items() if starts_at and end <= starts_at}
    effect = effect_of(change, set(snapshot.listed) - over, ends, timed=timed)
    respelled = tuple(identity for identity in meant if identity not in typed)
    kept = tuple(identity for identity in others if identity not in meant)
    return replace(effect, respelled=respelled, kept=kept)


async def _open_once(
    setup: Setup, person: Person, flow: Flow, requested: RequestedChange, request_id: str | None
) -> Request:
    """Open a request, unless this delivery already has an open one."""
    while True:
        request = await _open(setup, person, flow, requested, request_id=request_id)
        if request is not None:
            return request
        async with setup.database.read_only() as tx:
            there = await requests.load(tx, request_id or "")
        if there is not None and (there.state in _WAITING or there.progress.rule):
            return there
        request_id = None


async def _open(
    setup: Setup,
    person: Person,
    flow: Flow,
    requested: RequestedChange,
    *,
    undone: Request | None = None,
    request_id: str | None = None,
) -> Request | None:
    async with setup.database.transaction() as tx:
        at = await tx.now()
        expires_at = at + timedelta(hours=setup.rules.request_hours)
        new_id = request_id or setup.new_id()
        request = Request(new_id, flow, who(person), requested, at, expires_at)
        if requested.without_approval:
            progress = replace(request.progress, delivery_id=delivery_id())
            request = request.moved(State.APPLYING, who(person), at, progress)
        if not await requests.insert(tx, request):
            return None
        if undone is not None:
            await _mark_undone(tx, undone, request.id)
        await setup.audit.append(tx, _entry(request))
        if undone is not None:
            await write_card(tx, undone.id)
        if approved := await approved_by_rule(setup, tx, person, request):
            return approved
        if requested.without_approval:
            await put_apply_job(tx, flow.key)
            return request
        # Counted while the audit log is locked, so two simultaneous requests can't both be the
        # last.
        if await requests.count_pending_of(tx, person.slack_user_id) > MOST_PENDING:
            raise Conflict(
                f"You already have {MOST_PENDING} requests waiting for a decision. Cancel one of"
                " them, or wait until some are decided: /testusers requests"
            )
        await write_card(tx, request.id)
        await write_related_cards(tx, request)
        look_at = first_look(request, setup)
        await put_timer(tx, request.id, look_at)
    return request


async def _mark_undone(tx: Transaction, undone: Request, request_id: str) -> None:
    stored = await requests.load(tx, undone.id, lock=True)
    is_same = stored is not None and (stored.state, stored.took_effect) == (
        undone.state,
        undone.took_effect,
    )
    if stored is None or not is_same or stored.progress.undone_by:
        raise Conflict("Someone else just changed this. See the card.")
    if stored.state is State.FAILED and await is_in_doubt(tx, stored):
        raise Conflict(
            "I'm still checking whether the rest of this change went through."
            " Please try again in a minute."
        )
    progress = replace(stored.progress, undone_by=request_id)
    await requests.replace(tx, replace(stored, progress=progress))


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
