"""Runs a bot in a broken environment, and records how the bot reports the fault."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import structlog

from bot.app import Gatehouse, gatehouse
from bot.check import examine
from bot.serve import Service
from sandbox.services.running import RunningServices, running_services
from sandbox.services.state import ServicesState
from sandbox.slack.server import RunningSlack, running_slack
from tests.support.settings import read_settings
from tests.support.steady import SteadyClock
from tests.support.world import environment_for

ALARMS = re.compile(
    r'gatehouse_working\{part="\w+"\} 0\.0|gatehouse_database_up 0\.0'
    r'|gatehouse_slack_refused_total\{cause="\w+"\} [1-9]'
    r'|gatehouse_service_calls_total\{service="\w+",status="(?:401|403|5\d\d)"\} [1-9]'
    r'|gatehouse_slack_calls_total\{method="auth\.test",outcome="(?!ok)\w+"\} [1-9]'
    r'|gatehouse_waiting\{what="(?:open_incidents|undelivered_messages)"\} [1-9]'
)
HEADLINE = re.compile(r"\*(.+?)\*")


@dataclass
class Broken:
    """A bot, and an environment in which a test can break something."""

    slack: RunningSlack
    services: RunningServices
    environment: dict[str, str]
    bot: Gatehouse | None = None
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    events: list[Mapping[str, object]] = field(default_factory=list)

    @asynccontextmanager
    async def running(self, *, becomes_ready: bool = True) -> AsyncIterator[None]:
        """Run the bot until the block ends.

        If `becomes_ready` is True, the block starts only when the bot is ready.
        """
        with structlog.testing.capture_logs() as events:
            self.events = events
            async with gatehouse(read_settings(self.environment), clock=SteadyClock()) as self.bot:
                service, stopping = Service(self.bot), asyncio.Event()
                serving = asyncio.create_task(service.run(stopping))
                try:
                    while not service.addresses or (becomes_ready and await service.missing()):
                        await asyncio.wait({serving}, timeout=0.01)
                    self.slack.bot_url = service.addresses[0]
                    yield
                finally:
                    stopping.set()
                    await serving

    async def command(self, command: str, text: str = "", user: str = "U0ADMIN") -> None:
        """Send a slash command, and ignore the result."""
        await self.slack.command(user, "C0GENERAL", command, text)

    async def row(self) -> list[str]:
        """Return a table row with one cell for each place where the bot reports faults."""
        assert self.bot is not None
        status = await self.bot.health.status()
        findings = await examine(read_settings(self.environment))
        page = await self._get("/metrics")
        codes = dict.fromkeys(
            f"`{finding.code}`" for finding in findings if finding.mark == "WRONG"
        )
        return [
            f"`{await self._get('/readyz')}`",
            ", ".join(status.troubles) or "working",
            _cell(codes),
            _cell(dict.fromkeys(f"`{_alarm(line)}`" for line in ALARMS.findall(page))),
            _cell(dict.fromkeys(self._headlines())),
        ]

    def logged(self) -> set[str]:
        """Return the events that were logged as warnings or errors."""
        levels = {"warning", "error"}
        return {str(event["event"]) for event in self.events if event["log_level"] in levels}

    def _headlines(self) -> list[str]:
        workspace = self.slack.workspace
        found = []
        for channel, where in (("C0ALERTS", ""), ("C0APPROVALS", " (in the approvals channel)")):
            for message in workspace.messages(channel):
                headline = HEADLINE.search(message.text)
                if headline and (channel == "C0ALERTS" or "attention" in headline[1]):
                    found.append(f"{headline[1]}{where}")
        return found

    async def _get(self, path: str) -> str:
        url = f"{self.slack.bot_url}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return await answer.text()


def _cell(words: Mapping[str, object]) -> str:
    return ", ".join(words) or "–"


def _alarm(line: str) -> str:
    """Return the name of a metric, followed by a zero if the metric's value is zero."""
    series, _, value = line.rpartition(" ")
    return f"{series} 0" if value == "0.0" else series


@asynccontextmanager
async def surroundings(database_url: str) -> AsyncIterator[Broken]:
    """Run stand-ins for Slack and the services, and yield an environment with a bot's settings."""
    async with running_services(ServicesState()) as services, running_slack() as slack:
        environment = environment_for(slack, services, database_url)
        environment |= {"INVENTORY_WATCH": "off"}
        broken = Broken(slack, services, environment)
        async with broken.stack:
            yield broken
