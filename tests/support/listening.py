"""Runs a small bot with the real Slack endpoint. Each test adds its listeners to the bot."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from aiohttp import web
from pydantic import SecretStr
from slack_sdk.web.async_client import AsyncWebClient

from bot.metrics import Metrics
from bot.ops.clock import SystemClock
from bot.permissions import Permission, Person
from bot.server import Site, make_server
from bot.services.http import open_session
from bot.slack.client import SlackClient
from bot.slack.messages import block_kit
from bot.slack.messages.block_kit import Message
from bot.slack.people import Pace
from bot.slack.replies import Replies
from bot.tasks import Tasks
from handlers.bolt import GatehouseApp
from handlers.endpoint import Refusals, SlackEndpoint
from handlers.listening import COMMAND, AnswerAt, Needs
from sandbox.slack.server import RunningSlack, running_slack
from tests.support.clock import JumpingClock

USER, CHANNEL = "U0VIEWER", "C0GENERAL"
BUTTON = Message(
    "the list",
    (block_kit.section("the list"), block_kit.actions(block_kit.button("Next", "press", "7"))),
)
MODAL = {
    "type": "modal",
    "callback_id": "form",
    "title": {"type": "plain_text", "text": "Form"},
    "submit": {"type": "plain_text", "text": "Send"},
    "blocks": [
        {
            "type": "input",
            "block_id": "why",
            "label": {"type": "plain_text", "text": "Why"},
            "element": {"type": "plain_text_input", "action_id": "typed"},
        }
    ],
}


Answer = Callable[[Any], Awaitable[Any]]


def work(answer: Answer) -> Callable[[Any, Any, Any], Awaitable[Any]]:
    """Return work that passes Slack's payload to `answer`."""

    async def listen(_bot: Any, _person: Any, body: Any) -> Any:
        return await answer(body)

    return listen


class FakePeople:
    """Knows and admits everyone."""

    bot_user_id = "U0BOT"

    async def find(self, slack_user_id: str, team_ids: Iterable[str | None] = ()) -> Person:
        return Person(slack_user_id, slack_user_id)

    async def require(self, person: Person, permission: Permission) -> None:
        pass


@dataclass
class FakeDeliveries:
    """Tells the bot whether a delivery is new, and counts how often the bot asks."""

    is_first: bool = True
    asked: int = 0

    async def take(self) -> bool:
        self.asked += 1
        return self.is_first


@dataclass
class SmallBot:
    """A small bot and a stand-in for Slack. A test adds its listeners to the bot."""

    parts: SimpleNamespace
    app: GatehouseApp
    slack: RunningSlack
    waits: JumpingClock
    deliveries: FakeDeliveries

    def command(self, name: str, answer: Answer) -> None:
        """Add a listener for the command `name`."""
        self.app.command(name)(self.app.listening.listener(work(answer), COMMAND))

    def action(
        self,
        action_id: str,
        answer: Answer,
        place: AnswerAt = AnswerAt.BELOW,
        permission: Permission = Permission.ASK_FOR_HELP,
    ) -> None:
        """Add a listener for a button."""
        needs = Needs(permission, place)
        self.app.action(action_id)(self.app.listening.listener(work(answer), needs))

    async def outcomes(self) -> dict[tuple[str, str], float]:
        """Wait until all tasks are done. Count the commands for each name and outcome."""
        await self.parts.tasks.drain(5)
        return {
            (sample.labels["name"], sample.labels["outcome"]): sample.value
            for family in self.parts.metrics.commands.collect()
            for sample in family.samples
            if sample.name.endswith("_total") and sample.value
        }


@asynccontextmanager
async def small_bot(commands_per_minute: int = 0) -> AsyncIterator[SmallBot]:
    """Run a small bot until the block ends. The test adds its listeners inside the block."""
    async with running_slack() as slack, open_session() as session:
        clock, waits, deliveries = SystemClock(), JumpingClock(), FakeDeliveries()
        web_client = AsyncWebClient("xoxb-sandbox", base_url=slack.api_url, session=session)
        parts = SimpleNamespace(
            slack=SimpleNamespace(
                people=FakePeople(),
                received=deliveries,
                pace=Pace(commands_per_minute, clock),
                web=web_client,
                replies=Replies(session, waits, SlackClient(web_client, clock), slack.api_url),
            ),
            clock=clock,
            home=SimpleNamespace(open=_drawn),
            metrics=Metrics(),
            tasks=Tasks(),
            settings=SimpleNamespace(
                slack_bot_token=SecretStr("xoxb-sandbox"),
                slack_signing_secret=SecretStr(slack.signing_secret),
            ),
        )
        app = GatehouseApp(parts)
        refusals = Refusals(parts.metrics, clock)
        endpoint = SlackEndpoint(app, slack.signing_secret, refusals).handle
        server = make_server(endpoint, _never, _nothing, None, list, refusals.misdirected)
        runner = web.AppRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        await Site(runner, ("127.0.0.1", 0), 500, refusals.unreadable).start()
        slack.bot_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield SmallBot(parts, app, slack, waits, deliveries)
        finally:
            await parts.tasks.drain(5)
            await runner.cleanup()


async def _drawn(*_: object) -> None:
    pass


async def _never() -> str | None:
    return "slack"


async def _nothing() -> bytes:
    return b""


def seen(bot) -> list[str]:
    return [message.text for message in bot.slack.workspace.ephemerals(USER)]


async def shown_button(bot):
    """Run a command whose reply contains a button. Return the reply."""

    async def answer(ask):
        return BUTTON

    bot.command("/list", answer)
    await bot.slack.command(USER, CHANNEL, "/list")
    return await bot.slack.until(lambda: bot.slack.workspace.ephemerals(USER)[-1])


class Held:
    """A listener function that waits until a test sets `release`."""

    def __init__(self, result: Message | Exception | None) -> None:
        self.release = asyncio.Event()
        self._result = result

    async def __call__(self, ask) -> Message | None:
        await self.release.wait()
        if isinstance(self._result, Exception):
            raise self._result
        return self._result
