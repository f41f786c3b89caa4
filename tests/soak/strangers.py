"""Checks that unauthenticated requests don't use up memory or delay other requests."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from sandbox.ports import free_port
from tests.support.fleet import Fleet, running_fleet
from tests.support.processes import BotProcess
from tests.support.steady import seconds_now

MEGABYTE = 1_000_000
MOST_GROWTH_MIB = 60
MOST_MIB = 300
ACK_SECONDS = 3.0
AT_ONCE = 20
CHUNKS = 20_000
# The amount of freed memory that stays with the process varies.
MORE_MIB = 60
Sender = Callable[[str, str], Awaitable[object]]


@dataclass(frozen=True)
class Counts:
    """Defines how many requests of each kind to send."""

    refused: int
    hang_ups: int
    chunked: int


FULL = Counts(refused=1_000, hang_ups=600, chunked=200)


async def strangers(
    database_url: str, counts: Counts, latest: float = ACK_SECONDS
) -> dict[str, Any]:
    """Send several kinds of invalid requests to a bot process. Return the measurements.

    No acknowledgement may take longer than `latest` seconds meanwhile.
    """
    found: dict[str, Any] = {}
    async with bot_with_gateway(database_url) as (fleet, gateway):
        process = fleet.processes[0]
        ports = {"Slack": (process.address, "/slack/events"), "gateway": (gateway, "/com/items")}
        await acknowledgement(fleet)
        for port, place in ports.items():
            grown = -resident_mib(process)
            await burst(refused_body, place, counts.refused, AT_ONCE)
            grown += resident_mib(process)
            found[f"MiB after {counts.refused} refused bodies, {port}"] = round(grown)
            assert grown <= MOST_GROWTH_MIB, found

            grown = -resident_mib(process)
            sending = asyncio.create_task(burst(broken_chunks, place, counts.chunked, AT_ONCE))
            slowest = 0.0
            while not sending.done():
                slowest = max(slowest, await acknowledgement(fleet))
            await sending
            grown += resident_mib(process)
            found[f"MiB after {counts.chunked} broken chunks, {port}"] = round(grown)
            found[f"slowest acknowledgement meanwhile, {port}"] = round(slowest, 2)
            assert grown <= MOST_GROWTH_MIB, found
            assert slowest <= latest, found

        left = []
        # On a busy machine, more are read at once in one burst than in another. What isn't freed at
        # all is more after each burst.
        for _ in range(3):
            await burst(hang_up, ports["Slack"], counts.hang_ups, counts.hang_ups)
            await acknowledgement(fleet)
            left.append(resident_mib(process))
        found[f"MiB after each {counts.hang_ups} senders that hung up"] = [*map(round, left)]
        assert max(left) <= MOST_MIB, found
        assert min(after - before for before, after in pairwise(left)) <= MORE_MIB, found
        assert not fleet.tracebacks, fleet.tracebacks[0]
    return found


@asynccontextmanager
async def bot_with_gateway(database_url: str) -> AsyncIterator[tuple[Fleet, str]]:
    """Run one process. Yield the fleet and the gateway's address."""
    client = {"token_sha256": hashlib.sha256(b"a token").hexdigest(), "organizations": "*"}
    port = free_port()
    settings = {"gateway_clients": json.dumps({"script": client}), "gateway_port": str(port)}
    async with running_fleet(database_url, 1, inventory_watch="off", **settings) as fleet:
        yield fleet, f"http://127.0.0.1:{port}"


def resident_mib(process: BotProcess) -> float:
    """Return the memory usage of a process in MiB."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


async def send(address: str, path: str, headers: list[str], *parts: bytes) -> bytes:
    """Send an HTTP request and return the first line of the response."""
    host, port = address.removeprefix("http://").rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    head = "\r\n".join([f"POST {path} HTTP/1.1", f"Host: {host}", *headers, "", ""])
    try:
        for part in (head.encode(), *parts):
            writer.write(part)
            await writer.drain()
        return await reader.readline()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def refused_body(address: str, path: str) -> None:
    """Announce a request body of 5 MB, which is too large, but send only the first 1.1 MB."""
    await send(address, path, ["Content-Length: 5000000"], b"x" * (MEGABYTE + MEGABYTE // 10))


async def hang_up(address: str, path: str) -> None:
    """Send all but the last byte of a 1 MB request body, and then close the connection."""
    host, port = address.removeprefix("http://").rsplit(":", 1)
    _, writer = await asyncio.open_connection(host, int(port))
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {MEGABYTE}\r\n\r\n"
    writer.write(head.encode() + b"x" * (MEGABYTE - 1))
    with suppress(ConnectionError):
        await writer.drain()
    writer.close()


async def broken_chunks(address: str, path: str) -> None:
    """Send thousands of one-byte chunks, and then an invalid chunk."""
    body = b"1\r\na\r\n" * CHUNKS + b"zz\r\n"
    await send(address, path, ["Transfer-Encoding: chunked"], body)


async def burst(sender: Sender, place: tuple[str, str], count: int, at_once: int) -> None:
    """Send `count` requests, but no more than `at_once` at the same time."""
    left = iter(range(count))

    async def send_some() -> None:
        for _ in left:
            await sender(*place)

    await asyncio.gather(*(send_some() for _ in range(at_once)))


async def acknowledgement(fleet: Fleet) -> float:
    """Return how many seconds the bot takes to acknowledge a signed command."""
    began = seconds_now()
    await fleet.slack.command("U0OPERATOR", "C0GENERAL", "/gatehouse", "whoami")
    return seconds_now() - began
