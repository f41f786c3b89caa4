"""Request timers: one job per request fires the next timer.

The job looks up the request's next timer in a table, so nothing has to be cancelled when the
request is decided.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import itemgetter

from bot.approvals.rules.approval import State
from bot.store import jobs, outbox
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.testusers.rules.requests import Request
from bot.testusers.rules.review import Review, reconsidered
from bot.testusers.setup import THE_BOT, Setup
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
    tell_requester,
    timer_job,
    write_card,
    write_in_thread,
)

# How often a message for a card's thread checks whether the card is posted.
LOOK_FOR_CARD = timedelta(seconds=5)
UNPOSTED_AFTER = timedelta(minutes=1)
ANNOUNCED_BEFORE = timedelta(hours=1)
Bell = Callable[[Transaction, Request, datetime], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer that fires once, in these states.

    `of_posted` is True or False if the card must or must not be in Slack; None if it doesn't
    matter.
    """

    name: str
    states: frozenset[State]
    at: Callable[[Request, Setup], datetime | None]
    of_posted: bool | None = None


def _unposted(request: Request, _: Setup) -> datetime | None:
    return request.shown_since and request.shown_since + UNPOSTED_AFTER


def _remind(request: Request, setup: Setup) -> datetime | None:
    at = request.created_at + timedelta(hours=setup.rules.remind_hours)
    return at if at < request.expires_at else None


def _escalate(request: Request, setup: Setup) -> datetime | None:
    seconds = setup.flow_rules(request.flow.sid).escalate_after_seconds
    return request.created_at + timedelta(seconds=seconds) if seconds else None


def _announce_end(request: Request, _: Setup) -> datetime | None:
    return request.next_end and request.next_end - ANNOUNCED_BEFORE


_PENDING = frozenset({State.PENDING})
_OPEN = frozenset({State.PENDING, State.SCHEDULED, State.APPLIED, State.FAILED})
TIMERS = (
    Timer("unposted", _OPEN, _unposted, of_posted=False),
    Timer("remind", _PENDING, _remind, of_posted=True),
    Timer("escalate", _PENDING, _escalate, of_posted=True),
    Timer("expire", _PENDING, lambda request, _: request.expires_at),
    Timer("start", frozenset({State.SCHEDULED}), lambda request, _: request.requested.starts_at),
    Timer("announce_end", frozenset({State.APPLIED, State.FAILED}), _announce_end),
)


def first_look(request: Request, setup: Setup) -> datetime:
    """Return the time of the first check of a new request's timers."""
    rings = [next_ring(request, setup, is_posted=is_posted) for is_posted in (False, True)]
    return min((ring[0] for ring in rings if ring), default=request.expires_at)


def next_ring(request: Request, setup: Setup, *, is_posted: bool) -> tuple[datetime, str] | None:
    """Return the time and name of the first timer for the request's state that has not fired yet.

    `is_posted` is True if the request's card is in Slack; messages in the card's thread wait for
    the card.
    """
    rings = [
        (at, timer.name)
        for timer in TIMERS
        if request.state in timer.states
        and timer.name not in request.progress.rung
        and timer.of_posted in (None, is_posted)
        and (at := timer.at(request, setup)) is not None
    ]
    return min(rings, key=itemgetter(0), default=None)


class Timers:
    """Runs the jobs `timer:<request>`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._bells: Mapping[str, Bell] = {
            "unposted": self._unposted,
            "remind": self._remind,
            "escalate": self._escalate,
            "expire": self._expire,
            "start": self._start,
            "announce_end": self._announce_end,
        }

    async def plan(self, tx: Transaction) -> None:
        """Schedule every request's timers according to the current settings."""
        now = await tx.now()
        for request_id in await requests.ids_in(tx, {State.PENDING, State.SCHEDULED}):
            await put_timer(tx, request_id, now)
        for request_id in await grants.ending_after(tx, now):
            await jobs.ensure(tx, timer_job(request_id, now))

    async def run(self, job: Job, _lease: Lease) -> datetime | None:
        """Fire the due timer; return the time of the next timer, or None if none is left."""
        async with self._setup.database.transaction() as tx:
            request = await requests.load(tx, job.subject, lock=True)
            if request is None:
                return None
            now = await tx.now()
            if await self._is_redrawn(tx, request, now):
                return now
            is_posted = await outbox.sent_card(tx, card_key(request.id)) is not None
            ring = next_ring(request, self._setup, is_posted=is_posted)
            if ring is not None and ring[0] <= now:
                await self._bells[ring[1]](tx, request, now)
                return now
            times = [ring[0]] if ring else []
            in_thread = next_ring(request, self._setup, is_posted=True)
            if in_thread is not None and in_thread != ring:
                times.append(max(in_thread[0], now + LOOK_FOR_CARD))
            return min(times, default=None)

    async def _is_redrawn(self, tx: Transaction, request: Request, now: datetime) -> bool:
        """Redraw a pending card if grants have changed its effect.

        Changes of settings are shown when somebody acts on the card.
        """
        if request.state not in {State.PENDING, State.SCHEDULED}:
            return False
        review = await self._setup.review(tx, request, reads_settings=False)
        if review.request.requested.is_shown_as(request.requested):
            return False
        await self._reconsider(tx, request, review, now)
        return True

    async def _reconsider(
        self, tx: Transaction, request: Request, review: Review, now: datetime
    ) -> None:
        hours = self._setup.rules.request_hours
        moved = reconsidered(request, review, now, hours, THE_BOT)
        if moved.state is State.EXPIRED:
            entry = expired_entry(moved)
        elif review.news:
            entry = asked_again_entry(BOT, moved)
        else:
            await requests.replace(tx, moved)
            await write_card(tx, request.id)
            return
        await apply_transition(tx, self._setup.audit, request, moved, entry)

    async def _unposted(self, tx: Transaction, request: Request, _now: datetime) -> None:
        await _rung(tx, request, "unposted")
        await tell_requester(tx, request, "unposted")

    async def _remind(self, tx: Transaction, request: Request, _now: datetime) -> None:
        await _rung(tx, request, "remind")
        await write_in_thread(tx, REMINDER, request.id)

    async def _escalate(self, tx: Transaction, request: Request, _now: datetime) -> None:
        await _rung(tx, request, "escalate")
        detail = {
            "flow": request.flow.sid,
            "to": self._setup.flow_rules(request.flow.sid).escalate_to,
        }
        entry = AuditEntry(BOT, "request.escalated", request.id, detail)
        await self._setup.audit.append(tx, entry)
        await write_in_thread(tx, ESCALATION, request.id)

    async def _expire(self, tx: Transaction, request: Request, now: datetime) -> None:
        expired = request.moved(State.EXPIRED, THE_BOT, now, request.progress)
        entry = expired_entry(expired)
        await apply_transition(tx, self._setup.audit, request, expired, entry)

    async def _start(self, tx: Transaction, request: Request, now: datetime) -> None:
        review = await self._setup.review(tx, request)
        if review.news:
            await self._reconsider(tx, request, review, now)
            return
        started = replace(request, state=State.APPLYING)
        entry = AuditEntry(BOT, "request.started", request.id, {"flow": request.flow.sid})
        await apply_transition(tx, self._setup.audit, request, started, entry)

    async def _announce_end(self, tx: Transaction, request: Request, now: datetime) -> None:
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
