"""`make bench`: all or some measurements, each with a table and JSON in bench/results/."""

import asyncio
import importlib
import json
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.figures import Figure, table

TOPICS = {
    "ack": "Acknowledgement",
    "approval": "Approval",
    "guard": "Quota guard",
    "gateway": "Gateway",
}
RESULTS = Path(__file__).parent / "results"


def main(wished: list[str]) -> int:
    """Run the measurements. Return 1 if a target is missed, or 2 for an unknown name."""
    unknown = [name for name in wished if name not in TOPICS]
    if unknown:
        print(f"No such measurement: {', '.join(unknown)}. There are: {', '.join(TOPICS)}.")
        return 2
    figures = [figure for name in wished or TOPICS for figure in _measure(name)]
    return 0 if all(figure.is_met for figure in figures) else 1


def _measure(name: str) -> list[Figure]:
    began = time.perf_counter()
    # One after another, so that no measurement disturbs another.
    figures: list[Figure] = asyncio.run(importlib.import_module(f"bench.{name}").measure())
    seconds = time.perf_counter() - began
    print(f"\n## {TOPICS[name]} (make bench ONLY={name}, {seconds:.0f} s)\n\n{table(figures)}")
    _save(name, figures, seconds)
    return figures


def _save(name: str, figures: list[Figure], seconds: float) -> None:
    RESULTS.mkdir(exist_ok=True)
    result = {
        "topic": name,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "seconds": round(seconds, 1),
        "figures": [figure.as_json() for figure in figures],
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
