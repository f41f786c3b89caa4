"""One message in the alerts channel for each part that stays broken, across all processes."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog

from bot.checks import messages
from bot.checks.parts import Parts
from bot.checks.rules import Part, Trouble
from bot.errors import DatabaseUnavailable
from bot.slack.sender import CardNow
from bot.store import jobs, outbox
from bot.store.engine import Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage

log = structlog.get_logger(__name__)

HEALTH_JOB, HEALTH_CARD = "health", "health.card"
# Shorter problems don't need a message.
PATIENCE = timedelta(seconds=60)
REPEAT_SECONDS = 30.0
# A problem that no process has seen for this long has ended.
OVER = timedelta(seconds=90)
# A message about other parts would need the broken part itself.
REPORTED = frozenset(
    {
        *(Part.SLACK_SCOPES, Part.SOCKET, Part.CLOCK, Part.DATABASE_CLOCK),
        *(Part.APPROVALS_CHANNEL, Part.ALERTS_CHANNEL),
    }
)


class HealthAlerts:
    """Opens an alert while any process sees a problem, and ends it when no process does.

    Each process that sees the problem postpones the job that ends the alert.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._said_at: float | None = None

    async def tell(self, troubles: Sequence[Trouble]) -> None:
        """Report the parts that stay broken, at most every 30 s."""
        now = self._parts.clock.now()
        lasting = [
            trouble
            for trouble in troubles
            if trouble.part in REPORTED and now - trouble.since >= PATIENCE
        ]
        said_at, at = self._said_at, self._parts.clock.monotonic()
        if not lasting or (said_at is not None and at - said_at < REPEAT_SECONDS):
            return
        try:
            async with self._parts.database.transaction() as tx:
                for trouble in lasting:
                    await _open_or_keep(tx, trouble)
        except DatabaseUnavailable as error:
            log.warning("health.untold", reason=error.sentence)
            return
        self._said_at = at

    async def end(self, job: Job, lease: Lease) -> None:
        """Announce that the part works again; runs when no process has postponed the job."""
        async with lease.database.transaction() as tx:
            await outbox.put(tx, _outbox_message(job, await tx.now()))
            # In the same transaction, so that a crash before the job ends doesn't repeat it.
            await jobs.drop(tx, job.key)

    async def card(self, outbox_message: OutboxMessage) -> CardNow:
        """Return the alert's current content."""
        part, payload = Part(outbox_message.subject), outbox_message.payload
        ended_at = payload.get("ended_at")
        message = messages.alert(
            part,
            str(payload["sentence"]),
            datetime.fromisoformat(payload["opened_at"]),
            None if ended_at is None else datetime.fromisoformat(ended_at),
        )
        settings = self._parts.settings
        is_itself = part is Part.ALERTS_CHANNEL
        return CardNow(
            settings.approvals_channel if is_itself else settings.alerts_channel, message
        )


async def _open_or_keep(tx: Transaction, trouble: Trouble) -> None:
    now, part = await tx.now(), trouble.part.value
    payload = {"opened_at": now.isoformat(), "sentence": trouble.sentence}
    ending = Job(f"health:{part}", HEALTH_JOB, part, now + OVER, payload)
    if await jobs.ensure(tx, ending):
        await outbox.put(tx, _outbox_message(ending))
    else:
        await jobs.postpone(tx, ending.key, ending.due_at)


def _outbox_message(job: Job, ended_at: datetime | None = None) -> OutboxMessage:
    payload = dict(job.payload) | ({} if ended_at is None else {"ended_at": ended_at.isoformat()})
    return OutboxMessage(f"{job.key}:{job.payload['opened_at']}", HEALTH_CARD, job.subject, payload)
