"""`python -m tests.load`: load the real bot on loopback, and print a table for each database."""

import argparse
import sys

from tests.load.loading import Load, main, table

KINDS = ["sqlite", "postgres"]


def read() -> argparse.Namespace:
    """Read the arguments."""
    usual = Load()
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--database", choices=KINDS, action="append")
    parser.add_argument("--seconds", type=float, default=usual.seconds)
    parser.add_argument("--a-second", type=float, default=usual.a_second)
    return parser.parse_args()


if __name__ == "__main__":
    options = read()
    found = main(options.database or KINDS, Load(options.seconds, options.a_second))
    for kind, lines in found.items():
        sys.stdout.write(table(kind, lines) + "\n\n")
    sys.exit(0 if all(line.is_well for lines in found.values() for line in lines) else 1)
