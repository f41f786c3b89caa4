"""Replay protection: each signed Slack request acts once, whichever process receives it.

Someone who intercepts a request could resend it for minutes, to each process behind a balancer.
"""

from bot.ops import current_delivery as deliveries
from bot.slack import received_events
from bot.store.engine import Database, Transaction


class Deliveries:
    """Records handled requests in the database that all processes share."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self) -> bool:
        """Return True the first time the current Slack request is seen.

        Raises:
            DatabaseUnavailable: The request can't be recorded.
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
    """Like `Deliveries.take`, in the transaction that stores the request's effects."""
    delivery = deliveries.current()
    if delivery is None or not delivery.digest:
        return True
    return await received_events.take_signed(tx, delivery.digest)
