"""Timers of requests: expiry, reminder, escalation, and the notice that access ends soon."""

from dataclasses import replace
from datetime import datetime, timedelta

from bot.approvals.rules import FlowPolicy, State
from bot.store import audit, outbox
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.testusers import store
from bot.testusers.parts import Parts
from bot.testusers.rules.requests import Request
from bot.testusers.rules.review import review
from bot.testusers.transitions import (
    ENDING,
    ESCALATION,
    OPEN_STATES,
    REMINDER,
    ask_again,
    close,
    current_list,
    put_timer,
    write_card,
)

EXPIRE, REMIND, ESCALATE, ANNOUNCE_END = "expire", "remind", "escalate", "announce_end"
# The timers that post a message in the card's thread.
IN_THREAD = {REMIND: REMINDER, ESCALATE: ESCALATION}
ANNOUNCED_BEFORE = timedelta(hours=1)


def next_timer(bot: Parts, request: Request) -> tuple[datetime, str] | None:
    """Return the time and name of the request's next timer, or None if no timer is left.

    Each timer fires once. Reminders and escalations appear in the thread of the request's card, so
    they are sent once the card is in Slack.
    """
    if request.state is not State.PENDING:
        end = request.next_end
        return (end - ANNOUNCED_BEFORE, ANNOUNCE_END) if end else None
    asked_at = request.round.asked_at or request.created_at
    remind_at = asked_at + timedelta(hours=bot.settings.remind_hours)
    times = {EXPIRE: request.expires_at, REMIND: remind_at}
    if seconds := bot.people.policy.of_flow(request.flow.sid).escalate_after_seconds:
        times[ESCALATE] = asked_at + timedelta(seconds=seconds)
    # The earliest timer fires first, so no reminder is sent if the request expires before it.
    return min((at, name) for name, at in times.items() if name not in request.round.rung)


async def plan(tx: Transaction) -> None:
    """Redraw the open cards and check the timers at startup, because settings may have changed."""
    now = await tx.now()
    for request in await store.requests_in(tx, *OPEN_STATES):
        # A change without approval gets a card only once it's applied or has failed.
        if request.state is not State.APPLYING or not request.requested.without_approval:
            await write_card(tx, request.id)
        if request.state is State.PENDING:
            await put_timer(tx, request.id, now)


async def run_timers(bot: Parts, job: Job, lease: Lease) -> datetime | None:
    """Fire the request's due timer, if any. Return the time of the next check, if any."""
    async with bot.database.transaction() as tx:
        next_check = await _check(bot, tx, job.subject)
        await lease.finish(tx, next_check)
    return next_check


async def _check(bot: Parts, tx: Transaction, request_id: str) -> datetime | None:
    request = await store.load_request(tx, request_id, lock=True)
    if request is None:
        return None
    now = await tx.now()
    if request.state is State.PENDING:
        # Settings are compared again only when someone clicks a button.
        found = review(request, request.flow, FlowPolicy(), now, await current_list(tx, request))
        if found.news or found.is_over:
            await ask_again(tx, request, found, bot.settings.request_hours)
            return now
        if found.request.requested.current_ends != request.requested.current_ends:
            # The change is still the same, but its card shows an end that's no longer true.
            await store.save_request(tx, found.request)
            await write_card(tx, request_id)
            return now
    timer = next_timer(bot, request)
    if timer is None:
        return None
    at, name = timer
    if at > now:
        return at
    await _ring(bot, tx, request, name)
    return now


async def _ring(bot: Parts, tx: Transaction, request: Request, name: str) -> None:
    if name == EXPIRE:
        await close(tx, request, State.EXPIRED)
    elif end := request.next_end:
        result = replace(request.result, announced_until=end)
        await store.save_request(tx, replace(request, result=result))
        payload = {"ends_at": end.isoformat()}
        message = OutboxMessage(f"requester:{request.id}", ENDING, request.id, payload)
        await outbox.put(tx, message)
    else:
        rung = (*request.round.rung, name)
        await store.save_request(tx, replace(request, round=replace(request.round, rung=rung)))
        if name == ESCALATE:
            to = bot.people.policy.of_flow(request.flow.sid).escalate_to or ()
            detail = {"flow": request.flow.sid, "to": to}
            await audit.append(tx, AuditEntry(BOT, "request.escalated", request.id, detail))
        kind = IN_THREAD[name]
        await outbox.put(tx, OutboxMessage(f"{kind}:{request.id}", kind, request.id))
