"""Request timers: one job per request fires the next timer.

The job looks up the request's next timer in a table, so nothing has to be cancelled when the
request is decided.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import itemgetter

from bot.approvals.rules import State
from bot.store import jobs, outbox
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.testusers.flows import THE_BOT, Parts
from bot.testusers.rules.requests import Request
from bot.testusers.rules.review import Review, reconsidered
from bot.testusers.store import grants, requests
from bot.testusers.transitions import (
    ENDING,
    ESCALATION,
    REMINDER,
    apply_transition,
    asked_again_entry,
    card_key,
    expired_entry,
    put_timer,
    review_of,
    tell_requester,
    timer_job,
    write_card,
    write_in_thread,
)

# How often a message for a card's thread checks whether the card is posted.
LOOK_FOR_CARD = timedelta(seconds=5)
UNPOSTED_AFTER = timedelta(minutes=1)
ANNOUNCED_BEFORE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer that fires once, in these states: `ring` runs at the time that `at` returns.

    `of_posted` is True or False if the card must or must not be in Slack; None if it doesn't
    matter.
    """

    name: str
    states: frozenset[State]
    at: Callable[[Parts, Request], datetime | None]
    ring: Callable[[Parts, Transaction, Request, datetime], Awaitable[None]]
    of_posted: bool | None = None


def first_look(bot: Parts, request: Request) -> datetime:
    """Return the time of the first check of a new request's timers."""
    rings = [next_ring(bot, request, is_posted=is_posted) for is_posted in (False, True)]
    return min((ring[0] for ring in rings if ring), default=request.expires_at)


def next_ring(bot: Parts, request: Request, *, is_posted: bool) -> tuple[datetime, Timer] | None:
    """Return the time of the first timer for the request's state that has not fired, and the timer.

    `is_posted` is True if the request's card is in Slack; messages in the card's thread wait for
    the card.
    """
    rings = [
        (at, timer)
        for timer in TIMERS
        if request.state in timer.states
        and timer.name not in request.progress.rung
        and timer.of_posted in (None, is_posted)
        and (at := timer.at(bot, request)) is not None
    ]
    return min(rings, key=itemgetter(0), default=None)


async def plan(tx: Transaction) -> None:
    """Schedule every request's timers according to the current settings."""
    now = await tx.now()
    for request_id in await requests.ids_in(tx, {State.PENDING, State.SCHEDULED}):
        await put_timer(tx, request_id, now)
    for request_id in await grants.ending_after(tx, now):
        await jobs.ensure(tx, timer_job(request_id, now))


async def run(bot: Parts, job: Job, _lease: Lease) -> datetime | None:
    """Fire the due timer; return the time of the next timer, or None if none is left."""
    async with bot.database.transaction() as tx:
        request = await requests.load(tx, job.subject, lock=True)
        if request is None:
            return None
        now = await tx.now()
        if request.state in {State.PENDING, State.SCHEDULED}:
            # Changes of settings are shown when somebody acts on the card.
            review = await review_of(bot, tx, request, reads_settings=False)
            if not review.request.requested.is_shown_as(request.requested):
                await _reconsider(bot, tx, request, review, now)
                return now
        is_posted = await outbox.sent_card(tx, card_key(request.id)) is not None
        ring = next_ring(bot, request, is_posted=is_posted)
        if ring is not None and ring[0] <= now:
            await ring[1].ring(bot, tx, request, now)
            return now
        times = [ring[0]] if ring else []
        in_thread = next_ring(bot, request, is_posted=True)
        if in_thread is not None and in_thread != ring:
            times.append(max(in_thread[0], now + LOOK_FOR_CARD))
        return min(times, default=None)


async def _reconsider(
    bot: Parts, tx: Transaction, request: Request, review: Review, now: datetime
) -> None:
    moved = reconsidered(request, review, now, bot.settings.request_hours, THE_BOT)
    if moved.state is State.EXPIRED:
        entry = expired_entry(moved)
    elif review.news:
        entry = asked_again_entry(BOT, moved)
    else:
        await requests.replace(tx, moved)
        await write_card(tx, request.id)
        return
    await apply_transition(tx, bot.audit, request, moved, entry)


async def _unposted(_bot: Parts, tx: Transaction, request: Request, _now: datetime) -> None:
    await _rung(tx, request, "unposted")
    await tell_requester(tx, request, "unposted")


def _remind_at(bot: Parts, request: Request) -> datetime | None:
    at = request.created_at + timedelta(hours=bot.settings.remind_hours)
    return at if at < request.expires_at else None


async def _remind(_bot: Parts, tx: Transaction, request: Request, _now: datetime) -> None:
    await _rung(tx, request, "remind")
    await write_in_thread(tx, REMINDER, request.id)


def _escalate_at(bot: Parts, request: Request) -> datetime | None:
    seconds = bot.people.policy.of_flow(request.flow.sid).escalate_after_seconds
    return request.created_at + timedelta(seconds=seconds) if seconds else None


async def _escalate(bot: Parts, tx: Transaction, request: Request, _now: datetime) -> None:
    await _rung(tx, request, "escalate")
    to = bot.people.policy.of_flow(request.flow.sid).escalate_to or ()
    detail = {"flow": request.flow.sid, "to": to}
    await bot.audit.append(tx, AuditEntry(BOT, "request.escalated", request.id, detail))
    await write_in_thread(tx, ESCALATION, request.id)


async def _expire(bot: Parts, tx: Transaction, request: Request, now: datetime) -> None:
    expired = request.moved(State.EXPIRED, THE_BOT, now, request.progress)
    await apply_transition(tx, bot.audit, request, expired, expired_entry(expired))


async def _start(bot: Parts, tx: Transaction, request: Request, now: datetime) -> None:
    review = await review_of(bot, tx, request)
    if review.news:
        await _reconsider(bot, tx, request, review, now)
        return
    started = replace(request, state=State.APPLYING)
    entry = AuditEntry(BOT, "request.started", request.id, {"flow": request.flow.sid})
    await apply_transition(tx, bot.audit, request, started, entry)


async def _announce_end(_bot: Parts, tx: Transaction, request: Request, now: datetime) -> None:
    end = request.next_end
    await _rung(tx, request, "", announced_until=end)
    if end is not None and now < end:
        payload = {"ends_at": end.isoformat()}
        key = f"requester:{request.id}"
        await outbox.put(tx, OutboxMessage(key, ENDING, request.id, payload))


async def _rung(
    tx: Transaction, request: Request, name: str, announced_until: datetime | None = None
) -> None:
    progress = request.progress
    rung = (*progress.rung, name) if name else progress.rung
    announced_until = announced_until or progress.announced_until
    progress = replace(progress, rung=rung, announced_until=announced_until)
    await requests.replace(tx, replace(request, progress=progress))


_PENDING, _SCHEDULED = frozenset({State.PENDING}), frozenset({State.SCHEDULED})
_DONE = frozenset({State.APPLIED, State.FAILED})
TIMERS = (
    Timer(
        "unposted",
        _PENDING | _SCHEDULED | _DONE,
        lambda _, request: request.shown_since and request.shown_since + UNPOSTED_AFTER,
        _unposted,
        of_posted=False,
    ),
    Timer("remind", _PENDING, _remind_at, _remind, of_posted=True),
    Timer("escalate", _PENDING, _escalate_at, _escalate, of_posted=True),
    Timer("expire", _PENDING, lambda _, request: request.expires_at, _expire),
    Timer("start", _SCHEDULED, lambda _, request: request.requested.starts_at, _start),
    Timer(
        "announce_end",
        _DONE,
        lambda _, request: request.next_end and request.next_end - ANNOUNCED_BEFORE,
        _announce_end,
    ),
)
