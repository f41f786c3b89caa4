"""Records events and requests from Slack, so that each is processed only once.

For a few minutes, an attacker who intercepts a signed request could replay it to every process
behind a load balancer. Slack also redelivers events that aren't acknowledged in time.
"""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from sqlalchemy import ColumnElement, delete
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.exc import IntegrityError

from bot.errors import Replayed
from bot.ops.logs import current_digest
from bot.slack.tables import received_events
from bot.store.engine import Database, Transaction, insert_into

# The prefix for requests that are identified by signature. A signature expires within minutes.
SIGNATURE = "signature:"
KEPT = timedelta(days=1)
PAUSE = timedelta(minutes=1)


@dataclass
class ReceivedEvents:
    """The record of received events in the database, shared by all processes.

    Every method raises `DatabaseUnavailable` if the database doesn't respond.
    """

    database: Database

    async def take(self) -> bool:
        """Record the current Slack request, and return True if it's new."""
        digest = current_digest()
        return not digest or await self.claim(f"{SIGNATURE}{digest}")

    async def claim(self, event_id: str) -> bool:
        """Record an event, and return True if it's new."""
        async with self.database.autocommit() as tx:
            new = {"event_id": event_id, **tx.clock_parameters}
            recorded = await tx.execute(_recording_once(tx.clock), new)
            return recorded.rowcount == 1

    async def release(self, event_id: str) -> None:
        """Forget an event, so that it can be claimed again."""
        async with self.database.transaction() as tx:
            claimed = received_events.c.event_id == event_id
            await tx.execute(delete(received_events).where(claimed))


@asynccontextmanager
async def taking_in(database: Database) -> AsyncIterator[Transaction]:
    """Yield a transaction that also records the current Slack request.

    The record needs no round trip of its own, because it fails if it's the second of its kind.

    Raises:
        Replayed: The request has already been recorded, so nothing is stored.
    """
    digest = current_digest()
    try:
        async with database.transaction() as tx:
            if digest:
                new = {"event_id": f"{SIGNATURE}{digest}", **tx.clock_parameters}
                await tx.write(_recording(tx.clock), new)
            yield tx
    except IntegrityError as error:
        raise Replayed from error


# Statements are built only once, because building them takes longer than executing them.
@cache
def _recording(clock: ColumnElement[float]) -> Insert:
    return insert_into(received_events).values(received_at=clock)


@cache
def _recording_once(clock: ColumnElement[float]) -> Insert:
    return _recording(clock).on_conflict_do_nothing()


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
    return bool((await tx.execute(insert)).rowcount == 1)


async def forget(tx: Transaction, _before: datetime) -> int:
    """Delete a batch of events and signatures after a day, and return the number deleted.

    By then, Slack's signatures, response_urls and repeated deliveries have ended.
    """
    is_old = received_events.c.received_at < await tx.now() - KEPT
    return await tx.remove_some(received_events, is_old)
