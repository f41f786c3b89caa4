"""State changes of requests, the jobs and messages that they lead to, and timers."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from bot.approvals.rules import State, can_move
from bot.errors import Conflict
from bot.flows.rules.lists import apply_changes
from bot.store import audit, jobs, outbox
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.testusers import store
from bot.testusers.messages.phrases import outdated
from bot.testusers.parse.form import ShownRequest
from bot.testusers.parts import Parts
from bot.testusers.rules.requests import THE_BOT, Request
from bot.testusers.rules.review import CurrentList, Review, reconsidered, review

APPLY, TIMER = "testusers.apply", "testusers.timer"
ESCALATION, ENDING = "testusers.escalation", "testusers.ending"
CARD, OUTCOME, REMINDER = "testusers.card", "testusers.outcome", "testusers.reminder"
STILL_CHECKING = (
    "I'm still checking whether this change went through. Please try again in a minute."
)
_GIVEN_UP = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED})


def card_key(request_id: str) -> str:
    """Return the outbox key of a request's card."""
    return f"{store.CARD_PREFIX}{request_id}"


async def is_in_doubt(tx: Transaction, request: Request) -> bool:
    """Return True if a POST for this request still has an unknown outcome."""
    post = await store.post_of(tx, request.flow.key)
    return post is not None and request.id in post.plan.request_ids


async def write_card(tx: Transaction, request_id: str) -> None:
    """Queue the request's card to be posted or updated."""
    await outbox.put(tx, OutboxMessage(card_key(request_id), CARD, request_id))


async def require_current(bot: Parts, request: Request, shown: ShownRequest) -> None:
    """Raise Conflict if a clicked card is outdated, and bring the request's card up to date."""
    if shown.version == request.requested.card_version:
        return
    async with bot.database.transaction() as tx:
        await write_card(tx, request.id)
    raise Conflict(outdated(request, shown.version))


async def write_related_cards(
    tx: Transaction, request: Request, waiting: Sequence[Request]
) -> None:
    """Redraw the cards of those waiting requests that affect any of the same people."""
    for other in waiting:
        if other.names_the_same(request):
            await write_card(tx, other.id)


async def tell_requester(tx: Transaction, request: Request, event: str, **detail: object) -> None:
    """Queue a message to the requester about an event. Messages are sent in order."""
    payload = {"event": event, **detail}
    await outbox.put(tx, OutboxMessage(f"requester:{request.id}", OUTCOME, request.id, payload))


def review_now(bot: Parts, request: Request, at: datetime, current: CurrentList) -> Review:
    """Return the effect of applying the request at this time, with the current settings."""
    policy = bot.people.policy.of_flow(request.flow.sid)
    return review(request, bot.flows.now(request.flow), policy, at, current)


async def current_list(tx: Transaction, request: Request) -> CurrentList:
    """Return the list that the request was compared with, after the bot's own changes since."""
    key, compared = request.flow.key, request.requested.compared
    own = await store.changes_after(tx, key, compared.seen_change_id)
    listed = apply_changes(compared.seen, [recorded.change for recorded in own])
    return CurrentList(listed, own, await store.grants_of_flow(tx, key))


async def put_apply_job(tx: Transaction, flow_key: str) -> None:
    """Schedule a flow's apply job to run now, without forgetting what it has noted."""
    job = Job(f"apply:{flow_key}", APPLY, flow_key, await tx.now())
    await jobs.put(tx, job, keeps_payload=True)


async def put_timer(tx: Transaction, request_id: str, at: datetime) -> None:
    """Schedule a check of a request's timers at this time."""
    await jobs.put(tx, Job(f"timer:{request_id}", TIMER, request_id, at))


async def put_timers_of(tx: Transaction, flow_key: str) -> None:
    """Schedule an immediate timer check for a flow's pending requests."""
    now = await tx.now()
    for request in await store.requests_in(tx, State.PENDING, flow_key=flow_key):
        await put_timer(tx, request.id, now)


async def apply_transition(
    tx: Transaction,
    old: Request,
    new: Request,
    entry: AuditEntry,
) -> None:
    """Store a request's new state and queue its messages and jobs, unless `old` is outdated.

    To avoid deadlocks, every transaction locks requests first, then the audit log, then jobs.
    """
    if new.state is not old.state and not can_move(old.state, new.state):
        raise ValueError(f"a request cannot go from {old.state} to {new.state}")
    if not await store.save_request(tx, replace(new, version=old.version)):
        return
    undone = None
    if new.state in _GIVEN_UP and new.requested.undo_of:
        undone = await store.load_request(tx, new.requested.undo_of, lock=True)
    if undone is not None:
        result = replace(undone.result, undone_by=None)
        await store.save_request(tx, replace(undone, result=result))
    await audit.append(tx, entry)
    await write_card(tx, new.id)
    if undone is not None:
        await write_card(tx, undone.id)
    if new.state is not old.state:
        await _follow(tx, old, new)


async def _follow(tx: Transaction, old: Request, new: Request) -> None:
    if State.PENDING in {old.state, new.state}:
        waiting = await store.requests_in(tx, State.PENDING, flow_key=new.flow.key)
        await write_related_cards(tx, new, waiting)
    if new.state is State.PENDING:
        await put_timer(tx, new.id, await tx.now())
        await tell_requester(tx, new, "asked_again")
    elif new.state is State.APPLYING:
        await put_apply_job(tx, new.flow.key)
    elif new.state is not State.CANCELLED or new.round.decided_by == THE_BOT:
        await tell_requester(tx, new, new.state.value)


async def close(tx: Transaction, request: Request, state: State, reason: str = "") -> Request:
    """Expire or cancel a request in the bot's name.

    In the audit log, `is_over` is True if the requested access would already have ended.
    """
    at = await tx.now()
    closed = request.moved(state, THE_BOT, at)
    closed = replace(closed, round=replace(closed.round, denial_reason=reason))
    detail = {"flow": request.flow.sid, "reason": reason, "is_over": request.is_late_at(at)}
    entry = AuditEntry(BOT, f"request.{state}", request.id, detail)
    await apply_transition(tx, request, closed, entry)
    return closed


async def ask_again(
    tx: Transaction,
    request: Request,
    review: Review,
    request_hours: float,
    actor: str = BOT,
) -> Request:
    """Ask for a new decision on the request, or expire the request if nothing is left to do."""
    if review.is_over:
        return await close(tx, request, State.EXPIRED)
    moved = reconsidered(request, review, await tx.now(), request_hours)
    detail = {"flow": request.flow.sid, "news": review.news}
    entry = AuditEntry(actor, "request.asked_again", request.id, detail)
    await apply_transition(tx, request, moved, entry)
    return moved


# States in which a card has buttons or may get buttons later.
OPEN_STATES = frozenset({State.PENDING, State.APPLYING, State.FAILED})
