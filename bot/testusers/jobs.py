"""The jobs about test users with their limits, and the one that fires the timers of requests."""

from dataclasses import replace
from datetime import datetime
from functools import partial

from bot.approvals.rules import FlowPolicy, State
from bot.store.audit_entry import BOT
from bot.store.engine import Transaction
from bot.store.job_loop import Kind, Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.testusers import store
from bot.testusers.applying import run_changes
from bot.testusers.interactions import INTERACTION, UNDO, run_click
from bot.testusers.parts import Parts, policy_of
from bot.testusers.rules.requests import Request, review
from bot.testusers.work import (
    APPLY,
    ENDING,
    ESCALATION,
    REMINDER,
    TIMER,
    Timer,
    Work,
    current_list,
    put_timer,
    timer_of,
    write_card,
)

# The timers that post a message in the card's thread.
IN_THREAD = {Timer.REMIND: REMINDER, Timer.ESCALATE: ESCALATION}


def kinds(bot: Parts) -> dict[str, Kind]:
    """Return how each kind of job is run."""
    clicks = partial(run_click, bot)
    return {
        APPLY: Kind(partial(run_changes, bot), at_once=12),
        TIMER: Kind(partial(run_timers, bot), plan=partial(plan, bot)),
        INTERACTION: Kind(clicks, at_once=24),
        UNDO: Kind(clicks, at_once=16),
    }


async def plan(bot: Parts, tx: Transaction) -> None:
    """Draw the open cards and set the timers at startup, because settings may have changed."""
    now = await tx.now()
    for request in await store.shown_as_open(tx, now):
        await write_card(tx, request.id, is_check=True)
        if timer := timer_of(bot, request):
            await put_timer(tx, request.id, now if request.is_late_at(now) else timer[0])


async def run_timers(bot: Parts, job: Job, lease: Lease) -> datetime | None:
    """Fire the request's due timer, if any. Return the time of the next check, if any."""
    async with bot.database.transaction() as tx:
        request, related, listed = await store.and_related(tx, job.subject, is_locked=True)
        next_check = None
        if request is not None:
            work = Work(bot, tx, await tx.now(), [request], listed)
            next_check = await _check(work, request)
            await work.write(related)
        await lease.finish(tx, next_check)
    return next_check


async def _check(work: Work, request: Request) -> datetime | None:
    if request.state is State.PENDING:
        # Settings are compared again only when someone clicks a button.
        current = await current_list(work.tx, request, work.listed)
        reviewed = review(request, request.flow, FlowPolicy(), work.at, current)
        if reviewed.news or reviewed.is_over:
            work.ask_again(reviewed)
            return work.at
        # The list may spell people differently by now.
        request = reviewed.request
        work.put(request)
    timer = timer_of(work.bot, request)
    if timer is None or timer[0] > work.at:
        return timer and timer[0]
    name = timer[1]
    # If nothing ran for a while, several timers are due. Nobody is reminded of what has expired.
    if request.state is State.PENDING and request.expires_at <= work.at:
        work.close(request, State.EXPIRED)
    elif end := request.next_end:
        work.put(replace(request, result=replace(request.result, announced_until=end)))
        payload = {"ends_at": end.isoformat()}
        work.messages.append(OutboxMessage(f"requester:{request.id}", ENDING, request.id, payload))
    else:
        rung = (*request.round.rung, name.value)
        work.put(replace(request, round=replace(request.round, rung=rung)))
        if name is Timer.ESCALATE:
            to = policy_of(work.bot, request.flow).escalate_to or ()
            work.note(BOT, "request.escalated", request, to=to)
        kind = IN_THREAD[name]
        work.messages.append(OutboxMessage(f"{kind}:{request.id}", kind, request.id))
    return work.at
