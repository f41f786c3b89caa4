"""Runs one life (`--seed 4711`) or many (`--seeds 20`), and prints their problems."""

import argparse
import sys
import time
from collections import Counter

import structlog

from tests.simulation.pair.life import HAPPENS, Life, begun
from tests.support.postgres import has_server
from tests.support.steady import run_steadily


async def lived(seed: int) -> tuple[Life, list[str]]:
    """Live one life. Return it, and its problems."""
    async with begun(seed) as life:
        problems = await life.live()
    return life, [*problems, *(p for p in life.model.problems if p not in problems)]


def main() -> int:
    """Return 0 if no life had problems."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    if not has_server():
        print("Skipped, because PostgreSQL isn't installed.")
        return 0
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    wrong, happened = 0, Counter[str]()
    for seed in [options.seed] if options.seed else range(1, options.seeds + 1):
        began = time.monotonic()
        life, problems = run_steadily(lived(seed))
        print(
            f"seed {seed}: {len(life.cards())} requests, {len(problems)} problems,"
            f" {time.monotonic() - began:.0f} s, {dict(life.done)}"
        )
        wrong += bool(problems)
        happened += life.done
        for problem in problems:
            print(f"  {problem}")
        if problems and options.seed:
            print(*life.trace, *life.model.history, sep="\n")
            print(*(card.all_text for card in life.cards()), sep="\n\n")
    missing = set() if options.seed else HAPPENS - happened.keys()
    if missing:
        print(f"In no life happened: {', '.join(sorted(missing))}")
    return int(bool(wrong or missing))


if __name__ == "__main__":
    sys.exit(main())
