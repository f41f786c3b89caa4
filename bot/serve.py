"""`python -m bot`: starts, runs and stops the bot."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Sequence

import structlog
from aiohttp import web
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from yarl import URL

from bot import __version__
from bot.app import Gatehouse, gatehouse
from bot.checks.checks import channels, database, slack_token
from bot.checks.rules import WELL
from bot.errors import (
    DatabaseInUse,
    DatabaseTooNew,
    DatabaseTooOld,
    DatabaseUnavailable,
    OrganizationWideInstall,
    SlackError,
    SlackRefused,
)
from bot.migrations import migrate
from bot.ops.redaction import Redactor
from bot.server import MOST_CONNECTIONS, Site, make_server
from bot.services.http import proxy_for
from bot.settings import Settings
from bot.settings.model import SERVICES, revealed
from bot.store import jobs
from bot.store.causes import cause_of
from bot.store.sqlite import process_lock
from bot.tasks import Flights, SingleFlight, cancel
from handlers.app import slack_app
from handlers.endpoint import Refusals, SlackEndpoint

log = structlog.get_logger(__name__)

# Shutdown must finish within ten seconds, including two seconds to close connections to an
# unresponsive database.
FINISH_SECONDS = 6.5
HANG_UP_SECONDS = 0.5
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 5.0
PING_SECONDS = 2.0
COUNT_SECONDS = 1.5
# The minimum time between two database checks, for all callers together. A check takes the write
# lock, and anyone who can reach the port can request any number of checks.
READY_SECONDS = 1.0
# What `/readyz` says after a check of the database. After any other finding, it's `database`.
READINESS = {WELL: "", DatabaseTooNew.outcome: "schema"}
# The address of Slack's WebSockets, used to determine whether they need a proxy.
SOCKET_URL = URL("https://wss-primary.slack.com")
# Startup waits at most this long for the first checks of the token and the channels.
FIRST_LOOK_SECONDS = 5.0


class CannotStartError(Exception):
    """The program can't start and exits with status 2. The message gives the reason."""


class Service:
    """One bot process, from start to stop."""

    def __init__(self, bot: Gatehouse) -> None:
        self._bot = bot
        self.app = slack_app(bot)
        self._migrated = asyncio.Event()
        self._is_slack_tried = False
        self._pings = SingleFlight(self._ping, READY_SECONDS, bot.clock.monotonic)
        self._socket: AsyncSocketModeHandler | None = None
        self._counts: Flights[str, None] = Flights()
        self.addresses: list[str] = []

    async def missing(self) -> str | None:
        """Return the unready part (`database`, `schema` or `slack`), or None if all are ready.

        The database is checked now. Slack's state comes from the last periodic check.
        """
        if not self._migrated.is_set():
            return "database"
        if lacking := await self._pings.get():
            return lacking
        return self._bot.health.missing() if self._is_slack_tried else "slack"

    async def _ping(self) -> str:
        try:
            async with asyncio.timeout(PING_SECONDS):
                (finding,) = await database(self._bot.health.parts)
        except TimeoutError:
            return "database"
        return READINESS.get(finding.code, "database")

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set, then finish work in progress."""
        runner = await self._listen()
        tasks = [
            asyncio.create_task(self._run_jobs(), name="jobs"),
            asyncio.create_task(self._connect_slack(), name="slack"),
            asyncio.create_task(stopping.wait(), name="stop"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await self._stop(runner, tasks)

    async def _listen(self) -> web.AppRunner:
        bot = self._bot
        settings = bot.settings
        refusals = Refusals(bot.metrics, bot.clock)
        endpoint = None
        if not settings.slack_app_token:
            secret = revealed(settings.slack_signing_secret)
            endpoint = SlackEndpoint(self.app, secret, refusals).handle
        server = make_server(
            endpoint,
            self.missing,
            self._scrape,
            revealed(settings.metrics_token),
            bot.health.besides,
            refusals.misdirected,
        )
        runner = web.AppRunner(server, access_log=None, shutdown_timeout=HANG_UP_SECONDS)
        await runner.setup()
        address = f"{settings.host}:{settings.port}"
        try:
            site = Site(
                runner, (settings.host, settings.port), MOST_CONNECTIONS, refusals.unreadable
            )
            await site.start()
            self.addresses = [f"http://{host}:{port}" for host, port, *_ in runner.addresses]
            log.info("listening", addresses=self.addresses)
            if gateway := bot.inventory.gateway:
                address = f"{settings.gateway_host}:{settings.gateway_port} for the gateway"
                await gateway.listen()
        except OSError as error:
            await runner.cleanup()
            raise CannotStartError(f"Cannot listen on {address}: {error.strerror}.") from error
        return runner

    async def _scrape(self) -> bytes:
        """Return the metrics within 2 s. If the database is slow, some values may be outdated."""
        counting = self._counts.start("", self._count)
        await asyncio.wait({counting}, timeout=COUNT_SECONDS)
        if not counting.done():
            self._bot.metrics.database_up.set(0)
        return await asyncio.to_thread(self._bot.metrics.page)

    async def _count(self) -> None:
        metrics = self._bot.metrics
        status = await self._bot.health.status()
        metrics.database_up.set(status.jobs is not None)
        if status.jobs is not None:
            for state, number in vars(status.jobs).items():
                metrics.jobs.labels(state).set(number)
        for name, number in status.counts.items():
            metrics.waiting.labels(name).set(number)
        with contextlib.suppress(DatabaseUnavailable):
            standings = await self._bot.inventory.ratelimits.standings()
            metrics.quota_used.clear()
            metrics.quota_limit.clear()
            for standing in standings:
                for kind, meter in standing.meters.items():
                    labels = (standing.key.data_center, standing.key.organization_id, str(kind))
                    metrics.quota_used.labels(*labels).set(meter.used)
                    metrics.quota_limit.labels(*labels).set(meter.limit)

    async def _run_jobs(self) -> None:
        await until_it_works("database", self._migrate, self._bot.clock.sleep)
        self._migrated.set()
        await self._bot.jobs.run()

    async def _migrate(self) -> None:
        if await migrate(self._bot.database):
            log.info("database.migrated")
        async with self._bot.database.transaction() as tx:
            if self._bot.database.is_sqlite:
                # Only this process uses the file, so all existing leases belong to dead processes.
                await jobs.release_all(tx)
            await self._bot.jobs.plan(tx)

    async def _connect_slack(self) -> None:
        """Get the bot's identity while the database starts, and then connect to Slack."""
        sleep = self._bot.clock.sleep
        await until_it_works("slack", self._try_slack, sleep)
        health = self._bot.health
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                await asyncio.gather(health.look(slack_token), health.look(channels))
        await self._migrated.wait()
        await until_it_works("slack", self._open_socket, sleep)
        self._is_slack_tried = True
        log.info("ready")
        await health.run(self._is_socket_connected)

    async def _is_socket_connected(self) -> bool:
        """Return True if Socket Mode is connected or isn't used."""
        if self._bot.settings.slack_app_token is None:
            return True
        return self._socket is not None and await self._socket.client.is_connected()

    async def _try_slack(self) -> None:
        me = await self._bot.slack.client.who_am_i()
        if me.is_organization_wide:
            raise OrganizationWideInstall
        self._bot.slack.people.meet(me.team_id, me.slack_user_id)

    async def _open_socket(self) -> None:
        app_token = revealed(self._bot.settings.slack_app_token)
        if app_token is None:
            return
        await self._bot.slack.client.try_app_token(app_token)
        self._socket = AsyncSocketModeHandler(self.app, app_token)
        self._socket.client.proxy = proxy_for(SOCKET_URL)
        await self._socket.connect_async()  # type: ignore[no-untyped-call]

    async def _stop(self, runner: web.AppRunner, tasks: "Sequence[asyncio.Task[object]]") -> None:
        log.info("stopping")
        time = asyncio.get_running_loop().time
        deadline = time() + FINISH_SECONDS
        for site in list(runner.sites):
            await site.stop()
        if runner.server is not None:
            # Stop accepting requests on open connections.
            runner.server.pre_shutdown()
        if self._socket is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HANG_UP_SECONDS):
                    await self._socket.close_async()  # type: ignore[no-untyped-call]
        left = deadline - time()
        endings = [self._bot.tasks.drain(left), self._bot.jobs.stop(left)]
        if self._bot.inventory.gateway is not None:
            endings.append(self._bot.inventory.gateway.stop(left))
        await asyncio.gather(*endings)
        await cancel(tasks)
        await runner.cleanup()
        # The last requests have been acknowledged, but their answers may not have been sent yet.
        await self._bot.tasks.drain(deadline - time())
        # Their transactions may have started jobs that they had claimed before.
        await self._bot.jobs.stop(deadline - time())


async def until_it_works(
    target: str, attempt: Callable[[], Awaitable[None]], sleep: Callable[[float], Awaitable[None]]
) -> None:
    """Retry `attempt`, with increasing pauses, until it succeeds.

    If Slack asks the bot to wait, pause at least as long as requested.

    Raises:
        CannotStartError: Slack refused the token, the app is installed in a whole organization, or
            the database has an unsupported schema.
    """
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return await attempt()
        except SlackRefused as error:
            raise CannotStartError(
                f"Slack refused the token: {error.error}."
                " Check SLACK_BOT_TOKEN and SLACK_APP_TOKEN."
            ) from error
        except (DatabaseTooNew, DatabaseTooOld, OrganizationWideInstall) as error:
            raise CannotStartError(error.sentence) from error
        except SlackError as error:
            asked = error.retry_after_seconds
            why = {"reason": error.sentence}
        except DatabaseUnavailable as error:
            asked = 0.0
            cause = cause_of(error)
            why = {"reason": cause.explanation, "cause": cause.code}
        log.warning("start.waiting", waiting_for=target, **why)
        await sleep(max(pause, asked))
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


async def serve(settings: Settings, redactor: Redactor) -> None:
    """Run the bot until SIGTERM, SIGINT or SIGHUP.

    Raises:
        CannotStartError: The bot can't start. The message says why.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(process_lock(settings.database_url.get_secret_value()))
        except DatabaseInUse as error:
            raise CannotStartError(error.sentence) from error
        except OSError as error:
            place = f" ({error.filename})" if error.filename else ""
            raise CannotStartError(
                f"The database file can't be opened: {error.strerror}{place}."
            ) from error
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, stopping.set)
        async with gatehouse(settings, redactor) as bot:
            log.info(
                "starting",
                version=__version__,
                database="SQLite" if bot.database.is_sqlite else "PostgreSQL",
                services=[name for name in SERVICES if not settings.missing_for(name)],
                slack="Socket Mode" if settings.slack_app_token else "HTTP",
            )
            await Service(bot).run(stopping)
        log.info("stopped")
