"""The outbox: every message that must arrive, stored in the transaction of what it tells."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    Update,
    and_,
    bindparam,
    cast,
    exists,
    func,
    select,
    update,
)

from bot.dataclass import dataclass
from bot.store import home_views, jobs
from bot.store.engine import Transaction
from bot.store.inserts import insert_into
from bot.store.pruning import remove_some
from bot.store.tables import cards, incidents, outbox_messages, requests

SEND = "send"
# The keys of cards begin so; the id of what the card shows follows.
# Between the key of a card and the message that is a copy of it.
COPY = "/copy/"
REQUEST_CARD, INCIDENT_CARD = "request:", "incident:"
# The fingerprint of a card that shows nobody knows what.
WHATEVER = ""


@dataclass(frozen=True)
class OutboxMessage:
    """A message to be sent.

    Attributes:
        key: The card it belongs to; messages of one key are sent in order.
        kind: Names the renderer, which makes the message from what is stored when it is sent.
        subject: The id of what it is about.
        payload: What the renderer needs besides; never a secret.
        id: Given by the store, as is `created_at`.
    """

    key: str
    kind: str
    subject: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0
    created_at: datetime | None = None


@dataclass(frozen=True)
class SentCard:
    """Where a card stands in Slack, and what it said last."""

    key: str
    channel_id: str
    message_ts: str
    fingerprint: str
    sent_at: datetime


@dataclass(frozen=True)
class BegunPost:
    """A first post of a card: when its first message was stored, and whether Slack may have it."""

    first_at: datetime
    is_repeated: bool


async def put(tx: Transaction, outbox_message: OutboxMessage) -> None:
    """Store the outbox messages, and a job that sends it."""
    now = await tx.now()
    new = {
        "key": outbox_message.key,
        "kind": outbox_message.kind,
        "subject": outbox_message.subject,
        "payload": dict(outbox_message.payload),
        "created_at": now,
        "tries": 0,
    }
    await tx.connection.execute(outbox_messages.insert(), new)
    await jobs.put(tx, jobs.Job(f"{SEND}:{outbox_message.key}", SEND, outbox_message.key, now))
    if outbox_message.key.startswith((REQUEST_CARD, INCIDENT_CARD)):
        # What a card tells, Home tabs tell too.
        await home_views.mark_changed(tx, outbox_message.key)


async def has(tx: Transaction, key: str, kind: str) -> bool:
    """Return whether there is a message of this key and kind, sent or not."""
    same = (outbox_messages.c.key == key) & (outbox_messages.c.kind == kind)
    query = select(outbox_messages.c.id).where(same).limit(1)
    return (await tx.connection.execute(query)).first() is not None


async def written(tx: Transaction, keys: Sequence[str]) -> list[str]:
    """Return those of the keys that there are messages of, sent or not."""
    query = select(outbox_messages.c.key).where(outbox_messages.c.key.in_(keys)).distinct()
    return list((await tx.connection.execute(query)).scalars())


async def waiting(tx: Transaction, key: str) -> list[OutboxMessage]:
    """Return the unsent messages of a key, oldest first."""
    rows = await tx.connection.execute(_waiting(), {"its_key": key})
    return [
        OutboxMessage(row.key, row.kind, row.subject, row.payload, row.id, row.created_at)
        for row in rows
    ]


# Made once: to make a statement takes longer than to execute it.
@cache
def _waiting() -> Select[Any]:
    its, is_unsent = _of_its_key(), outbox_messages.c.sent_at.is_(None)
    return select(outbox_messages).where(its, is_unsent).order_by(outbox_messages.c.id)


def _of_its_key() -> ColumnElement[bool]:
    return outbox_messages.c.key == bindparam("its_key")


async def begin_post(tx: Transaction, outbox_message: OutboxMessage) -> BegunPost:
    """Note that the message's card is about to be posted.

    A crash or a lost answer leaves this behind, and then what Slack shows may be out of date.
    """
    posts = await tx.connection.execute(_posts(), {"its_key": outbox_message.key})
    first_at, tries = posts.one()
    await tx.connection.execute(_counting_posts(1), {"its_id": outbox_message.id})
    return BegunPost(first_at, is_repeated=tries > 0)


@cache
def _posts() -> Select[Any]:
    posts = select(func.min(outbox_messages.c.created_at), func.max(outbox_messages.c.tries))
    return posts.where(_of_its_key())


@cache
def _counting_posts(more: int) -> Update:
    its = outbox_messages.c.id == bindparam("its_id")
    return update(outbox_messages).where(its).values(tries=outbox_messages.c.tries + more)


async def end_post(tx: Transaction, outbox_message: OutboxMessage) -> None:
    """Take back that a card was about to be posted: Slack certainly has not taken it."""
    await tx.connection.execute(_counting_posts(-1), {"its_id": outbox_message.id})


async def mark_sent(tx: Transaction, ids: Sequence[int], failure: str | None = None) -> None:
    """Note that the outbox messages need no more sending; `failure` says why one never can be.

    Who sent one first says when it was sent, not who woke up late with the same.
    """
    sent = {"its_ids": list(ids), "sent_at": await tx.now(), "failure": failure}
    await tx.connection.execute(_marking_sent(), sent)


@cache
def _marking_sent() -> Update:
    these = outbox_messages.c.id.in_(bindparam("its_ids", expanding=True))
    return update(outbox_messages).where(these, outbox_messages.c.sent_at.is_(None))


async def prune(tx: Transaction, before: datetime) -> int:
    """Remove some messages that were sent before a time; return how many.

    When there are none any more, some cards that nothing more is told of. Where a card stands is
    needed as long as there is what it shows: without it the next change would post a second card,
    and the first would keep its buttons for ever.
    """
    removed = await remove_some(tx, outbox_messages, outbox_messages.c.sent_at < before)
    if removed:
        return removed
    is_written = exists().where(outbox_messages.c.key == cards.c.key)
    shows_request = _is_there(REQUEST_CARD, requests.c.id)
    shows_incident = _is_there(INCIDENT_CARD, cast(incidents.c.id, String))
    unneeded = (cards.c.sent_at < before) & ~is_written & ~shows_request & ~shows_incident
    return await remove_some(tx, cards, unneeded)


def _is_there(prefix: str, ids: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a card's key is of one of those that there are; asked so that an index helps."""
    subject = func.substr(cards.c.key, len(prefix) + 1)
    return exists().where(cards.c.key.startswith(prefix), ids == subject)


async def sent_card(tx: Transaction, key: str) -> SentCard | None:
    """Return where the card stands, or None when it was never posted."""
    row = (await tx.connection.execute(_card(), {"its_key": key})).first()
    return None if row is None else SentCard(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented name


@cache
def _card() -> Select[Any]:
    return select(cards).where(cards.c.key == bindparam("its_key"))


async def remember_copy(tx: Transaction, key: str, channel_id: str, message_ts: str) -> str | None:
    """Note a second message that shows the same card, as a post leaves whose answer was lost.

    Return the copy's own key, or None where that message is the card, or no card was posted yet.
    """
    sent = await sent_card(tx, key)
    if sent is None or (sent.channel_id, sent.message_ts) == (channel_id, message_ts):
        return None
    copy_key = f"{key}{COPY}{message_ts}"
    if await sent_card(tx, copy_key) is None:
        copy = SentCard(copy_key, channel_id, message_ts, "", await tx.now())
        await remember_card(tx, copy)
    return copy_key


async def copies(tx: Transaction, key: str) -> list[str]:
    """Return the keys of the copies of a card."""
    query = select(cards.c.key).where(cards.c.key.startswith(f"{key}{COPY}", autoescape=True))
    return list((await tx.connection.execute(query.order_by(cards.c.key))).scalars())


async def remember_card(tx: Transaction, card: SentCard) -> None:
    """Note where the card stands now."""
    insert = insert_into(cards, is_postgres=tx.is_postgres).values(**vars(card))
    values = _of_card(card)
    await tx.connection.execute(
        insert.on_conflict_do_update(index_elements=[cards.c.key], set_=values)
    )


async def replace_card(tx: Transaction, card: SentCard, read: SentCard | None) -> bool:
    """Note where the card stands now, unless somebody else did since it was `read`.

    Return whether it was noted.
    """
    if read is None:
        insert = insert_into(cards, is_postgres=tx.is_postgres).values(**vars(card))
        noted = await tx.connection.execute(insert.on_conflict_do_nothing())
    else:
        is_as_read = and_(*(cards.c[name] == value for name, value in vars(read).items()))
        noted = await tx.connection.execute(
            update(cards).where(is_as_read).values(**_of_card(card))
        )
    return noted.rowcount > 0


def _of_card(card: SentCard) -> dict[str, Any]:
    """What a card's row holds besides its key."""
    return {name: value for name, value in vars(card).items() if name != "key"}


async def doubt_card(tx: Transaction, message: OutboxMessage) -> None:
    """Have a card shown anew: two processes may have written it, in whatever order."""
    mine = cards.c.key == message.key
    await tx.connection.execute(update(cards).where(mine).values(fingerprint=WHATEVER))
    await mark_sent(tx, [message.id])
    await put(tx, message)
