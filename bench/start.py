"""Start and size: time to ready and memory against a bare Bolt app; import time by package."""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from bench.figures import NO_AIM, Aim, Figure
from bench.processes import Server, Surroundings, surroundings

PEER = "bare Bolt"
ROUNDS = 5
TWICE = Aim(most=2)
# As `python -m bot` does it.
OURS = "import gc; gc.disable(); import bot.__main__, bot.ops.logs, bot.serve"
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
    async with surroundings() as everything:
        with everything.as_installed() as around:
            return [*await _starts(around), *await _imports(around)]


async def _starts(around: Surroundings) -> list[Figure]:
    theirs, first, again = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        # Once for nothing: it writes the bytecode.
        await _started(around.bot(f"sqlite:///{folder}/nobody.db"))
        for number in range(ROUNDS):
            database = f"sqlite:///{folder}/{number}.db"
            theirs.append(await _started(around.program("bench.peer_bolt")))
            first.append(await _started(around.bot(database)))
            again.append(await _started(around.bot(database)))
    return [
        _figure("time to ready, new database", "seconds", first, theirs),
        _figure("of it processor time, new database", "worked", first, theirs),
        _figure("time to ready, database as left", "seconds", again, theirs, TWICE),
        _figure("of it processor time, database as left", "worked", again, theirs),
        _figure("resident memory when ready", "resident", again, theirs, TWICE),
    ]


def _figure(
    what: str, name: str, ours: Sequence[Start], theirs: Sequence[Start], aim: Aim = NO_AIM
) -> Figure:
    unit = "MiB" if name == "resident" else "s"
    values = [[float(getattr(one, name)) for one in side] for side in (ours, theirs)]
    return Figure(what, unit, PEER, values[0], values[1], aim)


async def _started(program: AbstractAsyncContextManager[Server]) -> Start:
    async with program as server:
        running = server.running
        return Start(server.ready_seconds, running.cpu_seconds(), running.resident_mib())


async def _imports(around: Surroundings) -> list[Figure]:
    """Compare the processor time of importing; then ours by package, to the whole of it."""
    ours, theirs, packages = [], [], []
    for _ in range(ROUNDS):
        theirs.append(await _import_seconds(around, THEIRS) * 1e3)
        ours.append(await _import_seconds(around, OURS) * 1e3)
        packages.append(await _by_package(around, OURS))
    most = sum(packages, Counter()).most_common(PACKAGES_SHOWN)
    wholes = [float(one.total()) for one in packages]
    return [
        Figure("importing, processor time", "ms", PEER, ours, theirs),
        *(
            Figure(f"of it {name}", "ms", "all of it", [one[name] for one in packages], wholes)
            for name, _ in most
        ),
    ]


async def _import_seconds(around: Surroundings, code: str) -> float:
    """Return the processor time that a program has used at the end of the imports."""
    printed, _ = await _python(around, f"{code}; import time; print(time.process_time())")
    return float(printed)


async def _by_package(around: Surroundings, code: str) -> Counter[str]:
    """Return the milliseconds that each top-level package's own modules take."""
    _, told = await _python(around, code, "-X", "importtime")
    spent: Counter[str] = Counter()
    for line in told.splitlines():
        own, _, name = line.removeprefix("import time:").split("|")
        if own.strip().isdigit():
            spent[name.strip().partition(".")[0]] += int(own) / 1000
    return spent


async def _python(around: Surroundings, code: str, *options: str) -> tuple[str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *around.options,
        *options,
        "-c",
        code,
        env=around.environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, told = await process.communicate()
    return printed.decode(), told.decode()
