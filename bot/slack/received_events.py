"""Records events and requests from Slack, so that each is processed only once.

For a few minutes, an attacker who intercepts a signed request could replay it to every process
behind a load balancer. Slack also redelivers events that aren't acknowledged in time.
"""

from contextlib import suppress
from datetime import datetime, timedelta

from sqlalchemy import delete, update

from bot.errors import DatabaseUnavailable
from bot.ops.current_delivery import current_digest
from bot.slack.tables import received_events
from bot.store.engine import Database, Transaction, insert_into, remove_some

# If a process hasn't answered an event after this time, the process is assumed to be dead.
ANSWER_WITHIN = timedelta(seconds=30)
# The prefix for requests that are identified by signature. A signature expires within minutes.
SIGNATURE = "signature:"
SIGNED_KEPT = timedelta(days=1)


class ReceivedEvents:
    """The record of received events in the database, shared by all processes.

    Every method except `answered` raises `DatabaseUnavailable` if the database doesn't respond.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self) -> bool:
        """Record the current Slack request, and return True if it's new."""
        if not current_digest():
            return True
        async with self._database.autocommit() as tx:
            return await take_in(tx)

    async def claim(self, event_id: str) -> bool:
        """Claim an event. Return False if a process has answered the event or is answering it."""
        async with self._database.transaction() as tx:
            insert = insert_into(received_events)
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

    async def release(self, event_id: str) -> None:
        """Forget a claim. If this fails, the event can be claimed again after 30 seconds."""
        with suppress(DatabaseUnavailable):
            async with self._database.transaction() as tx:
                claimed = received_events.c.event_id == event_id
                await tx.connection.execute(delete(received_events).where(claimed))

    async def answered(self, event_id: str) -> None:
        """Mark the event as answered. If this fails, a redelivered event is answered again."""
        is_event = received_events.c.event_id == event_id
        with suppress(DatabaseUnavailable):
            async with self._database.transaction() as tx:
                await tx.connection.execute(
                    update(received_events).where(is_event).values(answered_at=await tx.now())
                )


async def take_in(tx: Transaction) -> bool:
    """Record the current Slack request in the caller's transaction. Return True if it's new."""
    digest = current_digest()
    if not digest:
        return True
    values = {
        "event_id": f"{SIGNATURE}{digest}",
        "received_at": tx.clock,
        "answered_at": tx.clock,
    }
    insert = insert_into(received_events).values(values).on_conflict_do_nothing()
    taken = await tx.connection.execute(insert, tx.clock_parameters)
    return bool(taken.rowcount == 1)


async def forget(tx: Transaction, before: datetime) -> int:
    """Delete a batch of old events and signatures, and return the number deleted."""
    at = received_events.c.received_at
    is_signature = received_events.c.event_id.startswith(SIGNATURE)
    is_old = (at < before) | (is_signature & (at < await tx.now() - SIGNED_KEPT))
    return await remove_some(tx, received_events, is_old)
