"""One transition of a request: the conditional write, and with it all that follows from it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from bot.model.approval import State, can_move
from bot.model.audit import AuditEntry
from bot.model.requests import Request
from bot.store import jobs, outbox, requests
from bot.store.audit import AuditStore
from bot.store.engine import Transaction
from bot.store.jobs import Job
from bot.store.outbox import Letter

APPLY, EXPIRE, REMIND = "testusers.apply", "testusers.expire", "testusers.remind"
CARD, TOLD, REMINDER = "testusers.card", "testusers.told", "testusers.reminder"
_GIVEN_UP = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED})
TOLD_STATES = frozenset({State.APPLIED, State.FAILED, State.DENIED, State.EXPIRED})


def card_key(request_id: str) -> str:
    """The outbox key of a request's card."""
    return f"{outbox.REQUEST_CARD}{request_id}"


async def write_card(tx: Transaction, request_id: str) -> None:
    """Have the card shown as the request stands."""
    await outbox.put(tx, Letter(card_key(request_id), CARD, request_id))


async def tell_requester(
    tx: Transaction, request: Request, event: str, detail: Mapping[str, Any] | None = None
) -> None:
    """Have the requester told, in the order of what happened."""
    payload = {"event": event, **(detail or {})}
    await outbox.put(tx, Letter(f"requester:{request.id}", TOLD, request.id, payload))


async def put_apply_job(tx: Transaction, flow_key: str) -> None:
    """Have whatever is approved or over on a flow applied now."""
    await jobs.put(tx, Job(f"apply:{flow_key}", APPLY, flow_key, await tx.now()))


async def put_deadlines(tx: Transaction, request: Request, remind_hours: float) -> None:
    """Have a pending request remembered once, and ended at its time."""
    await jobs.put(tx, Job(f"expire:{request.id}", EXPIRE, request.id, request.expires_at))
    remind_at = request.created_at + timedelta(hours=remind_hours)
    if remind_at < request.expires_at:
        await jobs.put(tx, Job(f"remind:{request.id}", REMIND, request.id, remind_at))


async def move(
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
    undone_id = new.wish.undo_of if new.state in _GIVEN_UP else None
    if undone_id:
        await _allow_undo_again(tx, undone_id, given_up_id=new.id)
    await audit.append(tx, entry)
    await write_card(tx, new.id)
    if undone_id:
        await write_card(tx, undone_id)
    if new.state is not old.state:
        await _follow(tx, old, new)
    return True


async def _follow(tx: Transaction, old: Request, new: Request) -> None:
    if old.state is State.PENDING:
        await jobs.drop(tx, f"expire:{new.id}")
        await jobs.drop(tx, f"remind:{new.id}")
    if new.state is State.APPLYING:
        await put_apply_job(tx, new.flow.key)
    if new.state in TOLD_STATES:
        await tell_requester(tx, new, new.state.value)


async def _allow_undo_again(tx: Transaction, request_id: str, given_up_id: str) -> None:
    undone = await requests.load(tx, request_id, lock=True)
    if undone is not None and undone.progress.undone_by == given_up_id:
        progress = replace(undone.progress, undone_by=None)
        await requests.replace(tx, replace(undone, progress=progress))
