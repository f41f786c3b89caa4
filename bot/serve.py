"""`python -m bot`: start, serve, stop."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler

from bot.app import Gatehouse, gatehouse
from bot.errors import (
    DatabaseTooNew,
    DatabaseUnavailable,
    SlackError,
    SlackRateLimited,
    SlackRefused,
)
from bot.redaction import Redactor
from bot.server import make_server
from bot.settings import Settings, revealed
from bot.store import jobs
from bot.store.engine import ProcessLock
from bot.store.migrations import migrate

log = structlog.get_logger(__name__)

# Contract, section 2: ten seconds in all.
FINISH_SECONDS = 9.0
HANG_UP_SECONDS = 0.5
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 5.0
PING_SECONDS = 2.0
# A connection without a whole request for so long is closed. Load balancers keep theirs for 60 s.
IDLE_SECONDS = 75.0


class CannotStartError(Exception):
    """One sentence that says why the program ends with exit status 2."""


class Service:
    """One process of the bot, from its start to its end."""

    def __init__(self, bot: Gatehouse) -> None:
        self._bot = bot
        self._is_migrated = False
        self._is_slack_tried = False
        self._socket: AsyncSocketModeHandler | None = None
        self.addresses: list[str] = []

    async def missing(self) -> str | None:
        """Return what readiness lacks: `database`, `slack`, or nothing."""
        if not self._is_migrated or not await self._database_answers():
            return "database"
        return None if self._is_slack_tried else "slack"

    async def _database_answers(self) -> bool:
        try:
            async with asyncio.timeout(PING_SECONDS):
                await self._bot.database.ping()
        except (DatabaseUnavailable, TimeoutError):
            return False
        return True

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set, then finish what runs.

        Raises:
            CannotStartError: Slack refuses a token, or the database is of a newer program.
        """
        runner = await self._listen()
        working = asyncio.create_task(self._work(), name="work")
        stopped = asyncio.create_task(stopping.wait(), name="stop")
        try:
            await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            await self._stop(runner, working, stopped)

    async def _listen(self) -> web.AppRunner:
        settings = self._bot.settings
        endpoint = None if settings.slack_app_token else self._bot.endpoint
        token = revealed(settings.metrics_token)
        server = make_server(endpoint, self.missing, self._scrape, token)
        runner = web.AppRunner(
            server,
            access_log=None,
            shutdown_timeout=HANG_UP_SECONDS,
            keepalive_timeout=IDLE_SECONDS,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, settings.host, settings.port).start()
        except OSError as error:
            await runner.cleanup()
            raise CannotStartError(
                f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}."
            ) from error
        self.addresses = [f"http://{host}:{port}" for host, port, *_ in runner.addresses]
        log.info("listening", addresses=self.addresses)
        return runner

    async def _scrape(self) -> bytes:
        status = await self._bot.desk.status.status()
        standings = None
        with contextlib.suppress(DatabaseUnavailable):
            standings = await self._bot.desk.ratelimits.standings()
        self._bot.metrics.show(status, standings)
        # Thousands of organizations take a while to write down; commands are answered meanwhile.
        return await asyncio.to_thread(self._bot.metrics.page)

    async def _work(self) -> None:
        """Bring everything up, however long it takes, and then run the jobs."""
        await until_it_works("database", self._migrate, self._bot.clock.sleep)
        self._is_migrated = True
        both = {
            asyncio.create_task(self._bot.jobs.run(), name="jobs"),
            asyncio.create_task(self._connect_slack(), name="slack"),
        }
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _migrate(self) -> None:
        try:
            await migrate(self._bot.database)
        except DatabaseTooNew as error:
            raise CannotStartError(error.sentence) from error
        async with self._bot.database.transaction() as tx:
            if self._bot.database.is_sqlite:
                # One process at a time has the file, so whoever held a lease is dead.
                await jobs.release_all(tx)
            for plan in self._bot.plans:
                await plan(tx)

    async def _connect_slack(self) -> None:
        await until_it_works("slack", self._try_slack, self._bot.clock.sleep)
        self._is_slack_tried = True
        log.info("ready")

    async def _try_slack(self) -> None:
        try:
            me = await self._bot.slack.who_am_i()
            self._bot.desk.people.meet(me.team_id, me.slack_user_id)
            app_token = revealed(self._bot.settings.slack_app_token)
            if app_token is not None:
                await self._open_socket(app_token)
        except SlackRefused as error:
            raise CannotStartError(
                f"Slack refused the token: {error.error}. "
                "Check SLACK_BOT_TOKEN and SLACK_APP_TOKEN."
            ) from error

    async def _open_socket(self, app_token: str) -> None:
        await self._bot.slack.try_app_token(app_token)
        self._socket = AsyncSocketModeHandler(self._bot.app, app_token)
        await self._socket.connect_async()  # type: ignore[no-untyped-call]

    async def _stop(self, runner: web.AppRunner, *tasks: "asyncio.Task[object]") -> None:
        """Take no new work; finish what runs, within ten seconds."""
        log.info("stopping")
        deadline = asyncio.get_running_loop().time() + FINISH_SECONDS
        for site in list(runner.sites):
            await site.stop()
        if runner.server is not None:
            # Connections that are kept open would bring new requests.
            runner.server.pre_shutdown()
        if self._socket is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HANG_UP_SECONDS):
                    await self._socket.close_async()  # type: ignore[no-untyped-call]
        left = deadline - asyncio.get_running_loop().time()
        await asyncio.gather(self._bot.tasks.drain(left), self._bot.jobs.stop(left))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await runner.cleanup()
        # What was being read is acknowledged until then, and its answer is still to come.
        await self._bot.tasks.drain(deadline - asyncio.get_running_loop().time())


async def until_it_works(
    what: str,
    attempt: Callable[[], Awaitable[None]],
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """Try again and again, with growing pauses, while something cannot be reached.

    When Slack says for how long it wants to be left alone, the pause is that long at least.
    """
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            await attempt()
        except (DatabaseUnavailable, SlackError) as error:
            log.warning("start.waiting", waiting_for=what, reason=error.sentence)
            asked = error.retry_after_seconds if isinstance(error, SlackRateLimited) else 0.0
        else:
            return
        await sleep(max(pause, asked))
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


async def serve(settings: Settings, redactor: Redactor) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        CannotStartError: The program cannot start, or should not go on.
    """
    lock = ProcessLock(settings.database_url.get_secret_value())
    try:
        lock.acquire()
    except DatabaseUnavailable as error:
        raise CannotStartError(error.sentence) from error
    except OSError as error:
        raise CannotStartError(
            f"The database's file cannot be opened: {error.strerror} ({error.filename})."
        ) from error
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    with contextlib.ExitStack() as stack:
        stack.callback(lock.release)
        async with gatehouse(settings, redactor) as bot:
            await Service(bot).run(stopping)
