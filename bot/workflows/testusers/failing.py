"""A try that failed: the next one later, or the request failed with the service's reason.

A request whose last answer was lost has perhaps taken effect. It is not called failed before the
list has been read again; only when that fails too, the card says that it is not known.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from bot.errors import GatehouseError
from bot.model.approval import State
from bot.model.audit import BOT, AuditEntry
from bot.model.requests import Request
from bot.model.testusers import Flow
from bot.store import flows, grants, requests
from bot.store.engine import Transaction
from bot.workflows.testusers.moves import tell_requester, write_card
from bot.workflows.testusers.setup import Setup

# Contract, section 6: three tries, growing pauses. What follows are looks, not tries.
TRIES = 3
LOOKS = 2
PAUSES_SECONDS = (1.0, 3.0, 0.5, 4.0)
UNKNOWN = (
    " It is not known whether the change arrived: please look at the list, then retry;"
    " what is there already is not sent again."
)


def is_spent(request: Request) -> bool:
    """Return whether the tries are used up, and only a look at the list is left."""
    return request.progress.tries >= TRIES


async def note_failure(
    setup: Setup, flow: Flow, request_ids: Collection[str], error: GatehouseError
) -> None:
    """Count a failed try of these requests; after the third a request has failed."""
    async with setup.database.transaction() as tx:
        plan = await flows.plan_of(tx, flow.key)
        unsure = {step.request_id for step in plan.steps} if plan else set()
        at = await tx.now()
        tried = [
            _tried(request, error.sentence, at, is_unsure=request.id in unsure)
            for request in await _applying(tx, request_ids)
        ]
        await _write(tx, setup, tried)


async def fail_spent(setup: Setup, request_ids: Collection[str]) -> None:
    """The list was read: what is not in it by now, and has no try left, has failed."""
    async with setup.database.transaction() as tx:
        spent = [one for one in await _applying(tx, request_ids) if is_spent(one)]
        await _write(tx, setup, [_failed(one, one.progress.failure) for one in spent])


async def note_overdue(setup: Setup, flow: Flow, error: GatehouseError) -> None:
    """Say once, on the card and in the audit, that grants that are over could not be ended."""
    async with setup.database.transaction() as tx:
        over = sorted({grant.request_id for grant in await grants.due(tx, flow.key)})
        found = [await requests.load(tx, one, lock=True) for one in over]
        fresh = [one for one in found if one is not None and not one.progress.overdue]
        for request in fresh:
            progress = replace(request.progress, overdue=error.sentence)
            await requests.replace(tx, replace(request, progress=progress))
        for request in fresh:
            detail = {"flow": flow.sid, "reason": error.sentence}
            await setup.audit.append(tx, AuditEntry(BOT, "grant.end_failed", request.id, detail))
        for request in fresh:
            await write_card(tx, request.id)


async def _applying(tx: Transaction, request_ids: Collection[str]) -> list[Request]:
    found = [await requests.load(tx, one, lock=True) for one in sorted(request_ids)]
    return [one for one in found if one is not None and one.state is State.APPLYING]


async def _write(tx: Transaction, setup: Setup, changed: Collection[Request]) -> None:
    for request in changed:
        await requests.replace(tx, request)
    failed = [request for request in changed if request.state is State.FAILED]
    for request in failed:
        detail = {"flow": request.flow.sid, "reason": request.progress.failure}
        await setup.audit.append(tx, AuditEntry(BOT, "request.failed", request.id, detail))
    for request in changed:
        # The card of a change without approval is first seen when it is decided.
        if request in failed or not request.wish.without_approval:
            await write_card(tx, request.id)
    for request in failed:
        await tell_requester(tx, request, "failed", {"reason": request.progress.failure})


def _tried(request: Request, reason: str, at: datetime, *, is_unsure: bool) -> Request:
    tries = request.progress.tries + 1
    if tries >= TRIES + (LOOKS if is_unsure else 0):
        return _failed(request, reason + (UNKNOWN if is_unsure else ""))
    retry_at = at + timedelta(seconds=PAUSES_SECONDS[tries - 1])
    progress = replace(request.progress, tries=tries, failure=reason, retry_at=retry_at)
    return replace(request, progress=progress)


def _failed(request: Request, reason: str) -> Request:
    progress = replace(request.progress, tries=TRIES, failure=reason, retry_at=None)
    return replace(request, state=State.FAILED, progress=progress)
