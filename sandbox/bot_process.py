"""Runs the real bot in its own process.

The process inherits only a few of the sandbox's environment variables, such as `PATH`.
"""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp

from sandbox.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
KEPT_FROM_OUTSIDE = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT"),
    "PYTHONPYCACHEPREFIX",
)
LAST_LINES = 40
READY_SECONDS = 60
STOP_SECONDS = 12
ASK_EVERY_SECONDS = 0.05


class BotProcess:
    """Runs `python -m bot` on a free loopback port.

    Args:
        settings: Environment variables for the bot, except `HOST` and `PORT`.
        changed: A function that is called whenever `state` changes.
    """

    def __init__(self, settings: Mapping[str, str], changed: Callable[[], None]) -> None:
        self._settings = settings
        self._changed = changed
        self._process: asyncio.subprocess.Process | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._is_wanted = False
        self._settled = asyncio.Event()
        self.port = free_port()
        self.state = "starting"
        self.lines: deque[str] = deque(maxlen=LAST_LINES)

    @property
    def url(self) -> str:
        """The bot's address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """The bot's process ID, or None if the bot was never started."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the bot, and wait until `/readyz` responds with status 200.

        Raises:
            BotStoppedError: The bot stopped or did not become ready in time.
        """
        self._become("starting")
        self._is_wanted = True
        self.lines.clear()
        self._process = await self._spawn()
        self._watcher = asyncio.create_task(self._watch(self._process))
        await self._until_ready()
        self._become("ready")

    async def until_settled(self) -> None:
        """Wait until the bot is ready or has stopped."""
        await self._settled.wait()

    async def stop(self) -> None:
        """Stop the bot with SIGTERM. If the bot takes too long to stop, use SIGKILL."""
        self._is_wanted = False
        process = self._process
        if process is None or self._watcher is None:
            return
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await asyncio.shield(self._watcher)
        except TimeoutError:
            process.kill()
            await self._watcher

    async def kill(self) -> None:
        """Kill the bot with SIGKILL to simulate a crash."""
        self._is_wanted = False
        if self._process and self._watcher and self._process.returncode is None:
            self._process.kill()
            await self._watcher

    async def _spawn(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bot",
            cwd=ROOT,
            env=self._environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # Ctrl-C in a terminal reaches only the sandbox, which then shuts the bot down cleanly.
            start_new_session=True,
        )

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT_FROM_OUTSIDE if name in os.environ}
        return {**kept, **self._settings, "HOST": "127.0.0.1", "PORT": str(self.port)}

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Keep recent log lines, and print the last ten lines if the bot stops unexpectedly."""
        if process.stdout is not None:
            async for line in process.stdout:
                self.lines.append(line.decode(errors="replace").rstrip())
        code = await process.wait()
        self._become("stopped")
        if self._is_wanted:
            print(f"The bot has stopped (exit {code}). Its last log lines:", file=sys.stderr)
            print("\n".join(list(self.lines)[-10:]), file=sys.stderr, flush=True)

    async def _until_ready(self) -> None:
        try:
            async with asyncio.timeout(READY_SECONDS), aiohttp.ClientSession() as session:
                while not await is_ready(session, self.url):
                    if self.state == "stopped":
                        raise BotStoppedError("the bot ended while it started")
                    await asyncio.sleep(ASK_EVERY_SECONDS)
        except TimeoutError:
            raise BotStoppedError(f"the bot was not ready after {READY_SECONDS} s") from None

    def _become(self, state: str) -> None:
        self.state = state
        if state == "starting":
            self._settled.clear()
        else:
            self._settled.set()
        self._changed()


class BotStoppedError(Exception):
    """The bot stopped or did not become ready in time."""


async def is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    """Return True if the bot's `/readyz` endpoint responds with status 200."""
    try:
        async with session.get(f"{url}/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False
