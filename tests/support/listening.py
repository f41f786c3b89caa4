"""A small bot: the real frame, endpoint and replies around listeners that a test makes up."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from bot.clients.http import open_session
from bot.clients.replies import Replies
from bot.clients.slack import SlackClient
from bot.clock import Clock, SystemClock
from bot.errors import Refused, UnknownPerson
from bot.metrics import Metrics
from bot.model.pace import CommandPace
from bot.permissions import Permission, Person
from bot.server import MeasuredApp, SlackEndpoint, make_server
from bot.tasks import Tasks
from handlers.entry import Frame
from sandbox.slack.server import RunningSlack, running_slack
from tests.support.http import InstantClock


@dataclass
class FakePeople:
    """Finds everybody, except who is lost; admits all but strangers."""

    lost: set[str] = field(default_factory=set)
    strangers: set[str] = field(default_factory=set)

    async def find(self, slack_user_id: str, team_ids: Iterable[str | None] = ()) -> Person:
        if slack_user_id in self.lost:
            raise UnknownPerson("Nobody knows who you are.")
        return Person(slack_user_id, slack_user_id)

    async def admit(self, person: Person, permission: Permission) -> None:
        if person.slack_user_id in self.strangers:
            raise Refused(f"You may not {permission}.")


@dataclass
class SmallBot:
    """The frame to register with, and what can be seen from outside."""

    frame: Frame
    slack: RunningSlack
    people: FakePeople
    waits: InstantClock

    async def outcomes(self) -> dict[tuple[str, str], float]:
        """How often each (name, outcome) was counted, once nothing runs any more."""
        await self.frame.tasks.drain(5)
        return {
            (sample.labels["name"], sample.labels["outcome"]): sample.value
            for family in self.frame.metrics.commands.collect()
            for sample in family.samples
            if sample.name.endswith("_total")
        }


@asynccontextmanager
async def small_bot(commands_per_minute: int = 0) -> AsyncIterator[SmallBot]:
    """Listen until the block ends; a test registers on `frame` inside it."""
    async with running_slack() as slack, open_session() as session:
        metrics, tasks, clock = Metrics(), Tasks(), SystemClock()
        app = _app(slack, metrics, clock)
        waits, people = InstantClock(), FakePeople()
        pace = CommandPace(commands_per_minute, {})
        web_client = AsyncWebClient("xoxb-sandbox", base_url=slack.api_url, session=session)
        replies = Replies(session, waits, SlackClient(web_client, clock))
        frame = Frame(app, people, pace, tasks, metrics, replies, clock)
        endpoint = SlackEndpoint(app, slack.signing_secret)
        runner = web.AppRunner(make_server(endpoint, _never, _nothing, None), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        slack.bot_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield SmallBot(frame, slack, people, waits)
        finally:
            await tasks.drain(5)
            await runner.cleanup()


def _app(slack: RunningSlack, metrics: Metrics, clock: Clock) -> AsyncApp:
    async def authorize(**_: object) -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=None, team_id=None, bot_token="xoxb-sandbox")

    client = AsyncWebClient(base_url=slack.api_url)
    settings = {"client": client, "authorize": authorize, "request_verification_enabled": False}
    return MeasuredApp(metrics, clock, **settings)


async def _never() -> str | None:
    return "slack"


async def _nothing() -> bytes:
    return b""
