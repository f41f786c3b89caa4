"""Links to request cards."""

from typing import Protocol

from bot.errors import DatabaseUnavailable, SlackError
from bot.ops.clock import Clock
from bot.store import outbox
from bot.store.engine import Database
from bot.testusers.transitions import card_key

TRIES, PAUSE_SECONDS = 8, 0.05


class Permalinks(Protocol):
    """Makes links to messages. Raises `SlackError`s."""

    async def permalink(self, channel_id: str, message_ts: str) -> str:
        """Return the address of a message."""
        ...


class CardLinks:
    """Finds links; a card is posted shortly after its request is made."""

    def __init__(self, database: Database, slack: Permalinks, clock: Clock) -> None:
        self._database = database
        self._slack = slack
        self._clock = clock

    async def link(self, request_id: str, tries: int = TRIES) -> str | None:
        """Return the link to a request's card; None if the card isn't posted soon."""
        try:
            for attempt in range(tries):
                if attempt:
                    await self._clock.sleep(PAUSE_SECONDS)
                async with self._database.read_only() as tx:
                    card = await outbox.sent_card(tx, card_key(request_id))
                if card is not None:
                    return await self._slack.permalink(card.channel_id, card.message_ts)
        except (DatabaseUnavailable, SlackError):
            # The message about the request is correct without the link.
            return None
        return None
