"""A try that failed: the next one later, or the request failed with the service's reason."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from bot.errors import GatehouseError
from bot.model.approval import State
from bot.model.audit import BOT, AuditEntry
from bot.model.requests import Request
from bot.store import requests
from bot.workflows.testusers.moves import tell_requester, write_card
from bot.workflows.testusers.setup import Setup

# Contract, section 6: three tries, growing pauses.
PAUSES_SECONDS = (1.0, 4.0)


async def note_failure(setup: Setup, request_ids: Collection[str], error: GatehouseError) -> None:
    """Count a failed try of these requests; after the third a request has failed."""
    async with setup.database.transaction() as tx:
        at, failed = await tx.now(), []
        for request_id in sorted(request_ids):
            request = await requests.load(tx, request_id, lock=True)
            if request is None or request.state is not State.APPLYING:
                continue
            tried = _tried(request, error.sentence, at)
            await requests.replace(tx, tried)
            failed.append(tried)
        for request in failed:
            if request.state is State.FAILED:
                detail = {"flow": request.flow.sid, "reason": error.sentence}
                await setup.audit.append(tx, AuditEntry(BOT, "request.failed", request.id, detail))
        for request in failed:
            if request.state is State.FAILED or not request.wish.without_approval:
                await write_card(tx, request.id)
            if request.state is State.FAILED:
                await tell_requester(tx, request, "failed", {"reason": error.sentence})


def _tried(request: Request, reason: str, at: datetime) -> Request:
    tries = request.progress.tries + 1
    progress = replace(request.progress, tries=tries, failure=reason)
    if tries > len(PAUSES_SECONDS):
        return replace(request, state=State.FAILED, progress=replace(progress, retry_at=None))
    retry_at = at + timedelta(seconds=PAUSES_SECONDS[tries - 1])
    return replace(request, progress=replace(progress, retry_at=retry_at))
