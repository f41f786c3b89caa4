"""What a drill is, and what it finds."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from sandbox.slack.messages import Message
from tests.support.databases import Kind
from tests.support.fleet import Fleet, is_silence
from tests.support.loop_time import seconds_now
from tests.support.story import APPROVER, Story

BOTH: tuple[Kind, ...] = ("sqlite", "postgres")
RECOVERY_SECONDS = 30.0


@dataclass
class Notes:
    """What a drill writes down while it runs.

    `seconds` is how long its fault lasts; `database` on what it runs, `folder` is its own.
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
        """Type a command; the answer must be the bot's own and hold one of the words.

        Raises:
            AssertionError: Silence, or other words.
        """
        self.saw(await fleet.ask(user, command, text), *says)

    def saw(self, answer: Message, *says: str) -> None:
        """Write down an answer, which must be the bot's own and hold one of the words.

        Raises:
            AssertionError: Silence, or other words.
        """
        assert not is_silence(answer), f"silence: {answer.all_text}"
        said = [line for line in answer.all_text.splitlines() if any(word in line for word in says)]
        assert said, answer.all_text
        self.seen.append(said[0])

    async def until(
        self, is_well: Callable[[], Awaitable[bool]], seconds: float = RECOVERY_SECONDS
    ) -> None:
        """Ask again and again whether it is well.

        Raises:
            AssertionError: It is not, in time.
        """
        began = seconds_now()
        while not await is_well():
            assert seconds_now() - began < seconds, f"not well after {seconds:.0f} s"
            await asyncio.sleep(0.1)

    @asynccontextmanager
    async def recovery(self) -> AsyncIterator[None]:
        """Measure the block, which begins at the fault's end and ends when all is well.

        Raises:
            AssertionError: It took too long.
        """
        began = seconds_now()
        yield
        took = seconds_now() - began
        self.recovered_seconds = max(took, self.recovered_seconds or 0.0)
        assert took <= RECOVERY_SECONDS, f"recovered only after {took:.0f} s"

    async def click_says(self, story: Story, card: Message, button: str, *says: str) -> None:
        """Press a button; the answer must be the bot's own and hold one of the words.

        Raises:
            AssertionError: Silence, or other words.
        """
        self.saw(await story.press(APPROVER, card, button), *says)

    async def all_holds(self, story: Story, *, by_command: bool = True) -> None:
        """Hold the lists, the cards, what people were told, the audit and the logs to the model.

        Raises:
            AssertionError: Something is not as it must be.
        """
        await story.comes_true()
        self.holds("the list as approved, one true card, told once")
        if story.cleared_alerts:
            self.holds("one alert, cleared once")
        if story.has_homes:
            self.holds("Home true for both")
        if by_command:
            await story.fleet.verify_audit()
        else:
            await story.fleet.look_at_audit()
        self.holds("audit intact")
        assert not story.fleet.tracebacks, story.fleet.tracebacks[0][:6000]

    def holds(self, what: str) -> None:
        """Write down something that was checked and held."""
        if what not in self.held:
            self.held.append(what)


@dataclass(frozen=True)
class Drill:
    """A fault and what is promised for it.

    Attributes:
        name: What goes wrong.
        promise: The pass line.
        run: Does it; raises AssertionError where the promise is broken.
        databases: On which it applies.
    """

    name: str
    promise: str
    run: Callable[[Notes], Awaitable[None]]
    databases: tuple[Kind, ...] = BOTH


async def lasts(began: float, seconds: float) -> None:
    """Wait until a fault that began then has lasted so long."""
    await asyncio.sleep(max(0.0, began + seconds - seconds_now()))
