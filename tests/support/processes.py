"""Runs the real program as a child process that tests can watch, freeze and kill."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence

import aiohttp

from tests.support.forks import ROOT, ForkedProcess, forked

# Starting takes a second or two, or much longer on a busy machine.
START_SECONDS = 120.0
KEPT_LINES = 5_000


class NotReadyError(AssertionError):
    """A process did not become ready in time.

    The error message includes the last lines of the process's output.
    """


class BotProcess:
    """A process that runs `python -m bot` and listens at `address`.

    To inject faults, a test can pass a `launcher`, which replaces `-m bot`. If `is_fresh` is True,
    the process is started just as an operator would start it. If `is_fresh` is False, the process
    is forked from one that has already imported everything.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        session: aiohttp.ClientSession,
        launcher: Sequence[str] = ("-m", "bot"),
        *,
        is_fresh: bool = False,
    ) -> None:
        self.address = ""
        self.lines: list[str] = []
        self.is_frozen = False
        self._environment = dict(environment)
        self._session = session
        self._launcher = tuple(launcher)
        self._process: asyncio.subprocess.Process | ForkedProcess | None = None
        self._starting: asyncio.Future[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._heard = asyncio.Event()
        self._is_fresh = is_fresh

    @property
    def pid(self) -> int:
        """The process ID."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """True while the process is running."""
        return self._process is not None and self._process.returncode is None

    @property
    def tracebacks(self) -> list[str]:
        """The log records that contain a traceback.

        Expected failures are logged without a traceback.
        """
        return [line for line in self.lines if "Traceback (most recent call last)" in line]

    async def start(self) -> "BotProcess":
        """Start the process, and wait until it is listening. The process may not be ready yet."""
        self._starting = asyncio.ensure_future(self._spawn())
        await asyncio.shield(self._starting)
        await self.says(lambda: bool(self.address))
        return self

    async def _spawn(self) -> None:
        environment = {"PATH": os.environ.get("PATH", ""), **self._environment}
        if self._is_fresh:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *self._launcher,
                cwd=ROOT,
                env=environment,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                limit=2**22,
            )
        else:
            self._process = await forked(self._launcher, ROOT, environment)
        self._reading = asyncio.create_task(self._read())

    async def says(self, is_true: Callable[[], bool], seconds: float = START_SECONDS) -> None:
        """Call `is_true` whenever the process prints a line, until `is_true` returns True.

        Raises:
            NotReadyError: The process ended, or `is_true` did not return True in time.
        """
        try:
            async with asyncio.timeout(seconds):
                while not is_true():
                    if self._reading is None or self._reading.done():
                        break
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            pass
        if not is_true():
            words = "\n".join(self.lines[-30:])
            raise NotReadyError(f"not there in time; it said: {words or 'nothing'}")

    async def ready(self, seconds: float = START_SECONDS) -> "BotProcess":
        """Wait until `/readyz` returns 200."""
        answer = (0, "")
        try:
            async with asyncio.timeout(seconds):
                # Another process can't tell us when it is ready, so poll.
                while (answer := await self.readiness())[0] != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        except TimeoutError:
            words = "\n".join(self.lines[-30:])
            raise NotReadyError(f"/readyz says {answer}; it said:\n{words}") from None
        return self

    async def readiness(self) -> tuple[int, str]:
        """Return the status and body from `/readyz`, or (0, "") if there is no response."""
        timeout = aiohttp.ClientTimeout(total=5)
        try:
            async with self._session.get(f"{self.address}/readyz", timeout=timeout) as got:
                return got.status, await got.text()
        except (aiohttp.ClientError, TimeoutError):
            return 0, ""

    async def ended(self) -> int:
        """Wait for the process to end. Return the exit status."""
        assert self._process is not None
        status = await self._process.wait()
        if self._reading is not None:
            await self._reading
        return status

    async def kill(self) -> None:
        """Kill the process with SIGKILL, even if the call to `start` was canceled."""
        if self._starting is None:
            return
        await self._starting
        self._signal(signal.SIGKILL)
        await self.ended()

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send SIGTERM, or another signal. Return the exit status."""
        self._signal(number)
        return await self.ended()

    def freeze(self) -> None:
        """Pause the process, as if its machine were suspended."""
        self.is_frozen = True
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the paused process continue."""
        self._signal(signal.SIGCONT)
        self.is_frozen = False

    def _signal(self, number: signal.Signals) -> None:
        # The process may have just ended, before we are notified.
        with contextlib.suppress(ProcessLookupError):
            if self.is_running:
                os.kill(self.pid, number)

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            self._note(raw.decode(errors="replace").rstrip("\n"))
        self._heard.set()

    def _note(self, line: str) -> None:
        self.lines.append(line)
        if len(self.lines) > KEPT_LINES:
            del self.lines[: KEPT_LINES // 2]
        if not self.address and '"listening"' in line:
            self.address = json.loads(line)["addresses"][0]
        self._heard.set()
