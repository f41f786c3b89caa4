"""One transition of a request: the conditional write, and with it all that follows from it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from bot.model.audit import AuditEntry
from bot.model.testusers.approval import State, can_move
from bot.model.testusers.requests import Request
from bot.store import jobs, outbox, requests
from bot.store.audit import AuditStore
from bot.store.engine import Transaction
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage

APPLY, EXPIRE, REMIND = "testusers.apply", "testusers.expire", "testusers.remind"
UNPOSTED_JOB = "testusers.unposted"
START, ESCALATE = "testusers.start", "testusers.escalate"
ESCALATION, FAILURE = "testusers.escalation", "testusers.failure"
CARD, OUTCOME, REMINDER = "testusers.card", "testusers.outcome", "testusers.reminder"
# Whose card is not in Slack by then is told so.
UNPOSTED = timedelta(minutes=1)
_GIVEN_UP = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED})
OUTCOME_STATES = frozenset(
    {State.SCHEDULED, State.APPLIED, State.FAILED, State.DENIED, State.EXPIRED}
)


def card_key(request_id: str) -> str:
    """The outbox key of a request's card."""
    return f"{outbox.REQUEST_CARD}{request_id}"


async def is_allowed(audit: AuditStore, tx: Transaction, request: Request) -> bool:
    """Return whether the audit has what an approved request must have."""
    approvers = {one.who.slack_user_id for one in request.progress.approvals}
    part = request.progress.part
    settled = set(part.change.identities) if part else set()
    return not tx.seal.is_set or await audit.allows(tx, request.id, approvers, settled)


async def write_card(tx: Transaction, request_id: str) -> None:
    """Have the card, and each copy of it, shown as the request stands."""
    key = card_key(request_id)
    for shown in (key, *await outbox.copies(tx, key)):
        await outbox.put(tx, OutboxMessage(shown, CARD, request_id))


async def write_in_thread(tx: Transaction, kind: str, request_id: str) -> None:
    """Have a `REMINDER` or an `ESCALATION` shown in the card's thread as the request stands."""
    await outbox.put(tx, OutboxMessage(f"{kind}:{request_id}", kind, request_id))


async def tell_requester(
    tx: Transaction, request: Request, event: str, detail: Mapping[str, Any] | None = None
) -> None:
    """Have the requester told, in the order of what happened."""
    payload = {"event": event, **(detail or {})}
    await outbox.put(tx, OutboxMessage(f"requester:{request.id}", OUTCOME, request.id, payload))


async def tell_thread_of_failure(tx: Transaction, request: Request) -> None:
    """Have those who approved hear of a failure: an edited card rings nobody."""
    if not request.requested.without_approval:
        await outbox.put(tx, OutboxMessage(card_key(request.id), FAILURE, request.id))


async def put_apply_job(tx: Transaction, flow_key: str) -> None:
    """Have whatever is approved or over on a flow applied now."""
    await jobs.put(tx, Job(f"apply:{flow_key}", APPLY, flow_key, await tx.now()))


async def put_deadlines(
    tx: Transaction,
    request: Request,
    remind_hours: float,
    escalate_after_seconds: float | None = None,
) -> None:
    """Have a pending request remembered once, escalated once, and ended at its time."""
    await jobs.put(tx, Job(f"expire:{request.id}", EXPIRE, request.id, request.expires_at))
    unposted_at = request.created_at + UNPOSTED
    await jobs.put(tx, Job(f"unposted:{request.id}", UNPOSTED_JOB, request.id, unposted_at))
    if escalate_after_seconds is not None:
        escalate_at = request.created_at + timedelta(seconds=escalate_after_seconds)
        await jobs.put(tx, Job(f"escalate:{request.id}", ESCALATE, request.id, escalate_at))
    remind_at = request.created_at + timedelta(hours=remind_hours)
    if remind_at < request.expires_at:
        await jobs.put(tx, Job(f"remind:{request.id}", REMIND, request.id, remind_at))


async def apply_transition(
    tx: Transaction,
    audit: AuditStore,
    old: Request,
    new: Request,
    entry: AuditEntry,
) -> bool:
    """Write the request's next state with its audit entry; return whether this was the first.

    Nothing is written when somebody else wrote since `old` was read. Rows are locked in the order
    requests, audit, jobs in every transaction, so that no two wait for each other.
    """
    if new.state is not old.state and not can_move(old.state, new.state):
        raise ValueError(f"a request cannot go from {old.state} to {new.state}")
    if not await requests.replace(tx, replace(new, version=old.version)):
        return False
    undone_id = new.requested.undo_of if new.state in _GIVEN_UP else None
    if undone_id:
        await _allow_undo_again(tx, undone_id, new)
    await audit.append(tx, entry)
    await write_card(tx, new.id)
    if undone_id:
        await write_card(tx, undone_id)
    if new.state is not old.state:
        await _follow(tx, old, new)
    return True


async def _follow(tx: Transaction, old: Request, new: Request) -> None:
    if old.state is State.PENDING:
        in_thread = {f"{kind}:{new.id}": kind for kind in (REMINDER, ESCALATION)}
        for key in await outbox.written(tx, list(in_thread)):
            await write_in_thread(tx, in_thread[key], new.id)
        await jobs.drop(tx, f"expire:{new.id}")
        await jobs.drop(tx, f"remind:{new.id}")
        await jobs.drop(tx, f"escalate:{new.id}")
        await jobs.drop(tx, f"unposted:{new.id}")
    if old.state is State.SCHEDULED:
        await jobs.drop(tx, f"start:{new.id}")
    if new.state is State.SCHEDULED:
        starts_at = new.requested.starts_at or await tx.now()
        await jobs.put(tx, Job(f"start:{new.id}", START, new.id, starts_at))
    if new.state is State.APPLYING:
        await put_apply_job(tx, new.flow.key)
    if new.state in OUTCOME_STATES:
        await tell_requester(tx, new, new.state.value)


async def _allow_undo_again(tx: Transaction, request_id: str, given_up: Request) -> None:
    undone = await requests.load(tx, request_id, lock=True)
    if undone is not None and undone.progress.undone_by == given_up.id:
        at = given_up.decided_at
        progress = replace(undone.progress, undone_by=None, undo_given_up_at=at)
        await requests.replace(tx, replace(undone, progress=progress))
