"""State changes of requests, the jobs and messages that follow from them, and the timers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import itemgetter

from bot.approvals.rules import State, can_move
from bot.store import audit, jobs, outbox
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.testusers import store
from bot.testusers.parts import Parts
from bot.testusers.rules.changes import apply_changes
from bot.testusers.rules.requests import THE_BOT, Request
from bot.testusers.rules.review import Review, reconsidered, review

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
    """Return the audit log entry for an expired request.

    A request also expires if the requested access would already have ended.
    """
    at = expired.decided_at or expired.expires_at
    is_over = not expired.left.removals and not expired.change_at(at).additions
    return AuditEntry(BOT, "request.expired", expired.id, {"is_over": is_over})


async def is_in_doubt(tx: Transaction, request: Request) -> bool:
    """Return True while it isn't known whether a POST for this request arrived."""
    post = await store.post_of(tx, request.flow.key)
    return post is not None and post.is_of(request.id)


async def write_card(tx: Transaction, request_id: str) -> None:
    """Post the request's card, or redraw it and all its copies."""
    key = card_key(request_id)
    for shown in (key, *await outbox.copies(tx, key)):
        await outbox.put(tx, OutboxMessage(shown, CARD, request_id))


async def write_related_cards(tx: Transaction, request: Request) -> None:
    """Redraw the cards of other open requests for the same people, as they mention each other."""
    for other in await store.naming_the_same(tx, request):
        await write_card(tx, other.id)


async def write_in_thread(tx: Transaction, kind: str, request_id: str) -> None:
    """Post or edit a `REMINDER` or an `ESCALATION` in the card's thread."""
    await outbox.put(tx, OutboxMessage(f"{kind}:{request_id}", kind, request_id))


async def tell_requester(tx: Transaction, request: Request, event: str, **detail: object) -> None:
    """Send the requester a message about an event, after all earlier ones."""
    payload = {"event": event, **detail}
    await outbox.put(tx, OutboxMessage(f"requester:{request.id}", OUTCOME, request.id, payload))


async def tell_thread(tx: Transaction, request: Request) -> None:
    """Post a failure in the card's thread, because an edited card notifies nobody.

    Each failure gets its own message, which is edited if the request is applied after all.
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
) -> Review:
    """Return what the request would do, now or at an earlier time.

    `listed` is the flow's list if it was just read. Otherwise, the review is based on the list that
    the request was last compared with, plus the bot's own changes since then.
    """
    key, requested = request.flow.key, request.requested
    granted = await store.grants_of_flow(tx, key)
    if listed is None:
        own = await store.changes_after(tx, key, requested.seen_change_id)
        listed = apply_changes(requested.seen, own)
    flow, policy = bot.flows.now(request.flow), bot.people.policy.of_flow(request.flow.sid)
    at, change_id = at or await tx.now(), await store.latest_change_id(tx, key)
    return review(request, flow, policy, at, listed, change_id, store.timed(granted))


async def put_apply_job(tx: Transaction, flow_key: str) -> None:
    """Schedule the job that applies a flow's changes to run now, and keep its payload."""
    key = f"apply:{flow_key}"
    known = await jobs.payload_of(tx, key)
    await jobs.put(tx, Job(key, APPLY, flow_key, await tx.now(), known))


async def put_timer(tx: Transaction, request_id: str, at: datetime) -> None:
    """Schedule a check of a request's timers."""
    await jobs.put(tx, Job(f"timer:{request_id}", TIMER, request_id, at))


async def apply_transition(
    tx: Transaction,
    old: Request,
    new: Request,
    entry: AuditEntry,
) -> None:
    """Write the request's new state and its consequences, unless it has changed since `old`.

    To avoid deadlocks, every transaction locks requests first, then the audit log, then jobs.
    """
    if new.state is not old.state and not can_move(old.state, new.state):
        raise ValueError(f"a request cannot go from {old.state} to {new.state}")
    if not await store.save_request(tx, replace(new, version=old.version)):
        return
    undone_id = new.requested.undo_of if new.state in _GIVEN_UP else None
    undone = await store.load_request(tx, undone_id, lock=True) if undone_id else None
    if undone is not None and undone.progress.undone_by == new.id:
        progress = replace(undone.progress, undone_by=None)
        await store.save_request(tx, replace(undone, progress=progress))
    await audit.append(tx, entry)
    await write_card(tx, new.id)
    if undone_id:
        await write_card(tx, undone_id)
    if new.state is not old.state:
        await _follow(tx, old, new)


async def ask_again(
    tx: Transaction,
    request: Request,
    review: Review,
    request_hours: float,
    actor: str = BOT,
) -> Request:
    """Ask for a new decision on what the request does now; it expires if nothing is left to do."""
    moved = reconsidered(request, review, await tx.now(), request_hours, THE_BOT)
    detail = {"flow": request.flow.sid, "news": moved.progress.news}
    entry = AuditEntry(actor, "request.asked_again", request.id, detail)
    if moved.state is State.EXPIRED:
        entry = expired_entry(moved)
    await apply_transition(tx, request, moved, entry)
    return moved


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


# How often a message for the card's thread checks whether the card has been posted.
LOOK_FOR_CARD = timedelta(seconds=5)
ANNOUNCED_BEFORE = timedelta(hours=1)
UNPOSTED_AFTER = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer that fires once while the request is in one of `states`.

    `of_posted` is True if the timer needs the card to be in Slack, False if it needs the card to be
    missing, and None if the card doesn't matter.
    """

    name: str
    states: frozenset[State]
    at: Callable[[Parts, Request], datetime | None]
    of_posted: bool | None = None


def _unposted_at(_: Parts, request: Request) -> datetime | None:
    shown_at: datetime | None = request.created_at
    if request.requested.without_approval:
        shown_at = request.took_effect.at if request.took_effect else request.decided_at
    return shown_at and shown_at + UNPOSTED_AFTER


def _escalate_at(bot: Parts, request: Request) -> datetime | None:
    seconds = bot.people.policy.of_flow(request.flow.sid).escalate_after_seconds
    return request.created_at + timedelta(seconds=seconds) if seconds else None


_PENDING, _SCHEDULED = frozenset({State.PENDING}), frozenset({State.SCHEDULED})
_DONE = frozenset({State.APPLIED, State.FAILED})
TIMERS = (
    Timer("unposted", _PENDING | _SCHEDULED | _DONE, _unposted_at, of_posted=False),
    # If two timers are due, the first one fires, so nobody is reminded of an expired request.
    Timer("expire", _PENDING, lambda _, request: request.expires_at),
    Timer(
        "remind",
        _PENDING,
        lambda bot, request: request.created_at + timedelta(hours=bot.settings.remind_hours),
        of_posted=True,
    ),
    Timer("escalate", _PENDING, _escalate_at, of_posted=True),
    Timer("start", _SCHEDULED, lambda _, request: request.requested.starts_at),
    Timer(
        "announce_end",
        _DONE,
        lambda _, request: request.next_end and request.next_end - ANNOUNCED_BEFORE,
    ),
)


def next_ring(bot: Parts, request: Request, *, is_posted: bool) -> tuple[datetime, str] | None:
    """Return the time and name of the request's next timer, or None.

    `is_posted` is True if the request's card is in Slack.
    """
    rings = [
        (at, timer.name)
        for timer in TIMERS
        if request.state in timer.states
        and timer.name not in request.progress.rung
        and timer.of_posted in (None, is_posted)
        and (at := timer.at(bot, request)) is not None
    ]
    return min(rings, key=itemgetter(0), default=None)


async def plan_timers(tx: Transaction) -> None:
    """Check the timers of all requests, because settings may have changed before the start."""
    now = await tx.now()
    waiting = await store.request_ids_in(tx, {State.PENDING, State.SCHEDULED})
    for request_id in (*waiting, *await store.granting_requests(tx, now)):
        await put_timer(tx, request_id, now)


async def run_timers(bot: Parts, job: Job, _lease: Lease) -> datetime | None:
    """Fire a timer that is due; return when to check again, or None if no timer is left."""
    async with bot.database.transaction() as tx:
        request = await store.load_request(tx, job.subject, lock=True)
        if request is None:
            return None
        now = await tx.now()
        is_posted = await outbox.sent_card(tx, card_key(request.id)) is not None
        ring = next_ring(bot, request, is_posted=is_posted)
        if ring is not None and ring[0] <= now:
            await _ring(bot, tx, request, ring[1], now)
            return now
        times = [ring[0]] if ring else []
        in_thread = next_ring(bot, request, is_posted=True)
        if in_thread is not None and in_thread != ring:
            times.append(max(in_thread[0], now + LOOK_FOR_CARD))
        return min(times, default=None)


async def _ring(bot: Parts, tx: Transaction, request: Request, name: str, now: datetime) -> None:
    if name == "expire":
        expired = request.moved(State.EXPIRED, THE_BOT, now, request.progress)
        await apply_transition(tx, request, expired, expired_entry(expired))
    elif name == "start":
        review = await review_of(bot, tx, request)
        if review.news:
            await ask_again(tx, request, review, bot.settings.request_hours)
            return
        started = replace(request, state=State.APPLYING)
        entry = AuditEntry(BOT, "request.started", request.id, {"flow": request.flow.sid})
        await apply_transition(tx, request, started, entry)
    else:
        await _tell(bot, tx, request, name, now)


async def _tell(bot: Parts, tx: Transaction, request: Request, name: str, now: datetime) -> None:
    """Send a timer's message and record that it was sent."""
    progress, end = request.progress, request.next_end
    if name == "announce_end":
        progress = replace(progress, announced_until=end or progress.announced_until)
    else:
        progress = replace(progress, rung=(*progress.rung, name))
    await store.save_request(tx, replace(request, progress=progress))
    if name == "unposted":
        await tell_requester(tx, request, name)
    elif name == "remind":
        await write_in_thread(tx, REMINDER, request.id)
    elif name == "escalate":
        to = bot.people.policy.of_flow(request.flow.sid).escalate_to or ()
        detail = {"flow": request.flow.sid, "to": to}
        await audit.append(tx, AuditEntry(BOT, "request.escalated", request.id, detail))
        await write_in_thread(tx, ESCALATION, request.id)
    elif end is not None and now < end:
        payload = {"ends_at": end.isoformat()}
        key = f"requester:{request.id}"
        await outbox.put(tx, OutboxMessage(key, ENDING, request.id, payload))
