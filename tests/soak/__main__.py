"""`python -m tests.soak [--seconds N]`: soak, and print what was found as a table."""

import argparse
import asyncio
import secrets
import sys
import traceback
from collections.abc import Collection

from sandbox.services.limits import MINUTE_EXCEEDED
from tests.faults.running import table
from tests.soak import gateway
from tests.soak.actors import Pace
from tests.soak.soaking import soak
from tests.support.postgres import own_database, server_url

TEN_MINUTES = 600.0
KILL_EVERY_SECONDS = 12.0
BLOCK_SECONDS = 20.0
GATEWAY_KILL_EVERY_SECONDS = 20.0


async def mixed(seconds: float, seed: int) -> list[tuple[str, object]]:
    """People, clicks, blocks and kills; rows of the table."""
    async with own_database(server_url()) as url:
        pace = Pace(seconds, KILL_EVERY_SECONDS, MINUTE_EXCEEDED, BLOCK_SECONDS)
        return await soak(url, pace, seed)


async def gateways(seconds: float, seed: int) -> list[tuple[str, object]]:
    """The gateway's clients, a person and kills; rows of the table."""
    async with own_database(server_url()) as url:
        return [*(await gateway.soak(url, seconds, GATEWAY_KILL_EVERY_SECONDS, seed)).items()]


PARTS = {"mixed": mixed, "gateway": gateways}


async def run(parts: Collection[str], seconds: float, seed: int) -> int:
    """Soak, print, and return the exit status."""
    try:
        rows = [row for part in parts for row in await PARTS[part](seconds, seed)]
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
    parser.add_argument("--only", choices=PARTS, help="one part of it")
    options = parser.parse_args()
    parts = [options.only] if options.only else list(PARTS)
    return asyncio.run(run(parts, options.seconds, options.seed))


if __name__ == "__main__":
    sys.exit(main())
