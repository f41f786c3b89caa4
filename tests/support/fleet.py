"""Several processes of the real bot behind a balancer, on one database, among stand-ins."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from bot.ops.clock import SystemClock
from bot.store import audit
from bot.store.engine import Database
from sandbox.services.running import RunningServices, running_services
from sandbox.services.state import ServicesState
from sandbox.slack.messages import Message
from sandbox.slack.server import RunningSlack, running_slack
from tests.support.balancer import running_balancer
from tests.support.forks import run_forked
from tests.support.processes import BotProcess
from tests.support.world import environment_for

ANSWER_SECONDS = 25.0
# Slack waits for three seconds, which a process on a busy machine can take to be let on.
ACK_SECONDS = 15.0
SLACKBOT = "USLACKBOT"
WORKING = "Working on it"


class NoAnswerError(AssertionError):
    """Somebody was left without an answer."""


@dataclass
class Fleet:
    """The processes and what they talk to."""

    slack: RunningSlack
    services: RunningServices
    session: aiohttp.ClientSession
    environment: dict[str, str]
    processes: list[BotProcess] = field(default_factory=list)
    # As operators start them, and slower: see `BotProcess`.
    are_fresh: bool = False
    answer_seconds: float = ANSWER_SECONDS

    def alive(self) -> list[str]:
        """Where the balancer sends what comes."""
        return [
            process.address for process in self.processes if process.is_running and process.address
        ]

    async def add(
        self, launcher: Sequence[str] = ("-m", "bot"), *, wait: bool = True, **settings: str
    ) -> BotProcess:
        """Start one process more, with settings of its own if need be."""
        own = {name.upper(): value for name, value in settings.items()}
        environment = {**self.environment, **own}
        process = BotProcess(environment, self.session, launcher, is_fresh=self.are_fresh)
        self.processes.append(process)
        await process.start()
        return await process.ready() if wait else process

    async def ask(self, user: str, command: str, text: str = "") -> Message:
        """Type a command; return the answer once it is there and no longer "Working on it".

        What Slack itself says when the bot did not answer counts as the answer; see `is_silence`.
        """
        before = len(self.seen_by(user))
        await self.slack.command(user, "C0GENERAL", command, text)
        return await self.answer(user, after=before, channel="C0GENERAL")

    def seen_by(self, user: str) -> list[Message]:
        """What only this person saw, oldest first."""
        return self.slack.workspace.ephemerals(user)

    async def answer(
        self, user: str, *, after: int = 0, seconds: float = 0.0, channel: str = ""
    ) -> Message:
        """Wait for the next answer to somebody, in one channel if it is given.

        Raises:
            NoAnswerError: There is none in time.
        """

        seconds = seconds or self.answer_seconds

        def found() -> Message | None:
            new = [item for item in self.seen_by(user)[after:] if WORKING not in item.all_text]
            return next((m for m in reversed(new) if channel in ("", m.channel)), None)

        try:
            return await self.slack.until(found, timeout=seconds)
        except AssertionError:
            raise NoAnswerError(f"{user} has no answer after {seconds:.0f} s") from None

    async def verify_audit(self) -> str:
        """Run `python -m bot audit verify`; return what it says."""
        environment = {"PATH": "", **self.environment}
        status, said = await run_forked(("audit", "verify"), environment)
        assert status == 0, said
        return said.strip()

    async def look_at_audit(self) -> int:
        """Do the same from here, which is quicker; return how many entries there are."""
        database = Database(self.environment["DATABASE_URL"], SystemClock())
        try:
            async with database.read_only() as tx:
                verdict = await audit.verify(tx)
        finally:
            await database.close()
        assert verdict.is_intact, verdict
        return verdict.entries

    @property
    def tracebacks(self) -> list[str]:
        """Every traceback that any process logged."""
        return [line for process in self.processes for line in process.tracebacks]


def is_silence(message: Message) -> bool:
    """Whether this is Slack saying that the bot did not answer."""
    return message.user == SLACKBOT


@asynccontextmanager
async def running_fleet(
    database_url: str,
    count: int = 1,
    *,
    services: ServicesState | None = None,
    **settings: str,
) -> AsyncIterator[Fleet]:
    """Run `count` processes on a new database until the block ends; then none is left.

    `settings` are environment variables in small letters, which replace the usual ones.
    """
    async with (
        running_services(services or ServicesState()) as running,
        running_slack() as slack,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session,
    ):
        environment = {
            **environment_for(slack, running, database_url),
            **{name.upper(): value for name, value in settings.items()},
        }
        fleet = Fleet(slack, running, session, environment)
        slack.wait_for_acknowledgements(ACK_SECONDS)
        async with running_balancer(fleet.alive) as balancer:
            slack.bot_url = balancer.url
            try:
                await asyncio.gather(*(fleet.add() for _ in range(count)))
                yield fleet
            finally:
                await asyncio.gather(*(process.kill() for process in fleet.processes))
