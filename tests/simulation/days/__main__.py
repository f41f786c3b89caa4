"""Simulates one day (`--seed 4711`) or many days (`--seeds 100`), each in a separate process."""

import argparse
import asyncio
import gc
import json
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import structlog

from bot.migrations import migrate
from bot.store.engine import Database
from tests.simulation.days import inline_sqlite
from tests.simulation.days.day import DAY_SECONDS, SETTLE_SECONDS, Day
from tests.simulation.days.plants import PLANTS
from tests.support.clock import FakeClock


@dataclass(frozen=True)
class Days:
    """Simulates each day in a child process, which uses a copy of the template database."""

    template: Path
    folder: Path
    plant: str | None

    def live(self, seeds: Iterable[int]) -> Iterator[dict[str, Any]]:
        """Yield each day's result as soon as the day ends. Each CPU simulates one day at a time."""
        running: set[int] = set()
        for seed in seeds:
            running.add(self._begin(seed))
            if len(running) == len(os.sched_getaffinity(0)):
                yield _end_of_one(running)
        while running:
            yield _end_of_one(running)

    def _begin(self, seed: int) -> int:
        """Simulate a day in a child process, which sends the result through a pipe."""
        reading, writing = os.pipe()
        if os.fork() > 0:
            os.close(writing)
            return reading
        os.close(reading)
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
        # The child lives only seconds, and garbage collection must not affect a day by its timing.
        gc.disable()
        try:
            if self.plant:
                PLANTS[self.plant]()
            told = vars(Day(seed, self.template, self.folder).run())
        except BaseException:  # noqa: BLE001 - every error of a day is printed
            told = {"seed": seed, "problems": [traceback.format_exc()], "steps": 0, "trace": ""}
        with os.fdopen(writing, "w") as pipe:
            json.dump(told, pipe, default=str)
        os._exit(0)


def _end_of_one(running: set[int]) -> dict[str, Any]:
    reading = next(item for item in wait(running) if isinstance(item, int))
    running.remove(reading)
    with os.fdopen(reading) as pipe:
        told: dict[str, Any] = json.load(pipe)
    os.wait()
    return told


def _memory() -> str | None:
    """Return the path of an in-memory folder, or None if there isn't one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108


def make_template(folder: Path) -> Path:
    """Create an empty database that has the current schema."""
    path = folder / "template.db"
    # A process with threads should not fork.
    inline_sqlite.install()

    async def prepare() -> None:
        database = Database(f"sqlite:///{path}", FakeClock())
        await migrate(database)
        await database.close()

    asyncio.run(prepare())
    return path


def main() -> int:
    """Simulate a day for each seed, and print the results. Return 0 if there were no problems."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seed", type=int, help="this one day")
    parser.add_argument("--seeds", type=int, default=20, help="so many days (%(default)s)")
    parser.add_argument("--plant", choices=PLANTS, help="with a fault planted into the bot")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of strings influences a day.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation.days", *sys.argv[1:]])
    seeds = [*range(1, options.seeds + 1)] if options.seed is None else [options.seed]
    return report(seeds, options.plant)


def report(seeds: list[int], plant: str | None) -> int:
    """Simulate the days, and print the results."""
    started, faults, states = time.monotonic(), Counter[str](), Counter[str]()
    lived, wrong, traces = 0, list[int](), dict[int, str]()
    # The first of several days runs twice: a seed must give the same trace each time.
    again = seeds[:1] if len(seeds) > 1 and not plant else []

    with tempfile.TemporaryDirectory(prefix="gatehouse-days-", dir=_memory()) as name:
        days = Days(make_template(Path(name)), Path(name), plant)
        for told in days.live(takewhile(lambda _: not (wrong and plant), [*seeds, *again])):
            lived += 1
            faults.update(told.get("faults", {}))
            states.update(told.get("states", {}))
            if traces.setdefault(told["seed"], told["trace"]) != told["trace"]:
                told["problems"].append("The trace differs from the first time.")
            if told["problems"]:
                wrong.append(told["seed"])
                print(f"make simulate SEED={told['seed']}: {len(told['problems'])} problems")
                for problem in told["problems"][:5]:
                    print(f"  {problem}")
            elif len(seeds) == 1:
                print(f"seed {told['seed']}: {told['requests']} requests, trace {told['trace']}")
    if wrong and plant:
        print(f"found after {seeds.index(min(wrong)) + 1} seeds")
    seconds = time.monotonic() - started
    hours = lived * (DAY_SECONDS + SETTLE_SECONDS) / 3600
    print(
        f"{lived} seeds in {seconds:.0f} s, {len(wrong)} wrong,"
        f" {lived / seconds:.1f} seeds a second, {hours:.0f} virtual hours"
    )
    print("faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(faults.items())))
    print("requests: " + ", ".join(f"{state} {count}" for state, count in sorted(states.items())))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
