"""The outbox: messages to deliver, stored in the same transactions as the changes they report."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, case, exists, func, or_, select, update

from bot.store import jobs
from bot.store.engine import Transaction, insert_into
from bot.store.tables import EPOCH, cards, outbox_messages

SEND = "send"
# The key in the payload of a message that is only needed if its card would say something else.
CHECK = "check"


@dataclass(frozen=True)
class OutboxMessage:
    """A message to send. Messages with the same key belong to one card and are sent in order.

    When a message is sent, the renderer for its kind builds the content from the subject's
    stored state. The payload never includes a secret. The store sets `id` and `created_at`.
    """

    key: str
    kind: str
    subject: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0
    created_at: datetime | None = None


@dataclass(frozen=True)
class SentCard:
    """A card's location in Slack, and what it shows there.

    `version` is the ID of the last outbox message whose content Slack has accepted, or 0 if an
    earlier attempt might have left outdated content. `digest` stands for that content.
    """

    key: str
    channel_id: str
    message_ts: str
    version: int
    sent_at: datetime
    digest: str = ""


@dataclass(frozen=True)
class Waiting:
    """A key's unsent messages at the time `at`, oldest first, and the card, if it was sent.

    If the card wasn't sent, `first_at` is the time when its first message was stored.
    """

    messages: Sequence[OutboxMessage]
    at: datetime = EPOCH
    sent: SentCard | None = None
    first_at: datetime | None = None


# Statements are built only once, because building them takes longer than executing them.
_ITS_KEY = outbox_messages.c.key == bindparam("its_key")
_EVERY = outbox_messages.alias()
_FIRST_AT = select(func.min(_EVERY.c.created_at)).where(_EVERY.c.key == bindparam("its_key"))


@cache
def _waiting(clock: ColumnElement[float]) -> Select[Any]:
    return (
        select(
            outbox_messages,
            *(column.label(f"card_{column.name}") for column in cards.c),
            case((cards.c.key.is_(None), _FIRST_AT.scalar_subquery())).label("first_at"),
            clock.label("seconds"),
        )
        .outerjoin(cards, cards.c.key == outbox_messages.c.key)
        .where(_ITS_KEY, outbox_messages.c.sent_at.is_(None))
        .order_by(outbox_messages.c.id)
    )


_CARD = select(cards).where(cards.c.key == bindparam("its_key"))
_MARK_SENT = (
    update(outbox_messages)
    .where(
        outbox_messages.c.id.in_(bindparam("its_ids", expanding=True)),
        outbox_messages.c.sent_at.is_(None),
    )
    .values(sent_at=bindparam("at"), failure=bindparam("its_failure"))
)
_PUT = outbox_messages.insert().inline()
_RECORD_NEW = insert_into(cards).on_conflict_do_nothing()
_RECORD_AGAIN = update(cards).where(
    cards.c.key == bindparam("its_key"), cards.c.version == bindparam("its_version")
)


async def put(
    tx: Transaction, outbox_message: OutboxMessage, delay: timedelta = timedelta(0)
) -> None:
    """Store an outbox message, and a job that sends it after the delay."""
    now = await tx.now()
    key = outbox_message.key
    new = {**vars(outbox_message), "payload": dict(outbox_message.payload), "created_at": now}
    del new["id"]
    await tx.write(_PUT, new)
    await jobs.put(tx, jobs.Job(f"{SEND}:{key}", SEND, key, now + delay))


async def waiting(tx: Transaction, key: str) -> Waiting:
    """Return a key's unsent messages, and what is known about its card if there are any."""
    its = {"its_key": key, **tx.clock_parameters}
    rows = (await tx.execute(_waiting(tx.clock), its)).all()
    if not rows:
        return Waiting([])
    row, sent = rows[0], None
    if row.card_key is not None:
        sent = SentCard(*(getattr(row, f"card_{column.name}") for column in cards.c))
    at = datetime.fromtimestamp(row.seconds, UTC)
    tx.tell_time(at)
    messages = [
        OutboxMessage(row.key, row.kind, row.subject, row.payload, row.id, row.created_at)
        for row in rows
    ]
    return Waiting(messages, at, sent, row.first_at)


async def mark_sent(
    tx: Transaction, ids: Sequence[int], at: datetime, failure: str | None = None
) -> None:
    """Mark messages as sent, or as dropped if `failure` says why they can't be sent.

    Messages that are already marked stay unchanged.
    """
    await tx.write(_MARK_SENT, {"its_ids": list(ids), "at": at, "its_failure": failure})


async def count_undelivered(tx: Transaction) -> int:
    """Count the messages to requesters that were dropped in the last seven days."""
    since = await tx.now() - timedelta(days=7)
    is_given_up = outbox_messages.c.failure.is_not(None) & (outbox_messages.c.sent_at >= since)
    is_to_person = outbox_messages.c.key.startswith("requester:")
    return await tx.count(is_given_up, is_to_person)


def shows(prefix: str, ids: ColumnElement[str]) -> ColumnElement[bool]:
    """Return a condition for cards with one of these IDs after the prefix of their key.

    The condition can use an index. Use it in a query of `cards`.
    """
    subject = func.substr(cards.c.key, len(prefix) + 1)
    return exists().where(cards.c.key.startswith(prefix), ids == subject)


def pruning(*needed: ColumnElement[bool]) -> Callable[[Transaction, datetime], Awaitable[int]]:
    """Return a function that deletes old messages and cards, except cards that are `needed`.

    A card's location is needed while its subject exists. Without the location, the next change
    would post a second card, and the first card would keep its buttons forever.
    """
    is_written = exists().where(outbox_messages.c.key == cards.c.key)

    async def prune(tx: Transaction, before: datetime) -> int:
        """Delete a batch of messages sent before `before`, and return the number deleted.

        When no such messages are left, delete the locations of old cards instead.
        """
        removed = await tx.remove_some(outbox_messages, outbox_messages.c.sent_at < before)
        if removed:
            return removed
        return await tx.remove_some(cards, (cards.c.sent_at < before) & ~or_(is_written, *needed))

    return prune


async def sent_card(tx: Transaction, key: str) -> SentCard | None:
    """Return the card's location, or None if the card was never posted."""
    row = (await tx.execute(_CARD, {"its_key": key})).first()
    return None if row is None else SentCard(*row)


async def record_card(tx: Transaction, card: SentCard, read: SentCard | None) -> bool:
    """Store that the card was sent, unless another process has sent it since `read` was loaded.

    Return True if the card was stored.
    """
    if read is None:
        recorded = await tx.execute(_RECORD_NEW, vars(card))
    else:
        its = {"its_key": read.key, "its_version": read.version}
        recorded = await tx.execute(_RECORD_AGAIN, {**vars(card), **its})
    return recorded.rowcount > 0
