"""`python -m tests.soak [--seconds N]` runs the soak test and prints a table of results."""

import argparse
import asyncio
import secrets
import sys
import tempfile
import traceback
from functools import partial

from sandbox.services.limits import MINUTE_EXCEEDED
from tests.faults.drill import BOTH, table
from tests.soak import crowds
from tests.soak.actors import Pace
from tests.soak.soaking import soak
from tests.soak.strangers import FULL, strangers
from tests.support.databases import database_of
from tests.support.postgres import own_database, server_url

TEN_MINUTES = 600.0
KILL_EVERY_SECONDS = 12.0
BLOCK_SECONDS = 20.0


async def mixed(seconds: float, seed: int) -> list[tuple[str, object]]:
    """Run the soak test in which processes are killed and organizations are blocked."""
    async with own_database(server_url()) as url:
        pace = Pace(seconds, KILL_EVERY_SECONDS, MINUTE_EXCEEDED, BLOCK_SECONDS)
        return await soak(url, pace, seed)


async def crowded(seconds: float) -> list[tuple[str, object]]:
    """Test the gateway under heavy load, with SQLite and with PostgreSQL. Return table rows."""
    found: dict[str, object] = {}
    for kind in BOTH:
        for crowd in (crowds.declined, partial(crowds.waiting, seconds=seconds)):
            with tempfile.TemporaryDirectory() as folder:
                async with database_of(kind, folder) as url:
                    found |= await crowd(url, name=kind)
    return [*found.items()]


async def unsigned() -> list[tuple[str, object]]:
    """Test the bot with unsigned requests. Return table rows."""
    with tempfile.TemporaryDirectory() as folder:
        return [*(await strangers(f"sqlite:///{folder}/gatehouse.db", FULL)).items()]


async def run(seconds: float, seed: int) -> int:
    """Run all soak tests and print the results as a table. Return the exit status."""
    try:
        rows = [*await mixed(seconds, seed), *await crowded(seconds), *await unsigned()]
    except AssertionError as error:
        traceback.print_exc()
        sys.stderr.write(f"FAILED with --seed {seed}: {str(error)[:3000]}\n")
        return 1
    cells = ((name, str(value)) for name, value in rows)
    sys.stdout.write(f"{table(cells, ('what', 'found'))}\n\nPassed, with --seed {seed}.\n")
    return 0


def main() -> int:
    """Read the arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--seconds", type=float, default=TEN_MINUTES)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10_000))
    options = parser.parse_args()
    return asyncio.run(run(options.seconds, options.seed))


if __name__ == "__main__":
    sys.exit(main())
