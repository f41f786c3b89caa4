"""Starts child processes quickly by forking a process that has already imported the bot.

`python -m bot` needs a second of CPU time to start, mostly for imports. A forked process runs the
same code, but skips these imports.
"""

import asyncio
import multiprocessing
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import reduction
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# The program eventually imports these modules, whatever its settings.
IMPORTED = [
    *("bot.serve", "bot.configured", "bot.ops.logs", "bot.ops.loop", "bot.store.postgres"),
    *("bot.setup.run", "bot.check", "bot.backup", "bot.audit.reading"),
    *("aiosqlite", "alembic.autogenerate", "psycopg", "sqlalchemy.dialects.postgresql.psycopg"),
    "sqlalchemy.dialects.sqlite.aiosqlite",
]
LOADED = [*IMPORTED, "runpy", "tests.support.forks"]
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(LOADED)


class ForkedProcess:
    """Provides the parts of the `asyncio.subprocess.Process` interface that tests need.

    `stdout` also contains the process's error output.
    """

    def __init__(self, process: BaseProcess, output: asyncio.StreamReader) -> None:
        self.stdout = output
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(process.sentinel, self._end)

    @property
    def pid(self) -> int:
        """The child's process ID."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, or None if the process is still running.

        A negative status means that a signal ended the process.
        """
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        """Wait for the process to end. Return the exit status."""
        return await asyncio.shield(self._ended)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    def _end(self) -> None:
        self._loop.remove_reader(self._process.sentinel)
        self._process.join()
        assert self._process.exitcode is not None
        self._ended.set_result(self._process.exitcode)


class _Inherited:
    """A file descriptor that is duplicated for the child process."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _taken, (reduction.DupFd(self._number),)


def _taken(duplicate: Any) -> int:
    return int(duplicate.detach())


async def forked(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> ForkedProcess:
    """Run `python <arguments>` in a forked process.

    The arguments start with `-m` and a module name.
    """
    loop = asyncio.get_running_loop()
    ours, theirs = os.pipe()
    output = asyncio.StreamReader(limit=2**22)
    protocol = asyncio.StreamReaderProtocol(output)
    await loop.connect_read_pipe(lambda: protocol, os.fdopen(ours, "rb", buffering=0))
    given = (_Inherited(theirs), list(arguments), str(folder), dict(environment))
    process = FORKS.Process(target=_run, args=given, daemon=True)
    try:
        # The first start has to wait for the imports.
        await asyncio.to_thread(process.start)
    finally:
        os.close(theirs)
    return ForkedProcess(process, output)


async def run_forked(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Run `python -m bot <arguments>` in a forked process. Return the exit status and output."""
    process = await forked(("-m", "bot", *arguments), ROOT, environment)
    said = (await process.stdout.read()).decode()
    return await process.wait(), said


def _run(output: int, arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Run the program in the child process."""
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    # The inherited streams remember their position in the previous files.
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({"GATEHOUSE_CONFIG": "", **environment})
    dash_m, module, *rest = arguments
    assert dash_m == "-m"
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
