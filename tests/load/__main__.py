"""`python -m tests.load` load-tests the bot on each database and prints the results."""

import asyncio
import sys

from tests.faults.drill import BOTH
from tests.load.loading import Load, run, table


async def main() -> int:
    """Load-test the bot on each kind of database. Return the exit status."""
    found = {kind: await run(kind, Load()) for kind in BOTH}
    for kind, lines in found.items():
        sys.stdout.write(table(kind, lines) + "\n\n")
    return 0 if all(line.is_well for lines in found.values() for line in lines) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
