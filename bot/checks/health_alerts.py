"""One message in the alerts channel for each thing that stays broken, whoever noticed it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import structlog

from bot.checks.messages import health as ui
from bot.checks.rules.health import Part, Trouble
from bot.errors import DatabaseUnavailable
from bot.ops.clock import Clock
from bot.slack.sender import CardNow
from bot.store import jobs, outbox
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage

log = structlog.get_logger(__name__)

HEALTH_JOB, HEALTH_CARD = "health", "health.card"
# What is over before that is not worth a message.
PATIENCE = timedelta(seconds=60)
REPEAT_SECONDS = 30.0
# Nobody has seen it for so long: it works again.
OVER = timedelta(seconds=90)
# The others need the very thing that is broken to be told.
REPORTED = frozenset(
    {
        *(Part.SLACK_SCOPES, Part.SOCKET, Part.CLOCK),
        *(Part.APPROVALS_CHANNEL, Part.ALERTS_CHANNEL),
    }
)


class HealthAlerts:
    """Opens an alert while somebody sees a trouble, and ends it when nobody does any more.

    Each process that sees it puts the end off; the job that ends it runs when nobody has.

    Args:
        database: Where jobs and messages wait.
        channels: As for `Health`.
        clock: How long this process has seen it, and when it said so last.
    """

    def __init__(
        self,
        database: Database,
        channels: Mapping[Part, str],
        clock: Clock,
    ) -> None:
        self._database = database
        self._channels = channels
        self._clock = clock
        self._said_at: float | None = None

    async def tell(self, troubles: Sequence[Trouble]) -> None:
        """Have what stays broken told; at most every 30 s, and later where the database is away."""
        now = self._clock.now()
        lasting = [
            trouble
            for trouble in troubles
            if trouble.part in REPORTED and now - trouble.since >= PATIENCE
        ]
        said_at, at = self._said_at, self._clock.monotonic()
        if not lasting or (said_at is not None and at - said_at < REPEAT_SECONDS):
            return
        try:
            async with self._database.transaction() as tx:
                for trouble in lasting:
                    await self._open_or_keep(tx, trouble)
        except DatabaseUnavailable as error:
            log.warning("health.untold", reason=error.sentence)
            return
        self._said_at = at

    async def _open_or_keep(self, tx: Transaction, trouble: Trouble) -> None:
        now, part = await tx.now(), trouble.part.value
        payload = {"opened_at": now.isoformat(), "sentence": trouble.sentence}
        ending = Job(f"health:{part}", HEALTH_JOB, part, now + OVER, payload)
        if await jobs.ensure(tx, ending):
            await outbox.put(tx, _outbox_message(ending))
        else:
            await jobs.postpone(tx, ending.key, ending.due_at)

    async def end(self, job: Job, lease: Lease) -> None:
        """Run the job that nobody has put off: say that it works again."""
        async with lease.database.transaction() as tx:
            await outbox.put(tx, _outbox_message(job, await tx.now()))
            # Here and now, so that a crash before the job ends says it no second time.
            await jobs.drop(tx, job.key)

    async def card(self, outbox_message: OutboxMessage) -> CardNow:
        """The alert as it should stand now."""
        ended_at = outbox_message.payload.get("ended_at")
        message = ui.alert(
            Part(outbox_message.subject),
            str(outbox_message.payload["sentence"]),
            datetime.fromisoformat(outbox_message.payload["opened_at"]),
            None if ended_at is None else datetime.fromisoformat(ended_at),
        )
        return CardNow(self._where(Part(outbox_message.subject)), message)

    def _where(self, part: Part) -> str:
        """The alerts channel, unless it is that one."""
        is_itself = part is Part.ALERTS_CHANNEL
        return self._channels[Part.APPROVALS_CHANNEL if is_itself else Part.ALERTS_CHANNEL]


def _outbox_message(job: Job, ended_at: datetime | None = None) -> OutboxMessage:
    payload = dict(job.payload) | ({} if ended_at is None else {"ended_at": ended_at.isoformat()})
    return OutboxMessage(f"{job.key}:{job.payload['opened_at']}", HEALTH_CARD, job.subject, payload)
