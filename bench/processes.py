"""Real processes: the bot as operators start it, its peers, and its stand-ins.

Logs go to a file, because reading a pipe would cost the measuring process time.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from sandbox.ports import free_port

READY_SECONDS = 120.0
STOP_SECONDS = 15.0
# A program gets only these variables of the environment; its settings come from the caller.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")


class Running:
    """A process and its log file."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self._log = log
        self.started = time.perf_counter()

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    async def line(self) -> dict[str, Any]:
        """Read the line of JSON that a ready stand-in prints."""
        assert self.process.stdout is not None
        async with asyncio.timeout(READY_SECONDS):
            line = await self.process.stdout.readline()
        assert line, f"it ended before it was ready: {self.log()}"
        found: dict[str, Any] = json.loads(line)
        return found

    def log(self) -> str:
        """The last lines of the process's standard error."""
        return self._log.read_text()[-4000:]

    def resident_mib(self) -> float:
        """Return the resident memory in MiB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def cpu_seconds(self) -> float:
        """Return the used processor time (user and system) in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def running(*arguments: str, env: Mapping[str, str] | None = None) -> AsyncIterator[Running]:
    """Run `python <arguments>` until the block ends. Stop it with SIGTERM, or else SIGKILL."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    with tempfile.NamedTemporaryFile(prefix="gatehouse-", suffix=".log") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            env={**inherited, "PYTHONUNBUFFERED": "1", **(env or {})},
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
        try:
            yield Running(process, Path(log.name))
        finally:
            await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.communicate()


async def until_ready(running: Running, url: str, path: str = "/readyz") -> float:
    """Return the seconds from the start until `path` answers 200.

    For a path other than `/readyz`, any answer is enough.
    """
    deadline = time.perf_counter() + READY_SECONDS
    async with aiohttp.ClientSession() as session:
        while time.perf_counter() < deadline:
            assert running.process.returncode is None, running.log()
            if await _answers(session, url + path, any_status=path != "/readyz"):
                return time.perf_counter() - running.started
            await asyncio.sleep(0.005)
    raise AssertionError(f"not ready within {READY_SECONDS} s: {running.log()}")


async def _answers(session: aiohttp.ClientSession, url: str, *, any_status: bool) -> bool:
    try:
        async with session.get(url) as response:
            return any_status or response.status == 200
    except aiohttp.ClientError:
        return False


@dataclass(frozen=True)
class Server:
    """A process that listens at `url` and was ready after `ready_seconds`."""

    url: str
    running: Running
    ready_seconds: float


@dataclass(frozen=True)
class Surroundings:
    """The stand-ins of `bench.standins`, and functions that start more processes."""

    environment: Mapping[str, str]
    signing_secret: str
    team: str
    sink: str
    services: str

    @asynccontextmanager
    async def bot(self, database_url: str, **settings: str) -> AsyncIterator[Server]:
        """Run `python -m bot`; settings in lower case replace the usual settings."""
        wished = {name.upper(): value for name, value in settings.items()}
        port = free_port()
        env = {**self.environment, "DATABASE_URL": database_url, "PORT": str(port), **wished}
        async with running("-m", "bot", env=env) as process:
            url = f"http://127.0.0.1:{port}"
            yield Server(url, process, await until_ready(process, url))

    @asynccontextmanager
    async def program(self, module: str, *arguments: str) -> AsyncIterator[Server]:
        """Run another module with the port and more arguments."""
        port = free_port()
        async with running("-m", module, str(port), *arguments, env=self.environment) as process:
            url = f"http://127.0.0.1:{port}"
            yield Server(url, process, await until_ready(process, url, "/"))


@asynccontextmanager
async def surroundings(*, people: int = 0, organizations: int = 0) -> AsyncIterator[Surroundings]:
    """Run the stand-ins of Slack and the services in a separate process."""
    arguments = ("--people", str(people), "--organizations", str(organizations))
    async with running("-m", "bench.standins", *arguments) as process:
        yield Surroundings(**await process.line())
