"""Runs the real bot, which sends HTTP requests to stand-ins for Slack and the services.

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
from typing import Any

from sqlalchemy import QueuePool

from bot.app import Gatehouse, gatehouse
from bot.ops.clock import Clock
from bot.serve import Service
from sandbox.patience import PATIENCE_SECONDS
from sandbox.services.running import RunningServices, running_services
from sandbox.services.state import SURVEY_FLOW, WELCOME_FLOW, Flow, ServicesState
from sandbox.slack.dump import dump
from sandbox.slack.messages import Message, View
from sandbox.slack.server import Found, RunningSlack, attempt, running_slack
from tests.support.settings import read_settings
from tests.support.steady import LaterClock, SteadyLoop

WELCOME, SURVEY = WELCOME_FLOW, SURVEY_FLOW
OTTO, ADA, ABEL, ADAM = "U0OPERATOR", "U0APPROVER", "U0APPROVER2", "U0ADMIN"
VERA, NORA = "U0VIEWER", "U0NOROLE"
QUIET_SECONDS = 0.004
STEP = timedelta(seconds=1)
ROLES = {
    "viewer": ["U0VIEWER"],
    "operator": ["U0OPERATOR"],
    "approver": ["U0APPROVER", "S0APPROVERS"],
    "admin": ["U0ADMIN"],
}


@dataclass
class World:
    """A running bot, and the stand-ins that the bot talks to."""

    bot: Gatehouse
    slack: RunningSlack
    services: RunningServices
    environment: dict[str, str]
    clock: LaterClock
    service: Service

    async def until(self, predicate: Callable[[], Found]) -> Found:
        """Wait until the predicate is true, and move the clock forward while the bot is idle."""
        loop, workspace = asyncio.get_running_loop(), self.slack.workspace
        deadline = loop.time() + PATIENCE_SECONDS
        while not (found := attempt(predicate)):
            assert loop.time() < deadline, f"never; there is:\n{dump(workspace)}"
            if await self._is_quiet() and not self.services.state.latency_seconds:
                self.clock.ahead += STEP
        return found

    async def later(self, ahead: timedelta) -> None:
        """Move the clock forward when no job is running, so that no job seems slow."""
        while not await self._is_quiet() or self.bot.jobs._running:
            pass
        self.clock.ahead = max(ahead, self.clock.ahead)

    async def _is_quiet(self) -> bool:
        """Return True if no socket, task or statement is active: the bot is idle."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SteadyLoop)
        heard = loop.selector.heard
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_SECONDS):
                await self.slack.workspace.change()
        is_silent = loop.selector.heard == heard and not loop.is_busy
        pool = self.bot.database.engine.sync_engine.pool
        assert isinstance(pool, QueuePool)
        return is_silent and not pool.checkedout()

    async def ask(self, user: str, command: str, text: str = "", channel: str = "C0GENERAL"):
        """Send a slash command, and return the first reply other than "Working on it"."""
        before = len(self.slack.workspace.ephemerals(user))
        delivery = await self.slack.command(user, channel, command, text)
        assert delivery.status == 200
        return await self.answer(user, after=before)

    async def answer(self, user: str, *, after: int = 0) -> Message:
        """Wait for the next reply that only this person can see."""

        def found() -> Message | None:
            new = self.slack.workspace.ephemerals(user)[after:]
            return new[-1] if new and "Working on it" not in new[-1].all_text else None

        return await self.slack.until(found)

    @property
    def flow(self) -> Flow:
        """The service's `welcome` flow."""
        return self.services.state.flows[WELCOME]

    def cards(self) -> list[Message]:
        """Return the messages in the approvals channel, except for replies in threads."""
        return self.slack.workspace.messages("C0APPROVALS")

    async def card(self, nth: int = 0) -> Message:
        """Wait for a card in the approvals channel."""
        return await self.slack.until(lambda: self.cards()[nth])

    async def asked(self, text: str, by: str = OTTO) -> Message:
        """Make a request with `/testusers`, and return the card."""
        before = len(self.cards())
        await self.ask(by, "/testusers", text)
        return await self.card(before)

    async def applied(self, text: str) -> Message:
        """Make and approve a request. Return the card once the change has been applied."""
        card = await self.asked(text)
        await self.slack.click(ADA, card, "Approve")
        await self.shows(card, "*Applied*")
        return card

    async def click(self, user: str, message: Message, button: str) -> Message:
        """Click a button, and return the reply."""
        before = len(self.slack.workspace.ephemerals(user))
        assert (await self.slack.click(user, message, button)).status == 200
        return await self.answer(user, after=before)

    async def form(self, user: str = OTTO) -> View:
        """Wait until a form is open for a person, and return the form."""
        return await self.slack.until(lambda: self.slack.workspace.open_view(user))

    async def opened_form(self) -> View:
        """Open the `/testusers` form."""
        await self.slack.command(OTTO, "C0GENERAL", "/testusers", "")
        return await self.form()

    async def shows(self, message: Message | View, *words: str) -> None:
        """Wait until a message or a Home tab contains all of these words."""
        await self.slack.until(lambda: all(item in message.all_text for item in words))

    async def approve(self, message: Message, *words: str, by: str = ADA) -> None:
        """Click `Approve`, and wait until the message contains all of these words."""
        await self.click(by, message, "Approve")
        await self.shows(message, *words)

    async def told(self, user: str, words: str) -> None:
        """Wait until a person has received a direct message that contains these words."""
        dm = self.slack.workspace.dm
        await self.slack.until(lambda: any(words in item.all_text for item in dm(user)))


@asynccontextmanager
async def running_world(
    database_url: str,
    *,
    clock: Clock | None = None,
    services: ServicesState | None = None,
    prepare: Callable[[RunningSlack], Awaitable[None]] | None = None,
    **settings: str,
) -> AsyncIterator[World]:
    """Run the bot as `python -m bot` does, but in the same process as the test.

    `prepare` is called before the bot starts. If no `clock` is given, the bot gets a clock that
    `until` moves forward. `settings` are environment variables that override the defaults. The
    names of these variables are in lowercase.
    """
    clock = clock or LaterClock()
    if services is None:
        services = ServicesState(now=_time_of(database_url, clock))
    async with running_services(services) as running, running_slack() as slack:
        environment = {
            **environment_for(slack, running, database_url),
            **{name.upper(): value for name, value in settings.items()},
        }
        # Some tests measure how fast the bot acknowledges; the others allow for a busy machine.
        slack.wait_for_acknowledgements(PATIENCE_SECONDS)
        if prepare is not None:
            await prepare(slack)
        async with gatehouse(read_settings(environment), clock=clock) as bot:
            service = Service(bot)
            stopping = asyncio.Event()
            serving = asyncio.create_task(service.run(stopping))
            await _ready(service, serving)
            slack.bot_url = service.addresses[0]
            world = World(bot, slack, running, environment, clock, service)
            if database_url.startswith("sqlite:") and isinstance(clock, LaterClock):
                slack.until = world.until  # type: ignore[method-assign]
            try:
                yield world
            finally:
                stopping.set()
                await serving


@asynccontextmanager
async def empty_world(database_url: str, **more: Any) -> AsyncIterator[World]:
    """Run the bot as `running_world` does, but start with an empty `welcome` list."""
    async with running_world(database_url, **more) as world:
        world.flow.identities.clear()
        yield world


def _time_of(database_url: str, clock: Clock) -> Callable[[], float]:
    """Return the bot's clock for SQLite, or the machine's clock for PostgreSQL."""
    return (lambda: clock.now().timestamp()) if database_url.startswith("sqlite:") else time.time


def environment_for(
    slack: RunningSlack, services: RunningServices, database_url: str
) -> dict[str, str]:
    """Return settings for a bot that uses the stand-ins and the default roles."""
    return {
        "GATEHOUSE_CONFIG": "",
        "SLACK_BOT_TOKEN": slack.workspace.bot_token,
        "SLACK_SIGNING_SECRET": slack.signing_secret,
        "SLACK_API_URL": slack.api_url,
        "HOST": "127.0.0.1",
        "PORT": "0",
        "DATABASE_URL": database_url,
        "ROLES": json.dumps(ROLES),
        "ALERTS_CHANNEL": "C0ALERTS",
        "APPROVALS_CHANNEL": "C0APPROVALS",
        # The audit message would otherwise trigger a Slack fault meant for another message.
        "AUDIT_WITNESS": "off",
        **services.bot_settings(),
    }


async def _ready(service: Service, serving: "asyncio.Task[None]") -> None:
    while await service.missing() is not None:
        await asyncio.wait({serving}, timeout=0.01)
        if serving.done():
            serving.result()
