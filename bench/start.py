"""Start and size: time to ready and memory against a bare Bolt app; import time by package."""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from bench.figures import Figure
from bench.processes import Server, surroundings

PEER = "bare Bolt"
ROUNDS = 3
# As `python -m bot` does it.
OURS = "import gc; gc.disable(); import bot.__main__, bot.logs, bot.serve"
THEIRS = "import aiohttp.web, slack_bolt.async_app"
PACKAGES_SHOWN = 8


@dataclass(frozen=True)
class Start:
    """Seconds until ready, of which the processor worked some; and MiB resident then."""

    seconds: float
    worked: float
    resident: float


async def measure() -> list[Figure]:
    """Return the figures of a first start, of a restart, and of what importing takes."""
    return [*await _starts(), *await _imports()]


async def _starts() -> list[Figure]:
    theirs, first, again = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        async with surroundings() as around:
            for number in range(ROUNDS):
                database = f"sqlite:///{folder}/{number}.db"
                theirs.append(await _started(around.program("bench.peer_bolt")))
                first.append(await _started(around.bot(database)))
                again.append(await _started(around.bot(database)))
    return [
        _figure("time to ready, new database", "seconds", first, theirs),
        _figure("of it processor time, new database", "worked", first, theirs),
        _figure("time to ready, database as left", "seconds", again, theirs),
        _figure("of it processor time, database as left", "worked", again, theirs),
        _figure("resident memory when ready", "resident", again, theirs),
    ]


def _figure(what: str, name: str, ours: Sequence[Start], theirs: Sequence[Start]) -> Figure:
    unit = "MiB" if name == "resident" else "s"
    values = [[float(getattr(one, name)) for one in side] for side in (ours, theirs)]
    return Figure(what, unit, PEER, *values)


async def _started(program: AbstractAsyncContextManager[Server]) -> Start:
    async with program as server:
        running = server.running
        return Start(server.ready_seconds, running.cpu_seconds(), running.resident_mib())


async def _imports() -> list[Figure]:
    """Compare the processor time of importing; then ours by package, to the whole of Bolt's."""
    ours, theirs, packages = [], [], []
    for _ in range(ROUNDS):
        theirs.append(await _import_seconds(THEIRS) * 1e3)
        ours.append(await _import_seconds(OURS) * 1e3)
        packages.append(await _by_package(OURS))
    most = sum(packages, Counter()).most_common(PACKAGES_SHOWN)
    wholes = [float(one.total()) for one in packages]
    return [
        Figure("importing, processor time", "ms", PEER, ours, theirs),
        *(
            Figure(f"of it {name}", "ms", "all of it", [one[name] for one in packages], wholes)
            for name, _ in most
        ),
    ]


async def _import_seconds(code: str) -> float:
    printed, _ = await _python("-c", f"{code}; import time; print(time.process_time())")
    return float(printed)


async def _by_package(code: str) -> Counter[str]:
    """Return the milliseconds that each top-level package's own modules take."""
    _, told = await _python("-X", "importtime", "-c", code)
    spent: Counter[str] = Counter()
    for line in told.splitlines():
        own, _, name = line.removeprefix("import time:").split("|")
        if own.strip().isdigit():
            spent[name.strip().partition(".")[0]] += int(own) / 1000
    return spent


async def _python(*arguments: str) -> tuple[str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, told = await process.communicate()
    return printed.decode(), told.decode()
