"""Request transitions: the conditional write and all its consequences."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.approvals.rules import FlowPolicy, State, can_move
from bot.store import jobs, outbox
from bot.store.audit import AuditStore
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.testusers.flows import Parts
from bot.testusers.rules.changes import apply_changes
from bot.testusers.rules.requests import Request
from bot.testusers.rules.review import Review, review
from bot.testusers.store import flows, grants, requests

APPLY, TIMER = "testusers.apply", "testusers.timer"
ESCALATION, FAILURE, ENDING = "testusers.escalation", "testusers.failure", "testusers.ending"
CARD, OUTCOME, REMINDER = "testusers.card", "testusers.outcome", "testusers.reminder"
REFUSED = "testusers.refused"
_GIVEN_UP = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED})
OUTCOME_STATES = frozenset(
    {State.SCHEDULED, State.APPLIED, State.FAILED, State.DENIED, State.EXPIRED}
)


def card_key(request_id: str) -> str:
    """Return the outbox key of a request's card."""
    return f"{outbox.REQUEST_CARD}{request_id}"


def expired_entry(expired: Request) -> AuditEntry:
    """Return the audit log entry for a request that expired, or whose access would have ended."""
    at = expired.decided_at or expired.expires_at
    is_over = not expired.left.removals and not expired.change_at(at).additions
    return AuditEntry(BOT, "request.expired", expired.id, {"is_over": is_over})


def asked_again_entry(actor: str, request: Request) -> AuditEntry:
    """Return the audit log entry for a request that asks again, with the reason."""
    detail = {"flow": request.flow.sid, "news": request.progress.news}
    return AuditEntry(actor, "request.asked_again", request.id, detail)


async def is_in_doubt(tx: Transaction, request: Request) -> bool:
    """Return True while it is unknown whether a POST for the request arrived."""
    post = await flows.post(tx, request.flow.key)
    return post is not None and post.is_of(request.id)


async def write_card(tx: Transaction, request_id: str) -> None:
    """Redraw the card and all its copies."""
    key = card_key(request_id)
    for shown in (key, *await outbox.copies(tx, key)):
        await outbox.put(tx, OutboxMessage(shown, CARD, request_id))


async def write_related_cards(tx: Transaction, request: Request) -> None:
    """Redraw the other open cards about the same people, which refer to each other."""
    for other in await requests.naming_the_same(tx, request):
        await write_card(tx, other.id)


async def write_in_thread(tx: Transaction, kind: str, request_id: str) -> None:
    """Post or edit a `REMINDER` or an `ESCALATION` in the card's thread."""
    await outbox.put(tx, OutboxMessage(f"{kind}:{request_id}", kind, request_id))


async def tell_requester(
    tx: Transaction, request: Request, event: str, detail: Mapping[str, Any] | None = None
) -> None:
    """Send the requester a message, keeping the order of events."""
    payload = {"event": event, **(detail or {})}
    await outbox.put(tx, OutboxMessage(f"requester:{request.id}", OUTCOME, request.id, payload))


async def tell_thread(tx: Transaction, request: Request) -> None:
    """Tell the approvers in the thread about a failure or its fix, as card edits don't notify.

    Each failure has its own message, which is edited once the request is applied.
    """
    keys = [f"{FAILURE}:{request.id}:{n}" for n in range(len(request.progress.retries) + 1)]
    if request.state is State.FAILED:
        shown = [] if request.requested.without_approval else keys[-1:]
    else:
        shown = await outbox.written(tx, keys)
    for key in shown:
        await outbox.put(tx, OutboxMessage(key, FAILURE, request.id))


async def review_of(
    bot: Parts,
    tx: Transaction,
    request: Request,
    listed: Sequence[str] | None = None,
    at: datetime | None = None,
    *,
    reads_settings: bool = True,
) -> Review:
    """Return the request's effect, at the current or an earlier time.

    `listed` is the flow's list, if it was just read; otherwise, the effect is based on the list
    that the request was last compared with and the bot's own changes since.
    """
    key, requested = request.flow.key, request.requested
    granted = await grants.of_flow(tx, key)
    if listed is None:
        own = await flows.changes_after(tx, key, requested.seen_change_id)
        listed = apply_changes(requested.seen, own)
    flow, policy = request.flow, FlowPolicy()
    if reads_settings:
        flow, policy = bot.flows.now(flow), bot.people.policy.of_flow(flow.sid)
    at, change_id = at or await tx.now(), await flows.latest_change_id(tx, key)
    return review(request, flow, policy, at, listed, change_id, grants.timed(granted))


async def put_apply_job(tx: Transaction, flow_key: str) -> None:
    """Apply a flow's approved changes and expired grants now; the job keeps its payload."""
    key = f"apply:{flow_key}"
    known = await jobs.payload_of(tx, key)
    await jobs.put(tx, Job(key, APPLY, flow_key, await tx.now(), known))


def timer_job(request_id: str, at: datetime) -> Job:
    """Return the job that fires a request's timers."""
    return Job(f"timer:{request_id}", TIMER, request_id, at)


async def put_timer(tx: Transaction, request_id: str, at: datetime) -> None:
    """Schedule a check of a request's timers."""
    await jobs.put(tx, timer_job(request_id, at))


async def put_timers_of(tx: Transaction, flow_key: str, identities: AbstractSet[str]) -> None:
    """Check the timers of pending requests about these people, because their access changed."""
    for request in await requests.waiting(tx, flow_key) if identities else ():
        if not identities.isdisjoint(request.requested.change.identities):
            await put_timer(tx, request.id, await tx.now())


async def apply_transition(
    tx: Transaction,
    audit: AuditStore,
    old: Request,
    new: Request,
    entry: AuditEntry,
) -> bool:
    """Write the request's next state with its audit log entry; return True if this write was first.

    Nothing is written if the request has changed since `old` was read. Every transaction locks rows
    in the order requests, audit log, jobs, so that no two transactions wait for each other.
    """
    if new.state is not old.state and not can_move(old.state, new.state):
        raise ValueError(f"a request cannot go from {old.state} to {new.state}")
    if not await requests.replace(tx, replace(new, version=old.version)):
        return False
    undone_id = new.requested.undo_of if new.state in _GIVEN_UP else None
    undone = await requests.load(tx, undone_id, lock=True) if undone_id else None
    if undone is not None and undone.progress.undone_by == new.id:
        progress = replace(undone.progress, undone_by=None)
        await requests.replace(tx, replace(undone, progress=progress))
    await audit.append(tx, entry)
    await write_card(tx, new.id)
    if undone_id:
        await write_card(tx, undone_id)
    if new.state is not old.state:
        await _follow(tx, old, new)
    return True


async def _follow(tx: Transaction, old: Request, new: Request) -> None:
    if not {State.PENDING, State.SCHEDULED}.isdisjoint({old.state, new.state}):
        await write_related_cards(tx, new)
    if State.PENDING in {old.state, new.state}:
        in_thread = {f"{kind}:{new.id}": kind for kind in (REMINDER, ESCALATION)}
        for key in await outbox.written(tx, list(in_thread)):
            await write_in_thread(tx, in_thread[key], new.id)
    if new.state is State.SCHEDULED:
        await put_timer(tx, new.id, new.requested.starts_at or await tx.now())
    if new.state is State.PENDING:
        await put_timer(tx, new.id, await tx.now())
        await tell_requester(tx, new, "asked_again")
    if new.state is State.APPLYING:
        await put_apply_job(tx, new.flow.key)
    if new.state in OUTCOME_STATES:
        await tell_requester(tx, new, new.state.value)
