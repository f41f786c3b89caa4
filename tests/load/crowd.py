"""Ten thousand organizations: what they cost those who type, against a database without any."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.processes import Surroundings, surroundings
from bench.sink import running_sink
from bot.model.organizations.organization import OrganizationKey
from bot.ops.clock import SystemClock
from bot.store.engine import Database
from tests.load.filling import fill_ledger
from tests.load.playing import Command, Player, percentile

LISTING = Command("/orgs", "", 1)
FIRST_ID = 400_000_000
SCRAPE = """
import sys, time, urllib.request
while True:
    urllib.request.urlopen(sys.argv[1]).read()
    time.sleep(5)
"""
# Both are measured by turns, so that what else the machine does weighs on both.
ROUNDS = 3


async def acknowledged(
    empty: str, full: str, *, organizations: int, people: int, seconds: float, a_second: float
) -> tuple[list[float], list[float]]:
    """Return the seconds to each acknowledgement without and with so many organizations.

    Args:
        empty: The address of a database with nothing in it.
        full: Of another one, which gets the organizations in its listing and its ledger.
        organizations: Of one data center.
        people: Who type.
        seconds: For how long they do, on each.
        a_second: Commands.
    """
    async with (
        surroundings(people=people) as few,
        surroundings(people=people, organizations=organizations) as many,
    ):
        await _list(many, full, people)
        keys = [OrganizationKey("com", str(FIRST_ID + n)) for n in range(organizations)]
        database = Database(full, SystemClock())
        await fill_ledger(database, keys)
        await database.close()
        async with _player(few, empty, people) as bare, _player(many, full, people) as laden:
            took: tuple[list[float], list[float]] = [], []
            for _ in range(ROUNDS):
                for player, acks in zip((bare, laden), took, strict=True):
                    acks.extend(await _scraped(player, seconds / ROUNDS, a_second))
            return took


async def _list(around: Surroundings, url: str, people: int) -> None:
    async with around.bot(url) as server, running_sink() as sink:
        await Player(around, server, people, sink.url).answer_seconds(sink, LISTING, 1)


@asynccontextmanager
async def _player(around: Surroundings, url: str, people: int) -> AsyncIterator[Player]:
    async with around.bot(url, commands_per_minute="0") as server:
        player = Player(around, server, people, around.sink)
        # Everybody is looked up once, and every cache is filled, before it counts.
        await player.pace(3.0, 20.0)
        yield player


async def _scraped(player: Player, seconds: float, a_second: float) -> list[float]:
    """Type while Prometheus asks for the metrics now and then.

    It is a program of its own, as ever: to read five megabytes here would count as the bot's delay.
    """
    url = f"{player.server.url}/metrics"
    scraping = await asyncio.create_subprocess_exec(sys.executable, "-c", SCRAPE, url)
    try:
        return (await player.pace(seconds, a_second)).acks
    finally:
        assert scraping.returncode is None, "the metrics could not be read"
        scraping.kill()
        await scraping.wait()


def describe(bare: list[float], laden: list[float]) -> tuple[str, float]:
    """Return both 99th percentiles in words, and the one as a multiple of the other."""
    without, with_them = (percentile(acks, 0.99) for acks in (bare, laden))
    ratio = with_them / without
    shown = f"{with_them * 1e3:.0f} ms, without {without * 1e3:.0f} ms, x {ratio:.2f}"
    return shown, ratio
