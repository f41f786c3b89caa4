"""Defines and runs fault drills, and lists their results."""

import asyncio
import re
import tempfile
import textwrap
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from sandbox.slack.messages import Message
from tests.support.databases import Kind
from tests.support.fleet import Fleet, is_silence
from tests.support.steady import seconds_now
from tests.support.story import APPROVER, Story

BOTH: tuple[Kind, ...] = ("sqlite", "postgres")
RECOVERY_SECONDS = 30.0


@dataclass
class Notes:
    """Collects observations during a drill.

    The fault lasts for `seconds`. `database` is the kind of database, and only this drill uses
    `folder`.
    """

    database: Kind
    folder: str
    seconds: float
    seen: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    recovered_seconds: float | None = None

    async def people_see(
        self, fleet: Fleet, user: str, command: str, text: str, *says: str
    ) -> None:
        """Send a command, and assert that the bot's answer contains one of the expected words."""
        self.saw(await fleet.ask(user, command, text), *says)

    def saw(self, answer: Message, *says: str) -> None:
        """Record an answer, and assert that it is from the bot and contains an expected word."""
        assert not is_silence(answer), f"silence: {answer.all_text}"
        said = [line for line in answer.all_text.splitlines() if any(word in line for word in says)]
        assert said, answer.all_text
        self.seen.append(said[0])

    async def until(
        self, is_well: Callable[[], Awaitable[bool]], seconds: float = RECOVERY_SECONDS
    ) -> None:
        """Call `is_well` until it returns True, but fail if this takes longer than `seconds`."""
        began = seconds_now()
        while not await is_well():
            assert seconds_now() - began < seconds, f"not well after {seconds:.0f} s"
            await asyncio.sleep(0.1)

    @asynccontextmanager
    async def recovery(self) -> AsyncIterator[None]:
        """Measure how long the bot takes to recover after a fault."""
        began = seconds_now()
        yield
        took = seconds_now() - began
        self.recovered_seconds = max(took, self.recovered_seconds or 0.0)
        assert took <= RECOVERY_SECONDS, f"recovered only after {took:.0f} s"

    async def click_says(self, story: Story, card: Message, button: str, *says: str) -> None:
        """Press a button, and assert that the bot's answer contains one of the expected words."""
        self.saw(await story.press(APPROVER, card, button), *says)

    async def all_holds(self, story: Story, *, by_command: bool = True) -> None:
        """Assert that the lists, cards, messages and logs are in the expected state."""
        await story.comes_true()
        self.holds("the list as approved, one true card, told once")
        if story.cleared_alerts:
            self.holds("one alert, cleared once")
        if story.has_homes:
            self.holds("Home shows the click")
        if by_command:
            await story.fleet.verify_audit()
        else:
            await story.fleet.look_at_audit()
        self.holds("audit intact")
        assert not story.fleet.tracebacks, story.fleet.tracebacks[0][:6000]

    def holds(self, what: str) -> None:
        """Record that a check passed."""
        if what not in self.held:
            self.held.append(what)


@dataclass(frozen=True)
class Drill:
    """Describes a fault and the bot's promise for that fault.

    `run` raises AssertionError if the bot breaks the promise.
    """

    name: str
    promise: str
    run: Callable[[Notes], Awaitable[None]]
    databases: tuple[Kind, ...] = BOTH


async def lasts(began: float, seconds: float) -> None:
    """Wait until a fault that started at `began` has lasted for `seconds`."""
    await asyncio.sleep(max(0.0, began + seconds - seconds_now()))


FULL_SECONDS = 20.0
# A scene has up to thirty steps to be killed after.
DRILL_SECONDS = 1800.0
MOST_CHARACTERS = 6000


@dataclass(frozen=True)
class Result:
    """The result of a drill on one database."""

    drill: Drill
    notes: Notes
    failure: str
    lacking: str
    took_seconds: float

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of the table row for this result."""
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
        """The verdict in words."""
        if self.lacking:
            return f"not run: {self.lacking}"
        return f"FAILED: {self.failure[:MOST_CHARACTERS]}" if self.failure else "passed"


HEAD = ("drill", "database", "seen meanwhile", "held afterwards", "recovered in s", "verdict")


async def run_drill(drill: Drill, database: Kind, seconds: float = FULL_SECONDS) -> Result:
    """Run a drill on one kind of database in a temporary folder."""
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
    """Return the source line and location of an assertion that failed without a message."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.line} (line {frame.lineno} of {frame.filename.rpartition('/')[2]})"


def plain(said: str) -> str:
    """Return the text without Slack markup, and without IDs and times that vary between runs."""
    said = re.sub(r"<[^<>|]*\|([^<>]*)>", r"\1", said)
    said = re.sub(r" \(`FW\w+`\)", "", said).replace("<#C0APPROVALS>", "#approvals")
    said = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "11:04 UTC", said)
    said = re.sub(r"\d\d:\d\d:\d\d UTC", "11:04:00 UTC", said)
    return re.sub(r"person:n\d+", "person:n1", said).replace("*", "").replace("`", "")


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = HEAD) -> str:
    """Return a Markdown table."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |"

    return "\n".join([line(head), line(["---"] * len(head)), *(line(row) for row in rows)])


def brief(result: Result) -> str:
    """Return a one-line summary of a drill's result."""
    verdict = result.row[-1]
    name = f"{result.drill.name} ({result.notes.database})"
    return textwrap.shorten(f"{name}: {verdict}, {result.took_seconds:.0f} s", 400)
