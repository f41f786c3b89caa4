"""Runs several real bot processes that share a database and a load balancer."""

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
# Slack waits three seconds. On a busy machine, a process may not even get to run in that time.
ACK_SECONDS = 15.0
SLACKBOT = "USLACKBOT"
WORKING = "Working on it"


class NoAnswerError(AssertionError):
    """Someone got no reply."""


@dataclass
class Fleet:
    """The bot processes, and the stand-ins for Slack and the services."""

    slack: RunningSlack
    services: RunningServices
    session: aiohttp.ClientSession
    environment: dict[str, str]
    processes: list[BotProcess] = field(default_factory=list)
    # Start processes the way operators do, which is slower: see `BotProcess`.
    are_fresh: bool = False
    answer_seconds: float = ANSWER_SECONDS

    def alive(self) -> list[str]:
        """Return the addresses of all running processes."""
        return [
            process.address for process in self.processes if process.is_running and process.address
        ]

    async def add(
        self, launcher: Sequence[str] = ("-m", "bot"), *, wait: bool = True, **settings: str
    ) -> BotProcess:
        """Start another process. If `settings` are given, they apply only to this process."""
        own = {name.upper(): value for name, value in settings.items()}
        environment = {**self.environment, **own}
        process = BotProcess(environment, self.session, launcher, is_fresh=self.are_fresh)
        self.processes.append(process)
        await process.start()
        return await process.ready() if wait else process

    async def ask(self, user: str, command: str, text: str = "") -> Message:
        """Type a command. Return the first reply other than "Working on it".

        Slack's notice that the bot did not respond also counts as a reply. See `is_silence`.
        """
        before = len(self.seen_by(user))
        await self.slack.command(user, "C0GENERAL", command, text)
        return await self.answer(user, after=before, channel="C0GENERAL")

    def seen_by(self, user: str) -> list[Message]:
        """Return the messages that only this person can see, oldest first."""
        return self.slack.workspace.ephemerals(user)

    async def answer(
        self, user: str, *, after: int = 0, seconds: float = 0.0, channel: str = ""
    ) -> Message:
        """Wait for the next reply to a person.

        If `channel` is given, only replies in that channel count.

        Raises:
            NoAnswerError: No reply came in time.
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
        """Run `python -m bot audit verify`. Return its output."""
        environment = {"PATH": "", **self.environment}
        status, said = await run_forked(("audit", "verify"), environment)
        assert status == 0, said
        return said.strip()

    async def look_at_audit(self) -> int:
        """Verify the audit log without starting a process. Return the number of entries."""
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
        """All tracebacks that the processes have logged."""
        return [line for process in self.processes for line in process.tracebacks]


def is_silence(message: Message) -> bool:
    """Return True if the message is Slack's notice that the bot did not respond."""
    return message.user == SLACKBOT


@asynccontextmanager
async def running_fleet(
    database_url: str,
    count: int = 1,
    *,
    services: ServicesState | None = None,
    **settings: str,
) -> AsyncIterator[Fleet]:
    """Run `count` bot processes that share a database, and kill them at the end of the block.

    `settings` are environment variables in lower case. They override the defaults.
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
