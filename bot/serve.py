"""`python -m bot`: start, serve, stop."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import structlog
from aiohttp import web

from bot import __version__
from bot.app import Gatehouse, gatehouse
from bot.background.batches import Batches
from bot.clients.proxies import proxy_for
from bot.connections import (
    MOST_FILES,
    Site,
    connections_for,
    raise_file_limit,
    tell_of_no_files_once_in_a_while,
)
from bot.errors import (
    DatabaseTooNew,
    DatabaseUnavailable,
    SlackError,
    SlackRateLimited,
    SlackRefused,
)
from bot.ops.redaction import Redactor
from bot.server import make_server
from bot.settings import Settings, revealed
from bot.store import audit_keys, jobs
from bot.store.causes import WRONG_ENCODING, cause_of, technical_cause
from bot.store.migrations import migrate
from bot.store.sqlite import ProcessLock

if TYPE_CHECKING:
    from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler

log = structlog.get_logger(__name__)

# Contract, section 2: ten seconds in all.
# Connections to a database that hangs take two more to close.
FINISH_SECONDS = 6.5
HANG_UP_SECONDS = 0.5
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 5.0
PING_SECONDS = 2.0
# The database is looked at for all who ask, and not more often than this: to look takes the lock
# that all who write wait for, and anybody who reaches the port may ask without end.
READY_SECONDS = 0.1
MOST_ASKING = 1_000_000
# Where Slack has the bot open the socket; for NO_PROXY.
SOCKET_HOST = "wss-primary.slack.com"
# How long the start waits for what Slack knows of the channels.
FIRST_LOOK_SECONDS = 5.0


class CannotStartError(Exception):
    """One sentence that says why the program ends with exit status 2."""


class Service:
    """One process of the bot, from its start to its end.

    Args:
        bot: All of it, put together.
        files: How many files the process may open.
    """

    def __init__(self, bot: Gatehouse, files: int = MOST_FILES) -> None:
        self._bot = bot
        self._files = files
        self._migrated = asyncio.Event()
        self._is_slack_tried = False
        self._looks: Batches[None, bool] = Batches(
            self._look, every=READY_SECONDS, most=MOST_ASKING
        )
        self._socket: AsyncSocketModeHandler | None = None
        self.addresses: list[str] = []

    async def missing(self) -> str | None:
        """Return what readiness lacks: `database`, `slack`, or nothing.

        The database is asked; of the rest it is said what was seen last.
        """
        if not self._migrated.is_set() or not await self._database_answers():
            return "database"
        return self._bot.health.missing() if self._is_slack_tried else "slack"

    async def _database_answers(self) -> bool:
        return await self._looks.do(None)

    async def _look(self, asking: Sequence[None]) -> Sequence[bool]:
        return [await self._ping()] * len(asking)

    async def _ping(self) -> bool:
        try:
            async with asyncio.timeout(PING_SECONDS):
                await self._bot.database.ping_writing()
        except (DatabaseUnavailable, TimeoutError):
            return False
        return True

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set, then finish what runs.

        Raises:
            CannotStartError: Slack refuses a token, or the database is of a newer program.
        """
        runner = await self._listen()
        await self._open_gateway(runner)
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
        server = make_server(endpoint, self.missing, self._scrape, token, self._bot.health.besides)
        runner = web.AppRunner(server, access_log=None, shutdown_timeout=HANG_UP_SECONDS)
        await runner.setup()
        connections = connections_for(self._files, self._bot.metrics.count_http)
        try:
            await Site(runner, settings.host, settings.port, connections).start()
        except OSError as error:
            await runner.cleanup()
            raise CannotStartError(
                f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}."
            ) from error
        self.addresses = [f"http://{host}:{port}" for host, port, *_ in runner.addresses]
        log.info("listening", addresses=self.addresses)
        return runner

    async def _open_gateway(self, runner: web.AppRunner) -> None:
        """Begin to listen for the team's other programs, if the settings ask for it."""
        gateway, settings = self._bot.gateway, self._bot.settings
        if gateway is None or settings.gateway_port is None:
            return
        connections = connections_for(self._files, self._bot.metrics.count_http)
        host, port = settings.gateway_host, settings.gateway_port
        try:
            await gateway.listen(host, port, connections)
        except OSError as error:
            await runner.cleanup()
            raise CannotStartError(
                f"Cannot listen on {host}:{port} for the gateway: {error.strerror}."
            ) from error

    async def _stop_gateway(self, seconds: float) -> None:
        if self._bot.gateway is not None:
            await self._bot.gateway.stop(seconds)

    async def _scrape(self) -> bytes:
        status = await self._bot.workflows.status.status()
        self._bot.metrics.socket_connected.set(await self._is_socket_connected() is not False)
        standings = None
        with contextlib.suppress(DatabaseUnavailable):
            standings = await self._bot.workflows.ratelimits.standings()
        await self._bot.metrics.show(status, standings, self._bot.clock)
        return self._bot.metrics.page()

    async def _work(self) -> None:
        """Bring everything up, however long it takes, and run the jobs."""
        both = {
            asyncio.create_task(self._run_jobs(), name="jobs"),
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

    async def _run_jobs(self) -> None:
        await until_it_works("database", self._migrate, self._bot.clock.sleep)
        self._migrated.set()
        await self._warn_of_encoding()
        await self._bot.jobs.run()

    async def _migrate(self) -> None:
        try:
            if await migrate(self._bot.database):
                log.info("database.migrated")
        except DatabaseTooNew as error:
            raise CannotStartError(error.sentence) from error
        async with self._bot.database.transaction() as tx:
            if self._bot.database.is_sqlite:
                # One process at a time has the file, so whoever held a lease is dead.
                await jobs.release_all(tx)
            try:
                await audit_keys.begin(tx, self._bot.audit)
            except audit_keys.WrongAuditKey as error:
                raise CannotStartError(str(error)) from error
            for plan in self._bot.plans:
                await plan(tx)

    async def _warn_of_encoding(self) -> None:
        """Say that some names cannot be stored: a running installation is not stopped for that."""
        with contextlib.suppress(DatabaseUnavailable):
            if not await self._bot.database.holds_every_name():
                log.warning("database.encoding", reason=WRONG_ENCODING.sentence)

    async def _connect_slack(self) -> None:
        """Ask Slack who we are while the database is brought up; listen to it after that."""
        sleep = self._bot.clock.sleep
        await until_it_works("slack", self._try_slack, sleep)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                await self._bot.watch.look_at_channels()
        await self._migrated.wait()
        await until_it_works("slack", self._open_socket, sleep)
        self._is_slack_tried = True
        log.info("ready")
        await self._bot.watch.run(self._is_socket_connected)

    async def _is_socket_connected(self) -> bool | None:
        """Whether Socket Mode is connected; None where it is not used."""
        if self._bot.settings.slack_app_token is None:
            return None
        return self._socket is not None and await self._socket.client.is_connected()

    async def _try_slack(self) -> None:
        with _ending_where_refused():
            me = await self._bot.slack.who_am_i()
        self._bot.workflows.people.meet(me.team_id, me.slack_user_id)
        self._bot.health.meet(me.team_id)

    async def _open_socket(self) -> None:
        """Connect in Socket Mode, where it is used."""
        app_token = revealed(self._bot.settings.slack_app_token)
        if app_token is None:
            return
        with _ending_where_refused():
            await self._bot.slack.try_app_token(app_token)
        # Who is called over HTTP need not load it.
        from slack_bolt.adapter.socket_mode.async_handler import (
            AsyncSocketModeHandler,
        )

        self._socket = AsyncSocketModeHandler(self._bot.app, app_token)
        self._socket.client.proxy = proxy_for(SOCKET_HOST)
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
        await asyncio.gather(
            self._bot.tasks.drain(left), self._bot.jobs.stop(left), self._stop_gateway(left)
        )
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await runner.cleanup()
        if asyncio.get_running_loop().time() < deadline:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await self._bot.workflows.people.write_down_refusals()
        # What was being read is acknowledged until then, and its answer is still to come.
        await self._bot.tasks.drain(deadline - asyncio.get_running_loop().time())


@contextlib.contextmanager
def _ending_where_refused() -> Iterator[None]:
    """Turn Slack's refusal of a token into the end of the program."""
    try:
        yield
    except SlackRefused as error:
        raise CannotStartError(
            f"Slack refused the token: {error.error}. Check SLACK_BOT_TOKEN and SLACK_APP_TOKEN."
        ) from error


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
            log.warning("start.waiting", waiting_for=what, **_reason(error))
            asked = error.retry_after_seconds if isinstance(error, SlackRateLimited) else 0.0
        else:
            return
        await sleep(max(pause, asked))
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def _about(settings: Settings) -> dict[str, object]:
    """What starts, for the first line of the log."""
    services: tuple[Literal["inventory", "flow", "email"], ...] = ("inventory", "flow", "email")
    is_sqlite = settings.database_url.get_secret_value().startswith("sqlite:")
    return {
        "version": __version__,
        "database": "SQLite" if is_sqlite else "PostgreSQL",
        "services": [name for name in services if not settings.missing_for(name)],
        "slack": "Socket Mode" if settings.slack_app_token else "HTTP",
    }


def _reason(error: DatabaseUnavailable | SlackError) -> dict[str, str]:
    """What cannot be reached, and for a database why."""
    if isinstance(error, SlackError):
        return {"reason": error.sentence}
    cause = cause_of(error)
    return {"reason": cause.sentence, "cause": cause.code, "error": technical_cause(error)}


async def serve(settings: Settings, redactor: Redactor) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        CannotStartError: The program cannot start, or should not go on.
    """
    # A SQLite file holds identities: nobody else on this machine reads it.
    os.umask(0o077)
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
    files = raise_file_limit()
    tell_of_no_files_once_in_a_while(loop)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    with contextlib.ExitStack() as stack:
        stack.callback(lock.release)
        async with gatehouse(settings, redactor) as bot:
            log.info("starting", **_about(settings))
            await Service(bot, files).run(stopping)
        log.info("stopped")
