"""Runs drills and prints what they found as a table."""

import asyncio
import re
import tempfile
import textwrap
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from tests.faults.drill import Drill, Kind, Notes
from tests.support.loop_time import seconds_now

FULL_SECONDS = 20.0
DRILL_SECONDS = 600.0
MOST_CHARACTERS = 6000


@dataclass(frozen=True)
class Result:
    """One row: a drill on one database."""

    drill: Drill
    notes: Notes
    failure: str
    lacking: str
    took_seconds: float

    @property
    def row(self) -> tuple[str, ...]:
        """As it is printed."""
        recovered = self.notes.recovered_seconds
        return (
            self.drill.name,
            self.notes.database,
            " / ".join(dict.fromkeys(map(plain, self.notes.seen))) or "nothing to see",
            "; ".join(self.notes.held),
            "-" if recovered is None else f"{recovered:.1f}",
            self.verdict,
        )

    @property
    def verdict(self) -> str:
        """In words."""
        if self.lacking:
            return f"not run: {self.lacking}"
        return f"FAILED: {self.failure[:MOST_CHARACTERS]}" if self.failure else "passed"


HEAD = ("drill", "database", "seen meanwhile", "held afterwards", "recovered in s", "verdict")


async def run_drill(drill: Drill, database: Kind, seconds: float = FULL_SECONDS) -> Result:
    """Run one drill on one database, in a folder of its own."""
    began = seconds_now()
    failure = lacking = ""
    with tempfile.TemporaryDirectory(prefix="gatehouse-drill-") as folder:
        notes = Notes(database, folder, seconds)
        try:
            async with asyncio.timeout(DRILL_SECONDS):
                await drill.run(notes)
        except pytest.skip.Exception as error:
            lacking = str(error)
        except AssertionError as error:
            failure = str(error).strip() or asserted_in(error)
        except Exception as error:  # noqa: BLE001 - one broken drill must not hide the others
            traceback.print_exc()
            failure = f"{type(error).__name__}: {error}"
    return Result(drill, notes, failure, lacking, seconds_now() - began)


def asserted_in(error: AssertionError) -> str:
    """The place of an assertion that has no words of its own."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.line} (line {frame.lineno} of {frame.filename.rpartition('/')[2]})"


def plain(said: str) -> str:
    """What was said, as one reads it: without Slack's marks and the ids of this run."""
    said = re.sub(r"<[^<>|]*\|([^<>]*)>", r"\1", said)
    said = re.sub(r" \(`FW\w+`\)", "", said).replace("<#C0APPROVALS>", "#approvals")
    said = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "11:04 UTC", said)
    said = re.sub(r"\d\d:\d\d:\d\d UTC", "11:04:00 UTC", said)
    return re.sub(r"person:\d+", "person:1", said).replace("*", "").replace("`", "")


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = HEAD) -> str:
    """Return a Markdown table."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |"

    return "\n".join([line(head), line(["---"] * len(head)), *(line(row) for row in rows)])


def brief(result: Result) -> str:
    """Return one line for somebody who watches."""
    verdict = result.row[-1]
    name = f"{result.drill.name} ({result.notes.database})"
    return textwrap.shorten(f"{name}: {verdict}, {result.took_seconds:.0f} s", 400)
