"""Acknowledgement: `/orgs` against the smallest Bolt AsyncApp, signed HTTP, real processes."""

import asyncio
import tempfile
import time
from dataclasses import dataclass
from statistics import median, quantiles

from bench.figures import NO_AIM, Aim, Figure
from bench.processes import Server, Surroundings, surroundings
from bench.sink import Sink, running_sink
from bench.wire import Connection, command_fields, signed

PEER = "bare Bolt"
ROUNDS = 7
COMMANDS = {1: 100, 64: 1000}
AT_P50, AT_THROUGHPUT = Aim(most=1.25), Aim(least=0.8)
# Processor time is what other programs disturb least; the system counts it in steps of 10 ms.
AIMS = {
    "p50": ("ms", AT_P50),
    "p99": ("ms", NO_AIM),
    "acknowledged": ("/s", AT_THROUGHPUT),
    "answered": ("/s", AT_THROUGHPUT),
    "processor": ("ms", NO_AIM),
}


@dataclass(frozen=True)
class Round:
    """Milliseconds to the acknowledgement; how many a second were acknowledged and answered.

    `processor` is the milliseconds that the server's processor worked for each command.
    """

    p50: float
    p99: float
    acknowledged: float
    answered: float
    processor: float


async def measure() -> list[Figure]:
    """Return the figures for one command at a time and for 64."""
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{folder}/gatehouse.db"
        async with (
            surroundings() as around,
            running_sink() as sink,
            around.bot(database, commands_per_minute="0", inventory_watch="off") as ours,
            around.program("bench.peer_bolt") as theirs,
        ):
            figures: list[Figure] = []
            for at_once in COMMANDS:
                figures += await _compare(around, sink, ours, theirs, at_once)
            return figures


async def _compare(
    around: Surroundings, sink: Sink, ours: Server, theirs: Server, at_once: int
) -> list[Figure]:
    rounds: dict[str, list[Round]] = {ours.url: [], theirs.url: []}
    for server in (ours, theirs):
        await play(around, sink, server, at_once, COMMANDS[at_once] // 2)
    for number in range(ROUNDS):
        # In turn, and each is the first as often as the other.
        for server in (ours, theirs) if number % 2 else (theirs, ours):
            played = await play(around, sink, server, at_once, COMMANDS[at_once])
            rounds[server.url].append(played)
    return [
        Figure(
            f"/orgs, {at_once} at a time: {what}",
            unit,
            PEER,
            [getattr(one, what) for one in rounds[ours.url]],
            [getattr(one, what) for one in rounds[theirs.url]],
            aim,
        )
        for what, (unit, aim) in AIMS.items()
    ]


async def play(
    around: Surroundings, sink: Sink, server: Server, at_once: int, commands: int
) -> Round:
    """Send the commands, so many at a time, each as soon as the one before is acknowledged."""
    url = server.url
    fields = command_fields("U0OPERATOR", around.team, "/orgs", "", sink.url)
    request = signed(url, around.signing_secret, fields)
    connections = [await Connection.open(url) for _ in range(at_once)]
    due, took = iter(range(commands)), []

    async def send(connection: Connection) -> None:
        for _ in due:
            began = time.perf_counter()
            status, _ = await connection.send(request)
            took.append(time.perf_counter() - began)
            if status != 200:
                raise RuntimeError(f"{url} answered {status}")

    worked, before, began = server.running.cpu_seconds(), sink.count, time.perf_counter()
    await asyncio.gather(*(send(one) for one in connections))
    acknowledged = time.perf_counter() - began
    await sink.until(before + commands)
    answered = time.perf_counter() - began
    worked = server.running.cpu_seconds() - worked
    for one in connections:
        await one.close()
    p99 = quantiles(took, n=100)[98]
    return Round(
        median(took) * 1e3,
        p99 * 1e3,
        commands / acknowledged,
        commands / answered,
        worked * 1e3 / commands,
    )
