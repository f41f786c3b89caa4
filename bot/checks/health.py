"""This process's health: the periodic checks, the status, and alerts about lasting problems."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

import structlog

from bot.checks import messages
from bot.checks.checks import Check, CheckParts, channels, credentials, database, slack_token
from bot.checks.rules import (
    HARMLESS,
    UNSURE,
    WRONG,
    Finding,
    JobCount,
    Part,
    Status,
    Trouble,
    well,
)
from bot.errors import DatabaseUnavailable
from bot.quotas.store import incidents
from bot.slack.sender import Outgoing, drawn
from bot.store import jobs, outbox
from bot.store.engine import Transaction
from bot.store.job_loop import Kind, Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage
from bot.testusers.store import count_pending

log = structlog.get_logger(__name__)

HEALTH_JOB, HEALTH_CARD = "health", "health.card"
# The seconds between runs of each check. Slack lets an app look up 50 channels per minute, for all
# of its processes together.
EVERY: dict[Check, float] = {
    database: 5,
    slack_token: 15,
    credentials: 15,
    channels: 60,
}
SOCKET_EVERY, ALERTS_EVERY = 5.0, 15.0
# Shorter gaps are normal: Slack sometimes closes the socket, and the bot reopens it immediately.
DEAF_SECONDS = 60.0
# Problems that end sooner don't cause an alert.
PATIENCE = timedelta(seconds=60)
# A problem is over when no process has seen it for this long.
OVER = timedelta(seconds=90)


class Health:
    """Runs the checks and reports the problems that they find.

    All processes together send one alert for each part that stays broken. Each process that sees
    the problem postpones the job that ends the alert.
    """

    def __init__(self, parts: CheckParts) -> None:
        self.parts = parts
        self._started = parts.clock.monotonic()
        self._troubles: dict[Part, Trouble] = {}
        self._heard_at = self._started
        for part in Part:
            parts.metrics.working.labels(part.label).set(1)

    def troubles(self) -> list[Trouble]:
        """Return the current problems, worst first."""
        return [self._troubles[part] for part in Part if part in self._troubles]

    def missing(self) -> str | None:
        """Return the part that is not ready (`database` or `slack`), or None if both are ready."""
        words = (trouble.part.readiness for trouble in self.troubles())
        return min(filter(None, words), default=None)

    def besides(self) -> list[str]:
        """Return the metric label values of the broken parts that don't affect readiness."""
        return [trouble.part.label for trouble in self.troubles() if not trouble.part.readiness]

    async def status(self) -> Status:
        """Return the status, even if the database is unavailable."""
        parts = self.parts
        waiting, counts = None, dict[str, int]()
        blocked = dict[str, None]()
        with suppress(DatabaseUnavailable):
            async with parts.database.read_only() as tx:
                waiting = JobCount(*await jobs.count(tx))
                open_incidents = await incidents.all_open(tx)
                counts["open_incidents"] = len(open_incidents)
                counts["pending_requests"] = await count_pending(tx)
                counts["undelivered_messages"] = await outbox.count_undelivered(tx)
            names = await parts.directory.known()
            blocked = dict.fromkeys(names.name_of(incident.key) for incident in open_incidents)
        return Status(
            uptime_seconds=parts.clock.monotonic() - self._started,
            database="SQLite" if parts.database.is_sqlite else "PostgreSQL",
            services=parts.services.seen(),
            jobs=waiting,
            counts=counts,
            broken=self.troubles(),
            blocked=tuple(blocked),
        )

    async def run(self, is_connected: Callable[[], Awaitable[bool]]) -> None:
        """Run the checks until the task is canceled.

        `is_connected` returns True if Socket Mode is connected or isn't used.
        """

        async def look_at_socket() -> None:
            self.note_socket(connected=await is_connected())

        async def repeat(work: Callable[[], Awaitable[None]], seconds: float) -> None:
            while True:
                await self.parts.clock.sleep(seconds)
                try:
                    await work()
                except Exception:
                    # An error must not stop the checks.
                    log.exception("health.broken_off")

        async with asyncio.TaskGroup() as group:
            for check, seconds in EVERY.items():
                group.create_task(repeat(partial(self.look, check), seconds))
            group.create_task(repeat(look_at_socket, SOCKET_EVERY))
            group.create_task(repeat(self.tell, ALERTS_EVERY))

    async def look(self, check: Check) -> None:
        """Run a check and record its findings."""
        self.note(await check(self.parts))

    def note(self, findings: Iterable[Finding]) -> None:
        """Record which parts are broken. A part without a finding keeps its state."""
        wrong: dict[Part, Finding | None] = {}
        for finding in findings:
            part = finding.subject
            if not isinstance(part, Part):
                continue
            if part is Part.SLACK_TOKEN:
                is_away = finding.code == "slack_unreachable"
                wrong[Part.SLACK_API] = finding if is_away else None
            if finding.code not in UNSURE:
                is_broken = finding.mark == WRONG and finding.code not in HARMLESS
                wrong[part] = wrong.get(part) or (finding if is_broken else None)
        for part, problem in wrong.items():
            old = self._troubles.pop(part, None)
            self.parts.metrics.working.labels(part.label).set(problem is None)
            if problem is not None:
                since = old.since if old else self.parts.clock.now()
                self._troubles[part] = Trouble(part, problem, since)
                if old is None:
                    log.error("health.broken", part=part.label, reason=problem.for_operators)
            elif old is not None:
                log.info("health.mended", part=part.label)

    def note_socket(self, *, connected: bool) -> None:
        """Record the state of Socket Mode, which is broken after a minute with no connection."""
        now = self.parts.clock.monotonic()
        if connected:
            self._heard_at = now
        finding = well(Part.SOCKET, "is connected.")
        if now - self._heard_at >= DEAF_SECONDS:
            problem = (
                "Socket Mode is not connected, so commands don't reach the bot."
                " Check SLACK_APP_TOKEN."
            )
            finding = Finding(Part.SOCKET, "socket_closed", problem)
        self.note([finding])

    async def tell(self) -> None:
        """Open an alert for each part that stays broken, or keep an existing alert open."""
        now = self.parts.clock.now()
        lasting = [
            trouble
            for trouble in self.troubles()
            if trouble.part.alerts_in and now - trouble.since >= PATIENCE
        ]
        if not lasting:
            return
        with suppress(DatabaseUnavailable):
            async with self.parts.database.transaction() as tx:
                opened_at = await tx.now()
                for trouble in lasting:
                    part = trouble.part.label
                    payload = {
                        "opened_at": opened_at.isoformat(),
                        "sentence": trouble.finding.sentence,
                    }
                    ending = Job(f"health:{part}", HEALTH_JOB, part, opened_at + OVER, payload)
                    if await jobs.ensure(tx, ending):
                        await outbox.put(tx, _outbox_message(ending))
                    else:
                        await jobs.postpone(tx, ending.key, ending.due_at)

    @property
    def kinds(self) -> dict[str, Kind]:
        """The jobs that end alerts."""
        return {HEALTH_JOB: Kind(self.end)}

    async def end(self, job: Job, lease: Lease) -> datetime | None:
        """Announce that a part is working again. This job runs once no process postpones it.

        Shortly after a start, the problem may still be there: return the time to run again.
        """
        if self.parts.clock.monotonic() - self._started < OVER.total_seconds():
            return await lease.database.now() + OVER
        async with lease.database.transaction() as tx:
            await outbox.put(tx, _outbox_message(job, await tx.now()))
            # Use the same transaction, so a crash can't cause a second announcement.
            await jobs.drop(tx, job.key)
        return None

    async def card(self, _tx: Transaction, outbox_message: OutboxMessage) -> Outgoing:
        """Return the alert's channel and current content."""
        part, payload = Part[outbox_message.subject.upper()], outbox_message.payload
        ended_at = payload.get("ended_at")
        message = messages.alert(
            part,
            str(payload["sentence"]),
            datetime.fromisoformat(payload["opened_at"]),
            None if ended_at is None else datetime.fromisoformat(ended_at),
        )
        return Outgoing(getattr(self.parts.settings, part.alerts_in), drawn(message))


def _outbox_message(job: Job, ended_at: datetime | None = None) -> OutboxMessage:
    payload = dict(job.payload) | ({} if ended_at is None else {"ended_at": ended_at.isoformat()})
    return OutboxMessage(f"{job.key}:{job.payload['opened_at']}", HEALTH_CARD, job.subject, payload)
