"""The time to acknowledge `/orgs`, compared with minimal Bolt AsyncApps in real processes."""

import asyncio
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median, quantiles

from bench.figures import Figure
from bench.processes import Server, Surroundings, surroundings
from bench.sink import Sink, running_sink
from bench.wire import Connection, command_fields, signed

PEER, PEER_AT_ONCE = "bare Bolt", "bare Bolt, process_before_response"
ROUNDS = 7
COMMANDS = {1: 100, 64: 1000}
UNITS = {"p50": "ms", "p99": "ms", "acknowledged": "/s", "answered": "/s", "processor": "ms"}
# Other programs hardly disturb processor time; the system counts it in steps of 10 ms.
# The targets of docs/performance.md, against the peer that acknowledges as Gatehouse does.
PROMISED = {(1, "p50"): 1.5, (64, "p99"): 3.0}


@dataclass(frozen=True)
class Round:
    """Milliseconds until the acknowledgement, and commands acknowledged and answered per second.

    `processor` is the processor time of the server for each command, in milliseconds.
    """

    p50: float
    p99: float
    acknowledged: float
    answered: float
    processor: float


async def measure() -> list[Figure]:
    """Return the figures for one command at a time and for 64, against both peers."""
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{folder}/gatehouse.db"
        async with (
            surroundings() as around,
            running_sink() as sink,
            around.bot(database, commands_per_minute="0", inventory_watch="off") as ours,
            around.program("bench.peer_bolt") as theirs,
            around.program("bench.peer_bolt", "at-once") as at_once_too,
        ):
            peers = {PEER: theirs, PEER_AT_ONCE: at_once_too}
            figures: list[Figure] = []
            for at_once in COMMANDS:
                figures += await _compare(around, sink, ours, peers, at_once)
            return figures


async def _compare(
    around: Surroundings, sink: Sink, ours: Server, peers: Mapping[str, Server], at_once: int
) -> list[Figure]:
    servers = [ours, *peers.values()]
    rounds: dict[str, list[Round]] = {server.url: [] for server in servers}
    for server in servers:
        await play(around, sink, server, at_once, COMMANDS[at_once] // 2)
    for number in range(ROUNDS):
        # Take turns, so that each program goes first equally often.
        first = number % len(servers)
        for server in (*servers[first:], *servers[:first]):
            played = await play(around, sink, server, at_once, COMMANDS[at_once])
            rounds[server.url].append(played)
    return [
        Figure(
            f"/orgs, {at_once} at a time: {what}",
            unit,
            peer,
            [getattr(item, what) for item in rounds[ours.url]],
            [getattr(item, what) for item in rounds[server.url]],
            PROMISED.get((at_once, what)) if peer == PEER_AT_ONCE else None,
        )
        for peer, server in peers.items()
        for what, unit in UNITS.items()
    ]


async def play(
    around: Surroundings, sink: Sink, server: Server, at_once: int, commands: int
) -> Round:
    """Send the commands over `at_once` connections, each after the acknowledgement before it."""
    url = server.url
    # All commands differ, because the bot handles a repeated command only once.
    fields = [
        command_fields("U0OPERATOR", around.team, "/orgs", "", sink.url) for _ in range(commands)
    ]
    requests = [signed(url, around.signing_secret, field) for field in fields]
    connections = [await Connection.open(url) for _ in range(at_once)]
    due, took = iter(requests), []

    async def send(connection: Connection) -> None:
        for request in due:
            began = time.perf_counter()
            status, _ = await connection.send(request)
            took.append(time.perf_counter() - began)
            if status != 200:
                raise RuntimeError(f"{url} answered {status}")

    worked, before, began = server.running.cpu_seconds(), sink.count, time.perf_counter()
    await asyncio.gather(*(send(item) for item in connections))
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
