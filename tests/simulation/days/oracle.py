"""Checks the results of a simulated day against the audit log, which records every event."""

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

from sqlalchemy import Table, select

from bot.quotas.incidents import NOTE
from bot.quotas.store.incidents import CARD_PREFIX
from bot.quotas.tables import incidents
from bot.slack.sender import MESSAGE_NAMESPACE
from bot.store import audit, outbox
from bot.store.engine import Database
from bot.store.outbox import OutboxMessage
from bot.store.tables import audit_entries, jobs, outbox_messages
from bot.testusers import store
from bot.testusers.rendering import RequestMessages
from bot.testusers.rules.requests import Request
from bot.testusers.tables import flow_posts, has_access, request_people
from bot.testusers.work import CARD, OUTCOME, card_key
from tests.simulation.days.cards import wrong_card
from tests.simulation.days.homes import about_requests
from tests.simulation.days.processes import ALERTS, APPROVALS_NEEDED, Outside, Process
from tests.support.testusers import ADAM, default_settings

APPROVALS = default_settings().approvals_channel
# Only the bot adds and removes these people.
IDENTITIES = (*(f"+155501{n:02}" for n in range(6)), "whatsapp:Ada", "whatsapp:Bob")
CREATED = ("request.created", "request.created_without_approval")
ENDS = ("request.applied", "request.failed", "request.denied", "request.cancelled")
ENDS = (*ENDS, "request.expired")
AGAIN = "request.asked_again"
MOVES = (AGAIN, *CREATED, "request.approved", "request.retried", *ENDS)
ONCE = frozenset({*CREATED, "request.escalated", "request.denied", "request.expired"})
# An idle process looks for due jobs now and then.
SLACKNESS = timedelta(seconds=60)


@dataclass(frozen=True)
class Entry:
    """An audit log entry."""

    at: datetime
    actor: str
    action: str
    subject: str
    detail: Mapping[str, Any]


@dataclass(frozen=True)
class Oracle:
    """Holds one day's audit log and the state that was stored at the end of that day."""

    database: Database
    outside: Outside
    process: Process
    entries: Sequence[Entry]
    stored: Sequence[Request]
    now: datetime

    @classmethod
    async def look(cls, database: Database, outside: Outside, process: Process) -> "Oracle":
        """Read the audit log and the stored state."""
        async with database.read_only() as tx:
            rows = await tx.connection.execute(select(audit_entries).order_by("position"))
            entries = [
                Entry(row.at, row.actor, row.action, row.subject, json.loads(row.detail))
                for row in rows
            ]
            ids = (await tx.connection.execute(select(store.requests.c.id))).scalars().all()
            stored = [request for item in ids if (request := await store.load_request(tx, item))]
            return cls(database, outside, process, entries, stored, await tx.now())

    @property
    def created(self) -> dict[str, Entry]:
        """The first audit log entry for each request."""
        return {entry.subject: entry for entry in self.entries if entry.action in CREATED}

    @property
    def ends(self) -> Counter[str]:
        """The number of requests in each final state."""
        return Counter(self._moves(item)[-1].action.split(".")[1] for item in self.created)

    def _moves(self, request_id: str) -> list[Entry]:
        return [
            entry for entry in self.entries if entry.subject == request_id and entry.action in MOVES
        ]

    async def problems(self, twice: Sequence[tuple[str, str]]) -> list[str]:
        """Return all problems.

        Each pair in `twice` contains the request IDs from two copies of the same delivery.
        """
        return [
            *self.outside.flows.problems,
            *self.outside.slack.problems,
            *self.outside.inventory.problems,
            *self.outside.inventory.tokens.problems,
            *self.outside.homes.problems,
            *self._wrong_lists(),
            *(problem for item in self.created for problem in self._wrong_decisions(item)),
            *self._made_twice(twice),
            *await self._wrong_cards(),
            *await self._wrong_homes(),
            *await self._wrong_alerts(),
            *await self._wrong_messages(),
            *await self._left_over(),
            *await self._wrong_audit(),
        ]

    def _wrong_lists(self) -> Iterator[str]:
        """Check that each list matches the changes in the audit log."""
        expected: dict[tuple[str, str], tuple[bool, str]] = {}
        for entry in self.entries:
            expected |= _expected_after(entry)
        for flow_sid, listed in self.outside.flows.lists.items():
            for identity in map(self.outside.flows.stored_as, IDENTITIES):
                is_there, why = expected.get((flow_sid, identity), (False, "nothing"))
                if (identity in listed) is not is_there:
                    verb = "is" if identity in listed else "is not"
                    yield f"{identity} {verb} on {flow_sid[-1]}, and {why} was the last"

    def _wrong_decisions(self, request_id: str) -> Iterator[str]:
        """Check that a request was decided in time and wasn't applied without enough approvals."""
        created, moves = self.created[request_id], self._moves(request_id)
        if moves[-1].action not in ENDS:
            yield f"{request_id}: {moves[-1].action} is the last of it"
        asked_again = [move for move in moves if move.action == AGAIN]
        asked_at = asked_again[-1].at if asked_again else created.at
        approvals = [move for move in moves if move.action == "request.approved"]
        if any(approval.actor == created.actor for approval in approvals):
            yield f"{request_id}: approved by who asked"
        hours = timedelta(hours=self.outside.rules["request_hours"])
        if any(approval.at >= asked_at + hours for approval in approvals):
            yield f"{request_id}: approved when it was over"
        if not asked_again and any(
            move.action == "request.expired"
            and not move.detail.get("is_over")
            and move.at < created.at + hours
            for move in moves
        ):
            yield f"{request_id}: over before its time"
        applied = [
            entry
            for entry in self.entries
            if (entry.subject == request_id and entry.action == "request.applied")
            or request_id in entry.detail.get("requests", ())
        ]
        if created.action == CREATED[1]:
            if created.actor != ADAM:
                yield f"{request_id}: applied without approval"
        elif applied and len({approval.actor for approval in approvals}) < self._needed(created):
            yield f"{request_id}: applied with {len(approvals)} approvals"

    def _needed(self, created: Entry) -> int:
        return APPROVALS_NEEDED[created.detail["flow"]]

    def _made_twice(self, twice: Sequence[tuple[str, str]]) -> Iterator[str]:
        """Check that a repeated delivery creates no second request while the first is pending."""
        for first, second in twice:
            if first == second or first not in self.created or second not in self.created:
                continue
            decided = [move.at for move in self._moves(first) if move.action in ENDS]
            if not decided or self.created[second].at < decided[0]:
                yield f"{first} and {second} are of one delivery"

    async def _wrong_cards(self) -> list[str]:
        """Check that each request has exactly one card, and that the card is up to date."""
        renderer, problems = RequestMessages(self.process.bot), []
        for request in self.stored:
            async with self.database.read_only() as tx:
                sent = await outbox.sent_card(tx, card_key(request.id))
                granted = await store.access_in(tx, request.flow.key)
                message = OutboxMessage(card_key(request.id), CARD, request.id)
                now = await renderer.cards[CARD](tx, message)
            message = await now.draw() if now else None
            place = ("", "") if sent is None else (sent.channel_id, sent.message_ts)
            shown = self.outside.slack.messages.get(place)
            if message is None or shown != message.text:
                problems.append(f"{request.id}: {request.state}, and the card says {shown!r}")
                continue
            problems += [
                f"{request.id}: the card is wrong: {said}"
                for said in wrong_card(message, request, granted.values(), self.now)
            ]
        cards, created = self._messages_in(APPROVALS), len(self.created)
        return problems + ([] if cards == created else [f"{cards} cards, {created} requests"])

    def _messages_in(self, channel: str) -> int:
        return sum(place[0] == channel for place in self.outside.slack.messages)

    async def _wrong_homes(self) -> list[str]:
        """Check that each Home tab that was just opened shows the current state of the requests."""
        problems, home = [], self.process.home
        for user, shown in self.outside.homes.shown.items():
            drawn = await home.draw(user)
            if about_requests(shown) != about_requests(drawn):
                problems.append(f"the Home tab of {user} shows {about_requests(shown)}")
        return problems

    async def _wrong_alerts(self) -> list[str]:
        """Check that each incident is over and has one message with a reply in its thread."""
        problems, known = [], await self._rows(incidents)
        notes = [row for row in await self._rows(outbox_messages) if row.kind == NOTE]
        for incident in known:
            key = f"{CARD_PREFIX}{incident.id}"
            async with self.database.read_only() as tx:
                sent = await outbox.sent_card(tx, key)
                message = OutboxMessage(key, "", str(incident.id))
                now = await self.process.quotas.alerts.card(tx, message)
            place = ("", "") if sent is None else (sent.channel_id, sent.message_ts)
            shown = self.outside.slack.messages.get(place, "")
            drawn = await now.draw() if now else None
            if incident.closed_at is None or drawn is None or shown != drawn.text:
                problems.append(f"{key}: over at {incident.closed_at}, and the alert says {shown}")
            if not any(note.key == key for note in notes) and self.outside.kept_days > 1:
                problems.append(f"{key}: its thread has not heard that it is over")
        for earlier, later in combinations(known, 2):
            is_over = earlier.closed_at and earlier.closed_at <= later.opened_at
            if earlier.code == later.code and not is_over:
                problems.append(f"{earlier.id} and {later.id} are one incident")
        alerts = self._messages_in(ALERTS)
        return problems + ([] if alerts == len(known) else [f"{alerts} alerts, {len(known)} began"])

    async def _wrong_messages(self) -> list[str]:
        """Check that the messages reached Slack in the order in which the events occurred."""
        arrived = {name: at for at, name in enumerate(self.outside.slack.by_client_id)}
        problems, last = [], dict[str, tuple[datetime, int]]()
        rows = await self._rows(outbox_messages)
        cleared = {row.key: row.id for row in rows if row.kind == NOTE}
        for row in rows:
            name = f"letter:{row.id}:{row.created_at}"
            at = arrived.get(str(uuid.uuid5(MESSAGE_NAMESPACE, name)), -1)
            # "Cleared" is dropped if the incident opens again, and sent when it closes again.
            is_due = row.kind == OUTCOME or cleared.get(row.key) == row.id
            if at < 0 and is_due and not self._is_of_no_account(row):
                problems.append(f"{row.key} has not heard of {row.payload}")
            sent_at, before = last.get(row.key, (row.created_at, -1))
            if (row.sent_at or sent_at) < sent_at or 0 <= at < before:
                problems.append(f"{row.key} has heard too late of {row.kind} {row.payload}")
            last[row.key] = max(row.sent_at or sent_at, sent_at), max(at, before)
        return problems

    def _is_of_no_account(self, row: Any) -> bool:
        """Return True if the message became out of date before the bot could send it."""
        event = row.payload.get("event")
        if event != "ended":
            moves = [move.at for move in self._moves(row.subject)]
            return any(row.created_at < at <= row.sent_at for at in moves)
        applied = [entry for entry in self.entries if entry.action == "request.applied"]
        flow_sids = {item.detail["flow"] for item in applied if item.subject == row.subject}
        let_in = {
            identity
            for item in applied
            if item.detail["flow"] in flow_sids and row.created_at <= item.at <= row.sent_at
            for identity in (*item.detail["additions"], *item.detail.get("already_there", ()))
        }
        return let_in.issuperset(row.payload["identities"])

    async def _left_over(self) -> list[str]:
        """Check that no job is overdue, all messages were sent, and all grants ended on time."""
        return [
            *(f"late: {row.key}" for row in await self._rows(jobs) if self._is_past(row.due_at)),
            *(
                f"not sent: {row.kind} {row.subject}"
                for row in await self._rows(outbox_messages)
                if row.sent_at is None
            ),
            *(
                f"{row.spelling} is there though it was over at {row.ends_at}"
                for row in await self._rows(request_people, has_access(request_people))
                if row.ends_at and self._is_past(row.ends_at)
            ),
            *(
                f"a POST of {row.sent_at} is in doubt still"
                for row in await self._rows(flow_posts)
                if self._is_past(row.sent_at + SLACKNESS)
            ),
        ]

    def _is_past(self, at: datetime) -> bool:
        return at < self.now - SLACKNESS

    async def _rows(self, table: Table, *where: Any) -> Sequence[Any]:
        async with self.database.read_only() as tx:
            query = select(table).where(*where).order_by(*table.primary_key.columns)
            return (await tx.connection.execute(query)).all()

    async def _wrong_audit(self) -> list[str]:
        """Check that the audit log is intact, and that no one-time event was recorded twice."""
        async with self.database.read_only() as tx:
            verdict = await audit.verify(tx)
        times = Counter((entry.subject, entry.action) for entry in self.entries)
        return [
            *([] if verdict.is_intact else [f"the audit: {verdict}"]),
            *(
                f"{subject}: {action} {count} times"
                for (subject, action), count in times.items()
                if action in ONCE and count > 1 + self._rounds_more(times, subject, action)
            ),
        ]

    @staticmethod
    def _rounds_more(times: Counter[tuple[str, str]], subject: str, action: str) -> int:
        """Return how many more times this action may occur after the first time.

        Each additional round of approval allows one more escalation.
        """
        return times[subject, "request.asked_again"] if action == "request.escalated" else 0


def _expected_after(entry: Entry) -> dict[tuple[str, str], tuple[bool, str]]:
    """Return whether each identity in this entry should be on the flow's list, and why."""
    detail, flow_sid = entry.detail, entry.detail.get("flow", entry.subject)
    there: set[str] = set()
    gone: set[str] = set()
    match entry.action:
        case "flow.changed":
            there = set(detail["after"]) - set(detail["before"])
            gone = set(detail["before"]) - set(detail["after"])
        case "request.applied":
            there = {*detail["additions"], *detail["already_there"]}
            gone = {*detail["removals"], *detail["already_gone"]}
        case "grant.ended":
            gone = {detail["identity"]}
    reason = f"{entry.action} of {entry.subject}"
    return {
        **{(flow_sid, identity): (True, reason) for identity in there},
        **{(flow_sid, identity): (False, reason) for identity in gone},
    }
