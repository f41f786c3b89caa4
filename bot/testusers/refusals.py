"""Alerts about credentials that the flow service refuses."""

from bot.services.errors import CredentialsRefused, ServiceError
from bot.slack.sender import Note
from bot.store import outbox
from bot.store.engine import Transaction
from bot.store.outbox import OutboxMessage
from bot.testusers.messages import notes
from bot.testusers.rules.changes import Flow
from bot.testusers.setup import Setup

REFUSED = "testusers.refused"


async def tell(tx: Transaction, flow: Flow, error: ServiceError) -> None:
    """Alert about a refused credential once, and about a missing right once per flow."""
    key = _key(None if isinstance(error, CredentialsRefused) else flow)
    if not await _is_told(tx, key):
        payload = {"sentence": error.sentence, "alias": flow.alias}
        await outbox.put(tx, OutboxMessage(key, REFUSED, flow.sid, payload))


async def tell_of_end(tx: Transaction, flow: Flow) -> None:
    """Announce that the service accepts the credential again."""
    for key in await outbox.written(tx, [_key(None), _key(flow)]):
        if await _is_told(tx, key):
            await outbox.put(tx, OutboxMessage(key, REFUSED, flow.sid))


class Refusals:
    """Renders the alerts."""

    def __init__(self, setup: Setup) -> None:
        self._channel = setup.rules.alerts_channel

    async def message(self, outbox_message: OutboxMessage) -> Note:
        """Return the alert, or the announcement of its end."""
        payload = outbox_message.payload
        if not payload:
            return Note(self._channel, notes.service_accepts())
        flow = Flow(outbox_message.subject, payload["alias"])
        return Note(self._channel, notes.service_refuses(payload["sentence"], flow))


def _key(flow: Flow | None) -> str:
    return f"{REFUSED}:{flow.key if flow else ''}"


async def _is_told(tx: Transaction, key: str) -> bool:
    told = await outbox.of_kind(tx, key, REFUSED)
    return bool(told and told[-1].payload)
