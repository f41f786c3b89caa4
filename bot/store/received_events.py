"""Events and requests that Slack delivered: each is acted on once, however often it comes."""

from datetime import datetime, timedelta

from sqlalchemy import update

from bot.store.engine import Transaction
from bot.store.inserts import insert_into
from bot.store.pruning import remove_some
from bot.store.tables import received_events

# Who received one and has not answered by then has died over it.
ANSWER_WITHIN = timedelta(seconds=30)
# How requests that are known by their signatures are named. One is good for minutes.
SIGNATURE = "signature:"
SIGNED_KEPT = timedelta(days=1)


async def claim(tx: Transaction, event_id: str) -> bool:
    """Return whether the event is the caller's to answer: nobody has, and nobody is about to."""
    insert = insert_into(received_events, is_postgres=tx.is_postgres)
    now = await tx.now()
    is_given_up = received_events.c.answered_at.is_(None) & (
        received_events.c.received_at <= now - ANSWER_WITHIN
    )
    result = await tx.connection.execute(
        insert.values(event_id=event_id, received_at=now)
        .on_conflict_do_update(
            index_elements=[received_events.c.event_id],
            set_={"received_at": now},
            where=is_given_up,
        )
        .returning(received_events.c.event_id)
    )
    return result.first() is not None


async def take_signed(tx: Transaction, digest: str) -> bool:
    """Return whether what has a signature of that digest came for the first time."""
    insert = insert_into(received_events, is_postgres=tx.is_postgres)
    now = await tx.now()
    values = {"event_id": f"{SIGNATURE}{digest}", "received_at": now, "answered_at": now}
    taken = await tx.connection.execute(insert.values(values).on_conflict_do_nothing())
    return bool(taken.rowcount == 1)


async def answered(tx: Transaction, event_id: str) -> None:
    """Note that the event needs no answer any more."""
    mine = received_events.c.event_id == event_id
    await tx.connection.execute(
        update(received_events).where(mine).values(answered_at=await tx.now())
    )


async def forget(tx: Transaction, before: datetime) -> int:
    """Remove some events that came before a time, or old signatures; return how many."""
    at = received_events.c.received_at
    is_signature = received_events.c.event_id.startswith(SIGNATURE)
    is_old = (at < before) | (is_signature & (at < await tx.now() - SIGNED_KEPT))
    return await remove_some(tx, received_events, is_old)
