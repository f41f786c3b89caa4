"""Replays: what Slack signed once is acted on once, whichever process it reaches.

Who has read a request on its way can send it again for minutes, to each process behind a balancer.
"""

from bot.ops import deliveries
from bot.store import received_events
from bot.store.engine import Database, Transaction


class Deliveries:
    """Notes what was acted on, in the database that all processes share."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self) -> bool:
        """Return whether to act on the request that is being followed: nobody did before.

        Raises:
            DatabaseUnavailable: Nobody knows.
        """
        delivery = deliveries.current()
        if delivery is None or not delivery.digest:
            return True
        if delivery.is_first is None:
            async with self._database.transaction() as tx:
                is_first = await take_in(tx)
            delivery.is_first = is_first
        return delivery.is_first


async def take_in(tx: Transaction) -> bool:
    """As `Deliveries.take`, together with what the request has done."""
    delivery = deliveries.current()
    if delivery is None or not delivery.digest:
        return True
    return await received_events.take_signed(tx, delivery.digest)
