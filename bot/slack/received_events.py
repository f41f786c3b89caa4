"""Records events and requests from Slack, so that each is processed only once.

For a few minutes, an attacker who intercepts a signed request could replay it to every process
behind a load balancer. Slack also redelivers events that aren't acknowledged in time.
"""

import hashlib
from datetime import datetime, timedelta
from functools import cache

from sqlalchemy import ColumnElement, delete
from sqlalchemy.dialects.postgresql import Insert

from bot.ops.current_delivery import current_digest
from bot.slack.tables import received_events
from bot.store.engine import Database, Transaction, insert_into, remove_some

# The prefix for requests that are identified by signature. A signature expires within minutes.
SIGNATURE = "signature:"
KEPT = timedelta(days=1)
PAUSE = timedelta(minutes=1)


class ReceivedEvents:
    """The record of received events in the database, shared by all processes.

    Every method raises `DatabaseUnavailable` if the database doesn't respond.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self) -> bool:
        """Record the current Slack request, and return True if it's new."""
        async with self._database.autocommit() as tx:
            return await take(tx)

    async def claim(self, event_id: str) -> bool:
        """Record an event, and return True if it's new."""
        async with self._database.autocommit() as tx:
            return await _claim(tx, event_id)

    async def release(self, event_id: str) -> None:
        """Forget an event, so that it can be claimed again."""
        async with self._database.transaction() as tx:
            claimed = received_events.c.event_id == event_id
            await tx.connection.execute(delete(received_events).where(claimed))


async def take(tx: Transaction) -> bool:
    """Record the current Slack request in a transaction, and return True if it's new."""
    digest = current_digest()
    return not digest or await _claim(tx, f"{SIGNATURE}{digest}")


async def _claim(tx: Transaction, event_id: str) -> bool:
    new = {"event_id": event_id, **tx.clock_parameters}
    recorded = await tx.connection.execute(_recording(tx.clock), new)
    return recorded.rowcount == 1


# The statement is built only once, because building it takes longer than executing it.
@cache
def _recording(clock: ColumnElement[float]) -> Insert:
    return insert_into(received_events).values(received_at=clock).on_conflict_do_nothing()


async def is_due(tx: Transaction, what: str) -> bool:
    """Return True at most once a minute for the same text, over all processes."""
    digest = hashlib.sha256(what.encode("utf-8", "replace")).hexdigest()
    at = await tx.now()
    due = {"event_id": f"due:{digest}", "received_at": at}
    insert = (
        insert_into(received_events)
        .values(due)
        .on_conflict_do_update(
            index_elements=["event_id"],
            set_={"received_at": at},
            where=received_events.c.received_at <= at - PAUSE,
        )
    )
    return bool((await tx.connection.execute(insert)).rowcount == 1)


async def forget(tx: Transaction, _before: datetime) -> int:
    """Delete a batch of events and signatures after a day, and return the number deleted.

    By then, Slack's signatures, response_urls and repeated deliveries have ended.
    """
    is_old = received_events.c.received_at < await tx.now() - KEPT
    return await remove_some(tx, received_events, is_old)
