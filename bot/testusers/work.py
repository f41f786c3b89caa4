"""The only writer of requests and their people.

Every request, decision, attempt, ending, timer and respelling is a `Work`: a set of changes that
is written in one transaction, and in one order. To avoid deadlocks, every transaction locks the
flow first, then the audit log, then jobs. The flow's lock stands for its lists and requests, which
are loaded after it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy.dialects.postgresql import Insert

from bot.approvals.rules import State, can_move
from bot.flows.rules import Flow
from bot.store import audit, jobs, outbox
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction, insert_into
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.testusers import store
from bot.testusers.parts import Parts, policy_of
from bot.testusers.rules.people import CurrentList, Over
from bot.testusers.rules.requests import THE_BOT, Attempts, Request, Review, Round, review
from bot.testusers.tables import request_people, requests

APPLY, TIMER = "testusers.apply", "testusers.timer"
CARD, OUTCOME, ENDING = "testusers.card", "testusers.outcome", "testusers.ending"
ESCALATION, REMINDER = "testusers.escalation", "testusers.reminder"
# The card of an approved request is only edited once if the change is applied within this time.
APPLIES_WITHIN = timedelta(seconds=1)
AT_ONCE = timedelta(0)
ANNOUNCED_BEFORE = timedelta(hours=1)


class Timer(StrEnum):
    """A timer. Each of them fires once in a round of approval, or once for an end of access."""

    EXPIRE = "expire"
    REMIND = "remind"
    ESCALATE = "escalate"
    ANNOUNCE_END = "announce_end"


def _or_update(adding: Insert) -> Insert:
    """Let a statement that adds a row update the row that has the same primary key, if any."""
    key, columns = [*adding.table.primary_key], adding.table.c
    new = {column.name: adding.excluded[column.name] for column in columns}
    return adding.on_conflict_do_update(index_elements=key, set_=new)


_PUT = _or_update(insert_into(requests))
_PUT_PERSON = _or_update(insert_into(request_people))


def card_key(request_id: str) -> str:
    """Return the outbox key of a request's card."""
    return f"{store.CARD_PREFIX}{request_id}"


async def write_card(
    tx: Transaction, request_id: str, *, delay: timedelta = AT_ONCE, is_check: bool = False
) -> None:
    """Queue the request's card to be posted or updated. A check edits it only if it has changed."""
    payload = {outbox.CHECK: True} if is_check else {}
    await outbox.put(tx, OutboxMessage(card_key(request_id), CARD, request_id, payload), delay)


async def put_apply_job(tx: Transaction, flow: Flow) -> None:
    """Schedule a flow's apply job to run now."""
    job = Job(f"apply:{flow.key}", APPLY, flow.key, await tx.now(), vars(flow))
    await jobs.put(tx, job)


async def put_timer(tx: Transaction, request_id: str, at: datetime) -> None:
    """Schedule a check of a request's timers at this time."""
    await jobs.put(tx, Job(f"timer:{request_id}", TIMER, request_id, at))


async def current_list(tx: Transaction, request: Request, listed: Sequence[str]) -> CurrentList:
    """Return the flow's latest list, with the ends of access of the people in the request."""
    ends = {person.spelling: person.current_end for person in request.people}
    current = CurrentList(listed, ends)
    others = {person.spelling for person in current.spelled(request.left)} - ends.keys()
    if others:
        access = await store.access_for(tx, request.flow.key, others)
        ends |= {spelling: one.ends_at for spelling, one in access.items()}
    return current


def review_now(bot: Parts, request: Request, at: datetime, current: CurrentList) -> Review:
    """Return the effect of applying the request at this time, with the current settings."""
    policy = policy_of(bot, request.flow)
    return review(request, bot.flows.now(request.flow), policy, at, current)


def timer_of(bot: Parts, request: Request) -> tuple[datetime, Timer] | None:
    """Return the time and name of the request's next timer, or None if no timer is left.

    The earliest timer fires first, so no reminder is sent if the request expires before it.
    """
    if request.state is not State.PENDING:
        end = request.next_end
        return (end - ANNOUNCED_BEFORE, Timer.ANNOUNCE_END) if end else None
    asked_at = request.round.asked_at or request.created_at
    times = {
        Timer.EXPIRE: request.expires_at,
        Timer.REMIND: asked_at + timedelta(hours=bot.settings.remind_hours),
    }
    if seconds := policy_of(bot, request.flow).escalate_after_seconds:
        times[Timer.ESCALATE] = asked_at + timedelta(seconds=seconds)
    return min((at, name) for name, at in times.items() if name not in request.round.rung)


class Work:
    """Changes to requests that are collected, and then stored by `write` in one transaction.

    What follows from a change is decided here: cards to redraw, people to tell, jobs to run. The
    transaction has locked the flow, and has then loaded the requests in `loaded`, and maybe the
    flow's latest list. `requests` has the requests that were loaded or put, keyed by ID, with the
    changes collected so far. `entries` of the audit log and `messages` are stored with them.
    """

    def __init__(
        self,
        bot: Parts,
        tx: Transaction,
        at: datetime,
        loaded: Iterable[Request] = (),
        listed: Sequence[str] = (),
    ) -> None:
        self.bot = bot
        self.tx = tx
        self.at = at
        self.listed = listed
        self._stored = {request.id: request for request in loaded}
        self.requests = self._stored.copy()
        self.entries = list[AuditEntry]()
        self.messages = list[OutboxMessage]()
        self._cards: dict[str, None] = {}

    def add(self, loaded: Iterable[Request]) -> None:
        """Add requests that the transaction has loaded. Changes collected so far are kept."""
        for request in loaded:
            if request.id not in self._stored:
                self._stored[request.id] = self.requests[request.id] = request

    async def request(self, request_id: str) -> Request:
        """Return a request with the changes collected so far, which is loaded if necessary."""
        if request_id not in self.requests:
            self.add(await store.requests_with(self.tx, [request_id]))
        return self.requests[request_id]

    async def is_in_doubt(self, request: Request) -> bool:
        """Return True if a POST for this request still has an unknown outcome."""
        post = await store.post_of(self.tx, request.flow.key)
        return post is not None and request.id in post.request_ids

    def put(self, request: Request) -> None:
        """Add a new request, or change one that was returned by `request`.

        Raises:
            ValueError: The request can't have this state, or another version was loaded.
        """
        before = self.requests.get(request.id)
        if before is not None and before.version != request.version:
            raise ValueError("another version of the request is stored")
        state, start = request.state, before.state if before else request.state
        if state is not start and not can_move(start, state):
            raise ValueError(f"a request can't go from {start} to {state}")
        self.requests[request.id] = request

    def note(self, actor: str, action: str, request: Request, **detail: Any) -> None:  # noqa: ANN401
        """Record an action on a request in the audit log."""
        facts = {"flow": request.flow.sid, **detail}
        self.entries.append(AuditEntry(actor, action, request.id, facts))

    def show(self, request_id: str) -> None:
        """Redraw a request's card, even if the request doesn't change."""
        self._cards[request_id] = None

    def close(self, request: Request, state: State, reason: str = "") -> Request:
        """Expire or cancel a request in the bot's name.

        In the audit log, `is_over` is True if the requested access would already have ended.
        """
        closed = request.moved(state, THE_BOT, self.at, reason)
        self.put(closed)
        is_over = request.is_late_at(self.at)
        self.note(BOT, f"request.{state}", request, reason=reason, is_over=is_over)
        return closed

    def ask_again(self, reviewed: Review, actor: str = BOT) -> Request:
        """Ask for a new decision on the request, or expire the request if nothing is left to do."""
        if reviewed.is_over:
            return self.close(self.requests[reviewed.request.id], State.EXPIRED)
        request = reviewed.request
        again = Round(news=reviewed.news, asked_at=request.round.asked_at, rung=request.round.rung)
        expires_at = request.expires_at
        if request.state is not State.PENDING:
            # A new round of approval has its own reminder and escalation.
            again = Round(news=reviewed.news, asked_at=self.at)
            expires_at = self.at + timedelta(hours=self.bot.settings.request_hours)
        requested = replace(
            request.requested,
            without_approval=False,
            card_version=request.requested.card_version + 1,
        )
        moved = replace(
            request,
            state=State.PENDING,
            requested=requested,
            expires_at=expires_at,
            round=again,
            attempts=Attempts(),
        )
        self.put(moved)
        self.note(actor, "request.asked_again", moved, news=reviewed.news)
        return moved

    async def write(self, related: Collection[Request] | None = None) -> None:
        """Store everything that was collected, and queue what follows from it.

        `related` are the other open requests for the same people, if they were loaded.
        """
        changed = list[tuple[Request | None, Request]]()
        rows = list[dict[str, Any]]()
        for request_id, request in self.requests.items():
            before = self._stored.get(request_id)
            if request == before:
                continue
            changed.append((before, request))
            version = request.version + 1 if before else request.version
            await self.tx.write(_PUT, {**store.row_of(request), "version": version})
            stored = before.people if before else ()
            for position, person in enumerate(request.people):
                if person not in stored[position : position + 1]:
                    rows.append(store.person_row(request, position))
        # Access ends before other access to the same entry of the list begins.
        for row in sorted(rows, key=lambda row: row["over"] is None):
            await self.tx.write(_PUT_PERSON, row)
        await audit.append(self.tx, *self.entries)
        for before, request in changed:
            await self._follow(before, request)
        await self._write_related(changed, related)
        for request_id in self._cards:
            shown = self.requests.get(request_id)
            delay = APPLIES_WITHIN if shown and shown.state is State.APPLYING else AT_ONCE
            await write_card(self.tx, request_id, delay=delay)
        for message in self.messages:
            await outbox.put(self.tx, message)

    async def _follow(self, before: Request | None, request: Request) -> None:
        """Queue the jobs and messages that follow from a change to one request."""
        self.show(request.id)
        if before is None or before.state is not request.state:
            if request.undo_of:
                self.show(request.undo_of)
            if timer := timer_of(self.bot, request):
                await put_timer(self.tx, request.id, timer[0])
            if request.state is State.APPLYING:
                await put_apply_job(self.tx, request.flow)
            elif before and request.state is State.PENDING:
                self._tell(request, "asked_again")
            elif before and (
                request.state is not State.CANCELLED or request.round.decided_by == THE_BOT
            ):
                # People know that they cancelled their own request.
                self._tell(request, request.state.value)
        ended = list[str]()
        for old, new in zip(before.people if before else (), request.people, strict=False):
            if old.over is None and new.over in (Over.ENDED, Over.GONE):
                ended.append(new.spelling)
        if ended:
            self._tell(request, "ended", identities=ended)

    def _tell(self, request: Request, event: str, **detail: object) -> None:
        """Queue a message to the requester about an event. Messages are sent in order."""
        payload = {"event": event, **detail}
        message = OutboxMessage(f"requester:{request.id}", OUTCOME, request.id, payload)
        self.messages.append(message)

    async def _write_related(
        self,
        changed: list[tuple[Request | None, Request]],
        related: Collection[Request] | None,
    ) -> None:
        """Check and redraw other pending requests for people whose access or requests changed."""
        spellings = set[str]()
        for before, request in changed:
            was = before.people if before else ()
            if before and before.state is not request.state:
                # A request that isn't pending anymore, or is again, changes what the others say.
                was = () if State.PENDING in {before.state, request.state} else was
            spellings.update(person.spelling for person in request.people if person not in was)
        if not spellings:
            return
        if related is None:
            ids = await store.pending_for(self.tx, changed[0][1].flow.key, spellings)
        else:
            ids = [request.id for request in related if request.state is State.PENDING]
        for request_id in sorted({*ids} - {request.id for _, request in changed}):
            self.show(request_id)
            await put_timer(self.tx, request_id, self.at)
