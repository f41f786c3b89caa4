"""Answering: identify the person, do the work, and show the outcome."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Protocol

import structlog

from bot.errors import GatehouseError, Meant, NotFound, Replayed, TooManyCommands, UsageError
from bot.metrics import Metrics
from bot.ops.clock import Clock
from bot.ops.current_delivery import delivery_id, following_again, new_delivery_id
from bot.permissions import Permission, Person
from bot.slack.messages import help as help_ui
from bot.slack.messages import replies
from bot.slack.messages.message import Message
from bot.slack.people import People
from bot.slack.rules.pace import Deed, Pace
from handlers.interactions import Context, Interaction

log = structlog.get_logger(__name__)

PATIENCE_SECONDS = 0.5
# A stop waits for this too.
STOPPED_SECONDS = 0.5
Answer = Callable[[Context], Awaitable[Message | None]]


class ReplyPort(Protocol):
    """Answers by response_url."""

    async def say(
        self, response_url: str, message: Message, *, to: str, replace: bool = False
    ) -> bool:
        """Show the message to the person; return True if Slack accepted it."""
        ...

    async def say_once(self, response_url: str, message: Message, *, replace: bool = False) -> bool:
        """Like `say`, without retries: for messages that are soon replaced."""
        ...

    async def take_back(self, response_url: str) -> bool:
        """Delete the message that the URL belongs to."""
        ...


async def found_by(people: People, interaction: Interaction) -> Person:
    """Return the person behind an interaction, with their entry point.

    Raises:
        UnknownPerson: Slack doesn't identify the person.
    """
    person = await people.find(interaction.slack_user_id, interaction.team_ids)
    return replace(person, came_by=interaction.entry_point)


class Place(Enum):
    """The place of an answer, within Slack's limits: a response_url edits one message only.

    Attributes:
        COMMAND: A new message, which replaces "Working on it".
        CLICKED: In place of the clicked message, and so is "Working on it".
        BELOW: A new message under the clicked one, which must stay.
        FORM: Like BELOW, but usually a form opens instead, and no message stays beside it.
    """

    COMMAND = auto()
    CLICKED = auto()
    BELOW = auto()
    FORM = auto()


def _offer_subcommand(error: GatehouseError, interaction: Interaction) -> None:
    first = next(iter(interaction.text.split()), "")
    if error.meant or not first or not isinstance(error, UsageError | NotFound):
        return
    meant = help_ui.meant_subcommand(interaction.name, first)
    if meant:
        error.or_rather(Meant(first, meant))


def typed_command(interaction: Interaction) -> str:
    """Return the command as typed; "" for a click."""
    if interaction.command is not None:
        return interaction.command
    is_command = interaction.name.startswith("/")
    return f"{interaction.name} {interaction.text}".strip() if is_command else ""


@dataclass(frozen=True)
class Answering:
    """Runs a listener's work and shows its answer."""

    people: People
    pace: Pace
    metrics: Metrics
    replies: ReplyPort
    clock: Clock

    async def answer(
        self,
        interaction: Interaction,
        answer: Answer,
        place: Place,
        *,
        deed: Deed | None = None,
        counted_as: str | None = None,
    ) -> None:
        """Answer a click; never raises.

        Args:
            interaction: The click.
            answer: The work.
            place: The place of the answer.
            deed: The kind of action for the rate limit; None if already counted.
            counted_as: The name in metrics and logs, if it isn't the click's own.
        """
        name = counted_as or interaction.name
        reference = delivery_id() or new_delivery_id()
        with following_again(reference):
            started = self.clock.monotonic()
            try:
                outcome = await self._work_and_show(interaction, answer, place, deed, reference)
            except Exception:
                log.exception("answer.not_shown", name=name)
                outcome = "broken"
            self.metrics.count_command(name, outcome)
            seconds = round(self.clock.monotonic() - started, 3)
            log.info("answered", name=name, outcome=outcome, seconds=seconds)

    async def _work_and_show(
        self,
        interaction: Interaction,
        answer: Answer,
        place: Place,
        deed: Deed | None,
        reference: str,
    ) -> str:
        work = asyncio.ensure_future(self._outcome(interaction, answer, reference, deed))
        stands = False
        try:
            await asyncio.wait({work}, timeout=PATIENCE_SECONDS)
            stands = not work.done() and await self._say_working(interaction, place)
            message, outcome = await work
        except asyncio.CancelledError:
            # The program stops.
            if stands:
                await self._say_stopped(interaction)
            raise
        finally:
            # The work is cancelled along with the wait for it.
            work.cancel()
        await self._show(interaction, message, place, outcome, stands=stands)
        return outcome

    async def _say_working(self, interaction: Interaction, place: Place) -> bool:
        """Show "Working on it"; return True if it is in the answer's place."""
        if place is Place.FORM:
            return False
        in_place = place is Place.CLICKED
        said = await self.replies.say_once(
            interaction.response_url, replies.WORKING, replace=in_place
        )
        return said and place is not Place.BELOW

    async def _say_stopped(self, interaction: Interaction) -> None:
        """Replace "Working on it" if the program stops, so that nobody waits for an answer."""
        url, asker = interaction.response_url, interaction.slack_user_id
        with suppress(TimeoutError):
            async with asyncio.timeout(STOPPED_SECONDS):
                await self.replies.say(url, replies.STOPPED, to=asker, replace=True)

    async def _show(
        self,
        interaction: Interaction,
        message: Message | None,
        place: Place,
        outcome: str,
        *,
        stands: bool,
    ) -> None:
        is_clicked = place is Place.CLICKED
        if message is None:
            if stands and not is_clicked:
                await self.replies.take_back(interaction.response_url)
            return
        if is_clicked and stands and outcome != "ok":
            # The clicked message is already replaced: leave a way back to it.
            message = replies.with_retry(message, interaction.name, interaction.value)
        if interaction.command is not None and outcome != "ok":
            message = replies.with_command(message, interaction.command)
        # An error leaves the clicked message in place.
        in_place = stands or (is_clicked and outcome == "ok")
        await self.replies.say(
            interaction.response_url, message, to=interaction.slack_user_id, replace=in_place
        )

    async def _outcome(
        self,
        interaction: Interaction,
        answer: Answer,
        reference: str,
        deed: Deed | None,
    ) -> tuple[Message | None, str]:
        """Return the message and a word for the outcome."""
        try:
            if deed is not None:
                self.pace.require(interaction.slack_user_id, self.clock.monotonic(), deed)
            person = await found_by(self.people, interaction)
            # People without access to the help don't learn the commands' usage either.
            await self.people.require(person, Permission.ASK_FOR_HELP)
            return await answer(Context(person, interaction)), "ok"
        except TooManyCommands as error:
            # Each answer is a call to Slack: people who keep pressing get no more of them.
            is_quiet = error.is_told and deed is not Deed.COMMAND
            return None if is_quiet else replies.sorry(error), error.outcome
        except Replayed as error:
            return None, error.outcome
        except GatehouseError as error:
            command = typed_command(interaction)
            message = replies.sorry(error)
            if command:
                _offer_subcommand(error, interaction)
                message = replies.with_next_steps(message, error, command)
            return message, error.outcome
        except Exception:
            log.exception("answer.broken", name=interaction.name)
            return replies.broken(reference), "broken"
