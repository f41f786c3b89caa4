"""The outbox: every message that must arrive, stored in the transaction of what it tells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, String, cast, delete, exists, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite

from bot.store import jobs
from bot.store.engine import Transaction
from bot.store.tables import cards, incidents, letters, requests

SEND = "send"
# The keys of cards begin so; the id of what the card shows follows.
REQUEST_CARD, INCIDENT_CARD = "request:", "incident:"


@dataclass(frozen=True)
class Letter:
    """A message to be sent.

    Attributes:
        key: The card it belongs to; letters of one key are sent in order.
        kind: Names the renderer, which makes the message from what is stored when it is sent.
        subject: The id of what it is about.
        payload: What the renderer needs besides; never a secret.
        id: Given by the store.
    """

    key: str
    kind: str
    subject: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0


@dataclass(frozen=True)
class SentCard:
    """Where a card stands in Slack, and what it said last."""

    key: str
    channel_id: str
    message_ts: str
    fingerprint: str
    sent_at: datetime


async def put(tx: Transaction, letter: Letter) -> None:
    """Store the letter, and a job that sends it."""
    now = await tx.now()
    await tx.connection.execute(
        letters.insert().values(
            key=letter.key,
            kind=letter.kind,
            subject=letter.subject,
            payload=dict(letter.payload),
            created_at=now,
            tries=0,
        )
    )
    await jobs.put(tx, jobs.Job(f"{SEND}:{letter.key}", SEND, letter.key, now))


async def waiting(tx: Transaction, key: str) -> list[Letter]:
    """Return the unsent letters of a key, oldest first."""
    query = (
        select(letters)
        .where(letters.c.key == key, letters.c.sent_at.is_(None))
        .order_by(letters.c.id)
    )
    rows = await tx.connection.execute(query)
    return [Letter(row.key, row.kind, row.subject, row.payload, row.id) for row in rows]


async def begin_post(tx: Transaction, letter: Letter) -> bool:
    """Note that the letter's card is about to be posted; return whether it may have been before.

    A crash or a lost answer leaves this behind, and then what Slack shows may be out of date.
    """
    tried = (letters.c.key == letter.key) & (letters.c.tries > 0)
    query = select(letters.c.id).where(tried).limit(1)
    before = (await tx.connection.execute(query)).first() is not None
    statement = update(letters).where(letters.c.id == letter.id)
    await tx.connection.execute(statement.values(tries=letters.c.tries + 1))
    return before


async def mark_sent(tx: Transaction, ids: Sequence[int], failure: str | None = None) -> None:
    """Note that the letters need no more sending; `failure` says why one never can be."""
    statement = update(letters).where(letters.c.id.in_(ids))
    await tx.connection.execute(statement.values(sent_at=await tx.now(), failure=failure))


async def prune(tx: Transaction, before: datetime) -> int:
    """Remove letters that were sent before a time, and the cards that nothing more is told of.

    Where a card stands is needed as long as there is what it shows: without it the next change
    would post a second card, and the first would keep its buttons for ever.
    """
    old = letters.c.sent_at < before
    removed = await tx.connection.execute(delete(letters).where(old))
    written = exists(select(letters.c.id).where(letters.c.key == cards.c.key))
    shows_nothing = _is_gone(REQUEST_CARD, requests.c.id) & _is_gone(INCIDENT_CARD, incidents.c.id)
    unneeded = (cards.c.sent_at < before) & ~written & shows_nothing
    await tx.connection.execute(delete(cards).where(unneeded))
    return removed.rowcount


def _is_gone(prefix: str, ids: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether a card's key is of none of those that there are."""
    return cards.c.key.not_in(select(literal(prefix) + cast(ids, String)))


async def sent_card(tx: Transaction, key: str) -> SentCard | None:
    """Return where the card stands, or None when it was never posted."""
    row = (await tx.connection.execute(select(cards).where(cards.c.key == key))).first()
    return None if row is None else SentCard(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented name


async def remember_card(tx: Transaction, card: SentCard) -> None:
    """Note where the card stands now."""
    insert = postgresql.insert(cards) if tx.is_postgres else sqlite.insert(cards)
    values = vars(card)
    rest = {name: value for name, value in values.items() if name != "key"}
    statement = insert.values(**values)
    await tx.connection.execute(
        statement.on_conflict_do_update(index_elements=[cards.c.key], set_=rest)
    )
