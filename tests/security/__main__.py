"""`python -m tests.security [--seconds N] [--seed N]`: attack, and print what was found."""

import argparse
import asyncio
import secrets
import sys
import tempfile
import traceback
from pathlib import Path

from bot.ops.clock import SystemClock
from bot.store.engine import Database
from bot.store.migrations import migrate
from tests.faults.running import table
from tests.security.attacking import ATTACKERS, attack

A_MINUTE = 60.0


async def run(seconds: float, seed: int) -> int:
    """Let each attacker try, and return the exit status."""
    status = 0
    for name in ATTACKERS:
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{Path(folder) / 'attacked.db'}"
            database = Database(url, SystemClock())
            await migrate(database)
            await database.close()
            try:
                rows = await attack(name, url, seconds, seed, is_quiet=True)
            except AssertionError:
                traceback.print_exc()
                status = 1
            else:
                sys.stdout.write(f"{table(rows, ('what', 'found'))}\n\n")
    sys.stdout.write(f"{'Failed' if status else 'Passed'}, with --seed {seed}.\n")
    return status


def main() -> int:
    """Read the arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.security")
    parser.add_argument("--seconds", type=float, default=A_MINUTE)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10_000))
    options = parser.parse_args()
    return asyncio.run(run(options.seconds, options.seed))


if __name__ == "__main__":
    sys.exit(main())
