"""Lives days, each in a database of its own."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

import bot.store.engine
from bot.store.engine import Database
from tests.simulation.days.inline_sqlite import InlineEngine
from tests.support.clock import FakeClock
from tests.support.databases import copy_sqlite, migrated_file
from tests.support.steady import run_steadily
from tests.workflows.testusers.rough.plants import PLANTS
from tests.workflows.testusers.rough.scenes import Scenes

Result = TypeVar("Result")
Program = Callable[[Database, FakeClock], Awaitable[Result]]


class Days:
    """Lives them in a folder."""

    def __init__(self, folder: Path) -> None:
        self._template, self._path = folder / "template.db", folder / "day.db"
        migrated_file(self._template)

    def live(self, steps: list[tuple], plant: str | None = None) -> Counter[str]:
        """Live a day, with a fault planted or not; return what is in the audit how often.

        Raises:
            AssertionError: Something does not agree.
        """
        return self.run(lambda *parts: _live(Scenes(*parts), steps), plant)

    def run(self, program: Program[Result], plant: str | None = None) -> Result:
        """Run anything on an empty database, and a clock that stands still."""
        copy_sqlite(self._template, self._path)
        with _inline(plant):
            return run_steadily(_run(f"sqlite:///{self._path}", program))


@contextmanager
def _inline(plant: str | None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bot.store.engine, "sqlite_engine", InlineEngine)
        if plant is not None:
            PLANTS[plant][0](patch)
        yield


async def _run(url: str, program: Program[Result]) -> Result:
    clock = FakeClock()
    database = Database(url, clock)
    try:
        return await program(database, clock)
    finally:
        await database.close()


async def _live(rough: Scenes, steps: list[tuple]) -> Counter[str]:
    for step in steps:
        await rough.follow(step)
    await rough.settle()
    await rough.nobody_waits_in_vain()
    await rough.settle()
    return rough.noted
