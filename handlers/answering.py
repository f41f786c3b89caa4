"""Answering: find out who asks, work, and show what came of it, whatever that is."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import structlog

from bot.clock import Clock
from bot.errors import GatehouseError
from bot.metrics import Metrics
from bot.model.pace import CommandPace
from bot.permissions import Permission
from bot.ui import replies
from bot.ui.message import Message
from bot.workflows.people import People
from handlers.clicks import Ask, Click

log = structlog.get_logger(__name__)

PATIENCE_SECONDS = 0.5
Answer = Callable[[Ask], Awaitable[Message | None]]


class ReplyPort(Protocol):
    """Answers by response_url."""

    async def say(
        self, response_url: str, message: Message, *, to: str, replace: bool = False
    ) -> bool:
        """Show the message to the person, in whatever way; return whether Slack took it."""
        ...

    async def say_once(self, response_url: str, message: Message, *, replace: bool = False) -> bool:
        """As `say`, without trying again: for what is soon replaced."""
        ...

    async def take_back(self, response_url: str) -> bool:
        """Delete the message that the URL belongs to."""
        ...


class Place(Enum):
    """Where an answer goes, as far as Slack allows: a response_url edits one message only.

    Attributes:
        COMMAND: A new message; "Working on it" is ours, and replaced.
        CLICKED: In place of the clicked message, and so is "Working on it".
        BELOW: A new message under the clicked one, which must stay.
        FORM: The same, where usually a form opens instead, and no words are to stay beside it.
    """

    COMMAND = auto()
    CLICKED = auto()
    BELOW = auto()
    FORM = auto()


@dataclass(frozen=True)
class Answering:
    """Runs a listener's work and shows its answer."""

    people: People
    pace: CommandPace
    metrics: Metrics
    replies: ReplyPort
    clock: Clock

    async def answer(
        self,
        click: Click,
        answer: Answer,
        place: Place,
        *,
        paced: bool = False,
        counted_as: str | None = None,
    ) -> None:
        """Answer a click; never raises.

        Args:
            click: What was done.
            answer: The work.
            place: Where its answer goes.
            paced: Whether it counts as a command of its person.
            counted_as: Its name in metrics and logs, where it is not the click's own.
        """
        name = counted_as or click.name
        request_id = uuid.uuid4().hex[:12]
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            started = self.clock.monotonic()
            try:
                outcome = await self._work_and_show(click, answer, place, paced, request_id)
            except Exception:
                log.exception("answer.not_shown", name=name)
                outcome = "broken"
            self.metrics.count_command(name, outcome)
            seconds = round(self.clock.monotonic() - started, 3)
            log.info("answered", name=name, outcome=outcome, seconds=seconds)

    async def _work_and_show(
        self,
        click: Click,
        answer: Answer,
        place: Place,
        paced: bool,  # noqa: FBT001
        reference: str,
    ) -> str:
        work = asyncio.ensure_future(self._outcome(click, answer, reference, paced))
        try:
            await asyncio.wait({work}, timeout=PATIENCE_SECONDS)
            stands = not work.done() and await self._say_working(click, place)
            message, outcome = await work
        finally:
            # Only when the program stops: who works on goes down with who waits.
            work.cancel()
        await self._show(click, message, place, outcome, stands=stands)
        return outcome

    async def _say_working(self, click: Click, place: Place) -> bool:
        """Say that it takes longer; return whether that stands where the answer goes."""
        if place is Place.FORM:
            return False
        words = replies.WORKING_BELOW if place is Place.BELOW else replies.WORKING
        in_place = place is Place.CLICKED
        said = await self.replies.say_once(click.response_url, words, replace=in_place)
        return said and place is not Place.BELOW

    async def _show(
        self, click: Click, message: Message | None, place: Place, outcome: str, *, stands: bool
    ) -> None:
        is_clicked = place is Place.CLICKED
        if message is None:
            if stands and not is_clicked:
                await self.replies.take_back(click.response_url)
            return
        if is_clicked and stands and outcome != "ok":
            # The clicked message is gone already: leave a way back to it.
            message = replies.with_retry(message, click.name, click.value)
        if click.command is not None and outcome != "ok":
            message = replies.with_command(message, click.command)
        # An error leaves the message that was clicked.
        in_place = stands or (is_clicked and outcome == "ok")
        await self.replies.say(
            click.response_url, message, to=click.slack_user_id, replace=in_place
        )

    async def _outcome(
        self,
        click: Click,
        answer: Answer,
        reference: str,
        paced: bool,  # noqa: FBT001
    ) -> tuple[Message | None, str]:
        """Return what to say and a word for how it went."""
        try:
            if paced:
                self.pace.admit(click.slack_user_id, self.clock.monotonic())
            person = await self.people.find(click.slack_user_id, click.team_ids)
            # Who may not even ask for help learns nothing, not how a command is typed.
            await self.people.admit(person, Permission.ASK_FOR_HELP)
            return await answer(Ask(person, click)), "ok"
        except GatehouseError as error:
            return replies.sorry(error), error.outcome
        except Exception:
            log.exception("answer.broken", name=click.name)
            return replies.broken(reference), "broken"
