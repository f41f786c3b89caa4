"""`python -m tests.workflows.testusers.rough`: after how many days each planted fault is found."""

import argparse
import sys
import tempfile
import traceback
from pathlib import Path

import structlog

from tests.workflows.testusers.rough.days import Days
from tests.workflows.testusers.rough.plants import PLANTS
from tests.workflows.testusers.rough.scenes import day

HERE = str(Path(__file__).parent)


def main() -> int:
    """Print it as a table; 0 when all are found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plant", choices=PLANTS, help="this one")
    parser.add_argument("--days", type=int, default=20, help="at most (%(default)s)")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    missed = 0
    with tempfile.TemporaryDirectory(prefix="gatehouse-rough-") as name:
        days = Days(Path(name))
        for plant in [options.plant] if options.plant else PLANTS:
            found = _find(days, plant, options.days)
            print(f"| `{plant}` | {found or 'nothing'} |", flush=True)
            missed += found is None
    return missed


def _find(days: Days, plant: str, most: int) -> str | None:
    """Where it is found, and after how many days."""
    for number in range(most):
        try:
            days.live(day(number), plant)
        except AssertionError as error:
            ours = [
                one for one in traceback.extract_tb(error.__traceback__) if HERE in one.filename
            ]
            return f"`{ours[-1].name}` | {number + 1}"
    return None


if __name__ == "__main__":
    sys.exit(main())
