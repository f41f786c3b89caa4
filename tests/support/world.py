"""The whole world on loopback: the real bot over signed HTTP, Slack and the services stood in for.

async with running_world(tmp_path) as world:
    await world.slack.command("U0OPERATOR", "C0GENERAL", "/orgs", "")
    answer = await world.answer("U0OPERATOR")
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

from bot.app import Gatehouse, gatehouse
from bot.ops.clock import Clock
from bot.serve import Service
from bot.settings import read_settings
from bot.store.sqlite import is_sqlite
from sandbox.patience import PATIENCE_SECONDS
from sandbox.services.running import RunningServices, running_services
from sandbox.services.state import ServicesState
from sandbox.slack.dump import dump
from sandbox.slack.messages import Message
from sandbox.slack.server import Found, RunningSlack, attempt, running_slack
from tests.support.steady import LaterClock, SteadyLoop

QUIET_SECONDS = 0.02
STEP = timedelta(seconds=1)
ROLES = {
    "viewer": ["U0VIEWER"],
    "operator": ["U0OPERATOR"],
    "approver": ["U0APPROVER", "S0APPROVERS"],
    "admin": ["U0ADMIN"],
}


@dataclass
class World:
    """A running bot and what it talks to."""

    bot: Gatehouse
    slack: RunningSlack
    services: RunningServices
    environment: dict[str, str]
    clock: LaterClock

    async def until(self, predicate: Callable[[], Found]) -> Found:
        """Wait until something is true; stands in for `slack.until`, but waits for no pause."""
        loop, workspace = asyncio.get_running_loop(), self.slack.workspace
        deadline = loop.time() + PATIENCE_SECONDS
        while not (found := attempt(predicate)):
            assert loop.time() < deadline, f"never; there is:\n{dump(workspace)}"
            if await self._is_quiet() and not self.services.state.latency_seconds:
                self.clock.ahead += STEP
        return found

    async def later(self, ahead: timedelta) -> None:
        """Set the clock so far forward, when no job runs that would seem to take so long."""
        while not await self._is_quiet() or self.bot.jobs._running:
            pass
        self.clock.ahead = max(ahead, self.clock.ahead)

    async def _is_quiet(self) -> bool:
        """Whether nothing comes from any socket or thread: then nothing will before time passes."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SteadyLoop)
        heard = loop.selector.heard
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_SECONDS):
                await self.slack.workspace.change()
        return loop.selector.heard == heard

    async def ask(self, user: str, command: str, text: str = "", channel: str = "C0GENERAL"):
        """Type a command; return the answer once it is there and no longer "Working on it"."""
        before = len(self.slack.workspace.ephemerals(user))
        delivery = await self.slack.command(user, channel, command, text)
        assert delivery.status == 200
        return await self.answer(user, after=before)

    async def answer(self, user: str, *, after: int = 0) -> Message:
        """Wait for the next private answer to somebody."""

        def found() -> Message | None:
            new = self.slack.workspace.ephemerals(user)[after:]
            return new[-1] if new and "Working on it" not in new[-1].all_text else None

        return await self.slack.until(found)


@asynccontextmanager
async def running_world(
    database_url: str,
    *,
    clock: Clock | None = None,
    services: ServicesState | None = None,
    prepare: Callable[[RunningSlack], Awaitable[None]] | None = None,
    **settings: str,
) -> AsyncIterator[World]:
    """Run the bot in this process, as `python -m bot` does, until the block ends.

    Args:
        database_url: Of a new database.
        clock: The bot's; one that `until` sets forward when left out.
        services: The stand-ins' state; a fresh one when left out.
        prepare: What is done before the bot starts.
        settings: Environment variables in small letters, over the usual ones.
    """
    clock = clock or LaterClock()
    if services is None:
        services = ServicesState(now=_time_of(database_url, clock))
    async with running_services(services) as running, running_slack() as slack:
        environment = {
            **environment_for(slack, running, database_url),
            **{name.upper(): value for name, value in settings.items()},
        }
        # Whoever measures an acknowledgement does so; the others wait for it on a busy machine.
        slack.wait_for_acknowledgements(PATIENCE_SECONDS)
        if prepare is not None:
            await prepare(slack)
        async with gatehouse(read_settings(environment), clock=clock) as bot:
            service = Service(bot)
            stopping = asyncio.Event()
            serving = asyncio.create_task(service.run(stopping))
            await _ready(service, serving)
            slack.bot_url = service.addresses[0]
            world = World(bot, slack, running, environment, clock)
            if is_sqlite(database_url) and isinstance(clock, LaterClock):
                slack.until = world.until  # type: ignore[method-assign]
            try:
                yield world
            finally:
                stopping.set()
                await serving


def _time_of(database_url: str, clock: Clock) -> Callable[[], float]:
    """The clock by which the bot sees to the limits: a server has its own, which goes on."""
    return (lambda: clock.now().timestamp()) if is_sqlite(database_url) else time.time


def environment_for(
    slack: RunningSlack, services: RunningServices, database_url: str
) -> dict[str, str]:
    """Return the settings of a bot among the default people."""
    return {
        "SLACK_BOT_TOKEN": slack.workspace.bot_token,
        "SLACK_SIGNING_SECRET": slack.signing_secret,
        "SLACK_API_URL": slack.api_url,
        "HOST": "127.0.0.1",
        "PORT": "0",
        "DATABASE_URL": database_url,
        "ROLES": json.dumps(ROLES),
        "ALERTS_CHANNEL": "C0ALERTS",
        "APPROVALS_CHANNEL": "C0APPROVALS",
        # A fault of Slack's that is meant for another message would hit the audit's.
        "AUDIT_WITNESS": "off",
        **services.bot_settings(),
    }


async def _ready(service: Service, serving: "asyncio.Task[None]") -> None:
    while await service.missing() is not None:
        await asyncio.wait({serving}, timeout=0.01)
        if serving.done():
            serving.result()
