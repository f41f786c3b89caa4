"""Run all fault drills, or only the drills whose names contain one of the given words."""

import argparse
import asyncio
import sys

from tests.faults.drill import Drill, Result, brief, run_drill, table
from tests.faults.drills import ALL

AT_ONCE = 4


async def run(words: list[str], databases: list[str]) -> int:
    """Run the drills, up to four at a time, and print the results. Return the exit status."""
    chosen = [item for item in ALL if not words or any(word in item.name for word in words)]
    pairs = [(drill, kind) for drill in chosen for kind in drill.databases if kind in databases]
    turns = asyncio.Semaphore(AT_ONCE)
    results: dict[tuple[Drill, str], Result] = {}

    async def one(drill: Drill, database: str) -> None:
        async with turns:
            results[drill, database] = result = await run_drill(drill, database)
            sys.stderr.write(brief(result) + "\n")

    try:
        await asyncio.gather(*(one(*pair) for pair in pairs))
    finally:
        # This runs after Ctrl-C too, so that the results so far are not lost.
        tell([results[pair] for pair in pairs if pair in results])
    return 1 if any(result.failure for result in results.values()) else 0


def tell(results: list[Result]) -> None:
    """Print the results as a table, and list the drills that test each promise."""
    promises: dict[str, list[str]] = {}
    for result in results:
        names = promises.setdefault(result.drill.promise, [])
        if result.drill.name not in names:
            names.append(result.drill.name)
    lines = "\n".join(f"- {'; '.join(names)}: {promise}" for promise, names in promises.items())
    sys.stdout.write(f"{table(result.row for result in results)}\n\nPass lines:\n\n{lines}\n")


def main() -> int:
    """Read the arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("words", nargs="*", help="run only drills whose name holds one of these")
    parser.add_argument("--database", choices=["sqlite", "postgres"], action="append")
    options = parser.parse_args()
    databases = options.database or ["sqlite", "postgres"]
    return asyncio.run(run(options.words, databases))


if __name__ == "__main__":
    sys.exit(main())
