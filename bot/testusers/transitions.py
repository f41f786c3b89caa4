"""State changes of requests, the jobs and messages that they lead to, and timers."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from bot.approvals.rules import FlowPolicy, State, can_move
from bot.errors import Conflict
from bot.store import audit, jobs, outbox
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.testusers import store
from bot.testusers.messages.phrases import outdated
from bot.testusers.parse.form import ShownRequest
from bot.testusers.parts import Parts
from bot.testusers.rules.changes import apply_changes
from bot.testusers.rules.requests import THE_BOT, Request
from bot.testusers.rules.review import CurrentList, Review, reconsidered, review

APPLY, TIMER = "testusers.apply", "testusers.timer"
ESCALATION, FAILURE, ENDING = "testusers.escalation", "testusers.failure", "testusers.ending"
CARD, OUTCOME, REMINDER = "testusers.card", "testusers.outcome", "testusers.reminder"
REFUSED = "testusers.refused"
# The key in an apply job's payload for the people who were missing from the list.
MISSING = "gone"
_GIVEN_UP = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED})
OUTCOME_STATES = frozenset({State.APPLIED, State.FAILED, State.DENIED, State.EXPIRED})


def card_key(request_id: str) -> str:
    """Return the outbox key of a request's card."""
    return f"{store.CARD_PREFIX}{request_id}"


def expired_entry(expired: Request) -> AuditEntry:
    """Return the audit log entry for an expired request.

    The entry's `is_over` is True if the requested access would already have ended.
    """
    is_over = expired.is_late_at(expired.decided_at or expired.expires_at)
    return AuditEntry(BOT, "request.expired", expired.id, {"is_over": is_over})


async def is_in_doubt(tx: Transaction, request: Request) -> bool:
    """Return True if a POST for this request still has an unknown outcome."""
    post = await store.post_of(tx, request.flow.key)
    return post is not None and post.is_of(request.id)


async def write_card(tx: Transaction, request_id: str) -> None:
    """Queue the request's card to be posted or updated."""
    await outbox.put(tx, OutboxMessage(card_key(request_id), CARD, request_id))


async def require_current(bot: Parts, request: Request, shown: ShownRequest) -> None:
    """Raise Conflict if a clicked card is outdated, and bring the request's card up to date."""
    if shown.version == request.requested.card_version:
        return
    async with bot.database.transaction() as tx:
        await write_card(tx, request.id)
    raise Conflict(outdated(request, shown.version))


async def write_related_cards(
    tx: Transaction, request: Request, waiting: Sequence[Request]
) -> None:
    """Redraw the cards of those waiting requests that affect any of the same people."""
    for other in waiting:
        if other.names_the_same(request):
            await write_card(tx, other.id)


def _thread_key(kind: str, request: Request) -> str:
    """Return the outbox key of a `REMINDER` or an `ESCALATION` of this round of approval."""
    asked_at = request.round.asked_at
    return f"{kind}:{request.id}" + (f":{asked_at.isoformat()}" if asked_at else "")


async def _write_in_thread(tx: Transaction, kind: str, request: Request) -> None:
    """Queue a `REMINDER` or an `ESCALATION` to be posted or edited in the card's thread."""
    await outbox.put(tx, OutboxMessage(_thread_key(kind, request), kind, request.id))


async def tell_requester(tx: Transaction, request: Request, event: str, **detail: object) -> None:
    """Queue a message to the requester about an event. Messages are sent in order."""
    payload = {"event": event, **detail}
    await outbox.put(tx, OutboxMessage(f"requester:{request.id}", OUTCOME, request.id, payload))


async def tell_thread(tx: Transaction, request: Request) -> None:
    """Report a failure in the card's thread, because editing the card notifies nobody.

    Each failure gets its own message, which is edited when the request moves on.
    """
    keys = [f"{FAILURE}:{request.id}:{n}" for n in range(len(request.attempts.retries) + 1)]
    if request.state is State.FAILED:
        shown = [] if request.requested.without_approval else keys[-1:]
    else:
        shown = await outbox.written(tx, keys)
    for key in shown:
        await outbox.put(tx, OutboxMessage(key, FAILURE, request.id))


async def review_of(bot: Parts, tx: Transaction, request: Request) -> Review:
    """Return the effect of applying the request now, with the current settings."""
    return review_now(bot, request, await tx.now(), await _current(tx, request))


def review_now(bot: Parts, request: Request, at: datetime, current: CurrentList) -> Review:
    """Return the effect of applying the request at this time, with the current settings."""
    policy = bot.people.policy.of_flow(request.flow.sid)
    return review(request, bot.flows.now(request.flow), policy, at, current)


async def _current(tx: Transaction, request: Request) -> CurrentList:
    """Return the list that the request was compared with, after the bot's own changes since."""
    key, requested = request.flow.key, request.requested
    own = await store.changes_after(tx, key, requested.seen_change_id)
    listed = apply_changes(requested.seen, [recorded.change for recorded in own])
    return CurrentList(listed, own, await store.grants_of_flow(tx, key))


async def put_apply_job(tx: Transaction, flow_key: str, missing: Sequence[str] = ()) -> None:
    """Schedule a flow's apply job to run now, without forgetting what it has noted.

    `missing` lists people with a grant who weren't on the list just now. The job checks them again.
    """
    job = Job(f"apply:{flow_key}", APPLY, flow_key, await tx.now())
    if missing:
        known = await jobs.payload_of(tx, job.key)
        since = dict.fromkeys(missing, job.due_at.isoformat()) | missing_since(known)
        job = replace(job, payload={MISSING: since})
    await jobs.put(tx, job, keeps_payload=not missing)


def missing_since(payload: Mapping[str, Any]) -> dict[str, str]:
    """Map the people whom an apply job has found missing from the list to the time of that."""
    known = payload.get(MISSING)
    # Earlier versions stored a list without times.
    return known if isinstance(known, dict) else {}


async def put_timer(tx: Transaction, request_id: str, at: datetime) -> None:
    """Schedule a check of a request's timers at this time."""
    await jobs.put(tx, Job(f"timer:{request_id}", TIMER, request_id, at))


async def put_timers_of(tx: Transaction, flow_key: str, identities: AbstractSet[str]) -> None:
    """Schedule an immediate timer check for open requests that affect any of these people."""
    for request in (
        await store.requests_in(tx, State.PENDING, flow_key=flow_key) if identities else ()
    ):
        if not identities.isdisjoint(request.requested.change.identities):
            await put_timer(tx, request.id, await tx.now())


async def apply_transition(
    tx: Transaction,
    old: Request,
    new: Request,
    entry: AuditEntry,
) -> None:
    """Store a request's new state and queue its messages and jobs, unless `old` is outdated.

    To avoid deadlocks, every transaction locks requests first, then the audit log, then jobs.
    """
    if new.state is not old.state and not can_move(old.state, new.state):
        raise ValueError(f"a request cannot go from {old.state} to {new.state}")
    if not await store.save_request(tx, replace(new, version=old.version)):
        return
    undone_id = new.requested.undo_of if new.state in _GIVEN_UP else None
    undone = await store.load_request(tx, undone_id, lock=True) if undone_id else None
    if undone is not None and undone.result.undone_by == new.id:
        result = replace(undone.result, undone_by=None)
        await store.save_request(tx, replace(undone, result=result))
    await audit.append(tx, entry)
    await write_card(tx, new.id)
    if undone_id:
        await write_card(tx, undone_id)
    if new.state is not old.state:
        await _follow(tx, old, new)


async def _follow(tx: Transaction, old: Request, new: Request) -> None:
    states = {old.state, new.state}
    if new.state is not State.APPLYING:
        await tell_thread(tx, new)
    if State.PENDING in states:
        waiting = await store.requests_in(tx, State.PENDING, flow_key=new.flow.key)
        await write_related_cards(tx, new, waiting)
    if old.state is State.PENDING:
        for name, kind in (("remind", REMINDER), ("escalate", ESCALATION)):
            if name in old.round.rung:
                await _write_in_thread(tx, kind, old)
    if new.state is State.PENDING:
        await put_timer(tx, new.id, await tx.now())
    if new.state is State.APPLYING:
        await put_apply_job(tx, new.flow.key)
    if new.state is State.PENDING:
        await tell_requester(tx, new, "asked_again")
    elif new.state in OUTCOME_STATES or new.decided_by == THE_BOT:
        await tell_requester(tx, new, new.state.value)


async def ask_again(
    tx: Transaction,
    request: Request,
    review: Review,
    request_hours: float,
    actor: str = BOT,
) -> Request:
    """Ask for a new decision on the request, or expire the request if nothing is left to do."""
    moved = reconsidered(request, review, await tx.now(), request_hours, THE_BOT)
    detail = {"flow": request.flow.sid, "news": moved.round.news}
    entry = AuditEntry(actor, "request.asked_again", request.id, detail)
    if moved.state is State.EXPIRED:
        entry = expired_entry(moved)
    await apply_transition(tx, request, moved, entry)
    return moved


# States in which a card has buttons or may get buttons later.
OPEN_STATES = frozenset({State.PENDING, State.APPLYING, State.FAILED})
# How often to check whether the card is posted while a message for its thread is waiting.
LOOK_FOR_CARD = timedelta(seconds=5)
UNPOSTED_AFTER = timedelta(minutes=1)
ANNOUNCED_BEFORE = timedelta(hours=1)


def next_ring(bot: Parts, request: Request, *, is_posted: bool) -> tuple[datetime, str] | None:
    """Return the time and name of the request's next timer, or None if no timer is left.

    Each timer fires once. Reminders and escalations wait until the request's card is in Slack
    (`is_posted`), because they appear in its thread. The `unposted` timer tells the requester that
    the card hasn't been posted yet.
    """
    asked_at, policy = (
        request.round.asked_at or request.created_at,
        bot.people.policy.of_flow(request.flow.sid),
    )
    times: dict[str, datetime | None] = {}
    if request.state is State.PENDING:
        # The earliest timer fires first, so no reminder is sent if the request expires before it.
        times["expire"] = request.expires_at
        if is_posted:
            times["remind"] = asked_at + timedelta(hours=bot.settings.remind_hours)
            if seconds := policy.escalate_after_seconds:
                times["escalate"] = asked_at + timedelta(seconds=seconds)
    elif end := request.next_end:
        times["announce_end"] = end - ANNOUNCED_BEFORE
    has_card = request.state not in {*_GIVEN_UP, State.APPLYING}
    if has_card and not is_posted and request.shown_since:
        times["unposted"] = request.shown_since + UNPOSTED_AFTER
    rings = [(at, name) for name, at in times.items() if at and name not in request.round.rung]
    return min(rings, key=itemgetter(0), default=None)


async def plan(tx: Transaction) -> None:
    """Redraw the open cards and check the timers at startup, because settings may have changed."""
    now = await tx.now()
    for request in await store.requests_in(tx, *OPEN_STATES):
        # A change without approval gets a card only once it's applied or has failed.
        if request.state is not State.APPLYING or not request.requested.without_approval:
            await write_card(tx, request.id)
        if request.state is State.PENDING:
            await put_timer(tx, request.id, now)
    for request_id in await store.granting_requests(tx, now):
        await put_timer(tx, request_id, now)


async def run_timers(bot: Parts, job: Job, lease: Lease) -> datetime | None:
    """Fire the request's due timer, if any. Return the time of the next check, if any."""
    async with bot.database.transaction() as tx:
        next_check = await _check_timers(bot, tx, job.subject)
        await lease.finish(tx, next_check)
    return next_check


async def _check_timers(bot: Parts, tx: Transaction, request_id: str) -> datetime | None:
    request = await store.load_request(tx, request_id, lock=True)
    if request is None:
        return None
    now = await tx.now()
    if request.state is State.PENDING:
        # Settings are compared again only when someone clicks a button.
        found = review(request, request.flow, FlowPolicy(), now, await _current(tx, request))
        if found.news or found.is_over:
            await ask_again(tx, request, found, bot.settings.request_hours)
            return now
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
    flow, end = request.flow, request.next_end
    if name == "expire":
        expired = request.moved(State.EXPIRED, THE_BOT, now)
        await apply_transition(tx, request, expired, expired_entry(expired))
        return
    if name == "announce_end":
        result = request.result
        result = replace(result, announced_until=end or result.announced_until)
        request = replace(request, result=result)
    else:
        rung = replace(request.round, rung=(*request.round.rung, name))
        request = replace(request, round=rung)
    await store.save_request(tx, request)
    if name == "escalate":
        to = bot.people.policy.of_flow(flow.sid).escalate_to or ()
        detail = {"flow": flow.sid, "to": to}
        await audit.append(tx, AuditEntry(BOT, "request.escalated", request.id, detail))
        await _write_in_thread(tx, ESCALATION, request)
    elif name == "remind":
        await _write_in_thread(tx, REMINDER, request)
    elif name == "unposted":
        await tell_requester(tx, request, name)
    elif end is not None and now < end:
        payload, key = {"ends_at": end.isoformat()}, f"requester:{request.id}"
        await outbox.put(tx, OutboxMessage(key, ENDING, request.id, payload))
