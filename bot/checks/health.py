"""This process's health: the periodic checks and their results."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

import structlog

from bot.checks.alerts import HealthAlerts
from bot.checks.clocks import database_clock
from bot.checks.database import database
from bot.checks.findings import Finding, well
from bot.checks.parts import Parts
from bot.checks.rules import READINESS, Part, Trouble
from bot.checks.slack import channels, slack_token

log = structlog.get_logger(__name__)

Check = Callable[[Parts], Awaitable[Sequence[Finding]]]
# Seconds between two runs. Slack lets an app read fifty channels a minute, regardless of the number
# of processes.
EVERY: dict[Check, float] = {database: 5, slack_token: 15, database_clock: 15, channels: 60}
SOCKET_EVERY = ALERTS_EVERY = 5.0
# Slack itself closes the socket from time to time, and it is reopened immediately.
DEAF_SECONDS = 60.0
# A part's state is unknown while Slack doesn't respond.
SAYS_NOTHING = frozenset(
    {"scope_missing", "slack_unreachable", "slack_rate_limited", "slack_refused"}
)
# The bot keeps working with these problems, and `check` reports them.
HARMLESS = frozenset({"channel_public", "database_encoding"})


class Health:
    """Runs the checks, and reports the problems found.

    Args:
        parts: The parts of the bot that are checked.
        alerts: Reports lasting problems.
    """

    def __init__(self, parts: Parts, alerts: HealthAlerts) -> None:
        self._parts = parts
        self._alerts = alerts
        self._troubles: dict[Part, Trouble] = {}
        self._deaf_since: float | None = None
        for part in Part:
            parts.metrics.working.labels(part.value).set(1)

    def troubles(self) -> list[Trouble]:
        """Return the current problems, the worst first."""
        return [self._troubles[part] for part in Part if part in self._troubles]

    def missing(self) -> str | None:
        """Return the part that is not ready, `database` or `slack`, or None."""
        words = (READINESS.get(trouble.part) for trouble in self.troubles())
        return min(filter(None, words), default=None)

    def besides(self) -> list[str]:
        """Return the broken parts that don't affect readiness, by their names in metrics."""
        return [trouble.part.value for trouble in self.troubles() if trouble.part not in READINESS]

    async def run(self, is_connected: Callable[[], Awaitable[bool | None]]) -> None:
        """Run the checks forever; `is_connected` returns Socket Mode's state, None if not used."""

        async def look_at_socket() -> None:
            connected = await is_connected()
            if connected is not None:
                self.note([self._socket(is_connected=connected)])

        async with asyncio.TaskGroup() as group:
            for check, seconds in EVERY.items():
                group.create_task(self._repeat(partial(self.look, check), seconds))
            group.create_task(self._repeat(look_at_socket, SOCKET_EVERY))
            group.create_task(
                self._repeat(lambda: self._alerts.tell(self.troubles()), ALERTS_EVERY)
            )

    async def _repeat(self, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            await self._parts.clock.sleep(seconds)
            try:
                await work()
            except Exception:
                # Otherwise the checks would stop.
                log.exception("health.broken_off")

    async def look(self, check: Check) -> None:
        """Run a check and note its findings."""
        self.note(await check(self._parts))

    def note(self, findings: Iterable[Finding]) -> None:
        """Start or end problems; a part without a finding keeps its state."""
        wrong: dict[Part, Finding | None] = {}
        for finding in findings:
            part = Part(finding.subject.lower().replace(" ", "_"))
            if part is Part.SLACK_TOKEN:
                is_away = finding.code == "slack_unreachable"
                wrong[Part.SLACK_API] = finding if is_away else None
            if finding.code in SAYS_NOTHING and part is not Part.SLACK_SCOPES:
                continue
            is_fine = finding.is_well or finding.code in HARMLESS
            wrong[part] = wrong.get(part) or (None if is_fine else finding)
        for part, problem in wrong.items():
            self._set(part, problem)

    def _set(self, part: Part, problem: Finding | None) -> None:
        old = self._troubles.pop(part, None)
        self._parts.metrics.working.labels(part.value).set(problem is None)
        if problem is not None:
            since = old.since if old else self._parts.clock.now()
            setting = f"{problem.subject} " if problem.subject.isupper() else ""
            self._troubles[part] = Trouble(part, f"{setting}{problem.sentence}", since)
            if old is None:
                log.error("health.broken", part=part.value, reason=problem.sentence)
        elif old is not None:
            log.info("health.mended", part=part.value)

    def _socket(self, *, is_connected: bool) -> Finding:
        """Report Socket Mode as broken after a minute without a connection."""
        now = self._parts.clock.monotonic()
        if is_connected:
            self._deaf_since = None
        elif self._deaf_since is None:
            self._deaf_since = now
        if self._deaf_since is None or now - self._deaf_since < DEAF_SECONDS:
            return well("socket", "is connected.")
        sentence = "No Socket Mode connection, so no command arrives. See SLACK_APP_TOKEN."
        return Finding("socket", "socket_closed", sentence)
