"""The frame around every listener: acknowledge, find out who asks, answer whatever happens.

Bolt forgets an acknowledgement when its listener raises right after it, and does not wait for
listeners when the program stops. So a listener here only reads, acknowledges and starts a task; the
task catches everything (`handlers/answering.py`), and a stop waits for it.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp

from bot.clock import Clock
from bot.errors import GatehouseError
from bot.metrics import Metrics
from bot.model.pace import CommandPace
from bot.tasks import Tasks
from bot.ui import replies
from bot.ui.message import Message
from bot.workflows.people import People
from handlers.answering import Answer, Answering, Place, ReplyPort
from handlers.clicks import (
    Ask,
    Body,
    Click,
    read_action,
    read_command,
    read_submission,
    read_suggestion,
)

__all__ = ["Answer", "Ask", "Check", "Click", "Frame", "Keep", "ReplyPort", "Suggest"]

log = structlog.get_logger(__name__)

# Slack waits three seconds for an acknowledgement, and for the options of a type-ahead.
KEEP_SECONDS = 1.5
SUGGEST_SECONDS = 2.0
Keep = Callable[[Click], Awaitable[None]]
Check = Callable[[Click], Mapping[str, str]]
Typed = Callable[[Click], str]
Suggest = Callable[[Ask, str], Awaitable[list[dict[str, Any]]]]


@dataclass(frozen=True)
class Frame:
    """What every listener needs."""

    app: AsyncApp
    people: People
    pace: CommandPace
    tasks: Tasks
    metrics: Metrics
    replies: ReplyPort
    clock: Clock

    def command(self, command: Any, answer: Answer, name: str | None = None) -> None:  # noqa: ANN401 - a name or a pattern
        """Answer a slash command; the answer is only seen by who typed it.

        `name` is what it is counted as, where `command` is a pattern.
        """

        async def listener(ack: AsyncAck, body: Body) -> None:
            click = read_command(body)
            await ack()
            self._start(click, answer, Place.COMMAND, paced=True, counted_as=name)

        self.app.command(command)(listener)

    def action(
        self,
        action_id: Any,  # noqa: ANN401 - an id or a pattern
        answer: Answer,
        *,
        replaces: bool = False,
        opens_form: bool = False,
        name: str | None = None,
    ) -> None:
        """Answer a button or menu; `replaces` puts the answer in its message's place.

        Where it `opens_form`, that is the answer, and words are for what goes wrong only. `name`
        is what it is counted as, where `action_id` is a pattern for anything.
        """
        below = Place.FORM if opens_form else Place.BELOW
        place = Place.CLICKED if replaces else below

        async def listener(ack: AsyncAck, body: Body) -> None:
            click = read_action(body)
            await ack()
            self._start(click, answer, place, counted_as=name)

        self.app.action(action_id)(listener)

    def durable_action(self, action_id: Any, keep: Keep) -> None:  # noqa: ANN401 - an id or a pattern
        """Store a click before it is acknowledged, so that no crash can lose it."""

        async def listener(ack: AsyncAck, body: Body) -> None:
            await self._keep_in_time(read_action(body), keep)
            await ack()

        self.app.action(action_id)(listener)

    def submission(
        self, callback_id: str, check: Check, answer: Answer, typed: Typed | None = None
    ) -> None:
        """Answer a modal that a command opened, over that command's response_url.

        What `check` finds wrong stands at its input and keeps the modal open. A modal that is
        closed keeps nothing: what is `typed` for the same stands under every error.
        """

        async def listener(ack: AsyncAck, body: Body) -> None:
            click = read_submission(body)
            wrong = check(click)
            if wrong:
                await ack(response_action="errors", errors=dict(wrong))
                return
            await ack()
            command = typed(click) if typed else None
            self._start(replace(click, command=command), answer, Place.COMMAND)

        self.app.view(callback_id)(listener)

    def durable_submission(self, callback_id: str, check: Check, keep: Keep) -> None:
        """As `submission`, and stored before it is acknowledged."""

        async def listener(ack: AsyncAck, body: Body) -> None:
            click = read_submission(body)
            wrong = check(click)
            if wrong:
                await ack(response_action="errors", errors=dict(wrong))
                return
            await self._keep_in_time(click, keep)
            await ack()

        self.app.view(callback_id)(listener)

    def options(self, action_id: str, suggest: Suggest) -> None:
        """Answer a type-ahead; on any trouble with no option, as Slack shows no error there."""

        async def listener(ack: AsyncAck, body: Body) -> None:
            try:
                async with asyncio.timeout(SUGGEST_SECONDS):
                    found = await self._suggested(read_suggestion(body), suggest)
            except (GatehouseError, TimeoutError) as error:
                log.info("options.none", outcome=getattr(error, "outcome", "timeout"))
                found = []
            except Exception:
                log.exception("options.broken", name=action_id)
                found = []
            await ack(options=found)

        self.app.options(action_id)(listener)

    def _start(
        self,
        click: Click,
        answer: Answer,
        place: Place,
        *,
        paced: bool = False,
        counted_as: str | None = None,
    ) -> None:
        """Answer in a task of our own, which outlives the listener and which a stop waits for."""
        answering = Answering(self.people, self.pace, self.metrics, self.replies, self.clock)
        work = answering.answer(click, answer, place, paced=paced, counted_as=counted_as)
        self.tasks.start(work, counted_as or click.name)

    async def _suggested(self, click: Click, suggest: Suggest) -> list[dict[str, Any]]:
        person = await self.people.find(click.slack_user_id, click.team_ids)
        return await suggest(Ask(person, click), click.value)

    async def _keep_in_time(self, click: Click, keep: Keep) -> None:
        """Store the click; return before Slack gives up, and then store it behind its back.

        A person who is told of a timeout clicks again, while the first click may well count.
        """
        keeping = self.tasks.start(self._keep(click, keep), click.name)
        await asyncio.wait({keeping}, timeout=KEEP_SECONDS)

    async def _keep(self, click: Click, keep: Keep) -> None:
        try:
            await keep(click)
        except GatehouseError as error:
            self.metrics.count_command(click.name, error.outcome)
            self._tell(click, replies.sorry(error))
        except Exception:
            self.metrics.count_command(click.name, "broken")
            reference = uuid.uuid4().hex[:12]
            log.exception("click.broken", name=click.name, reference=reference)
            self._tell(click, replies.broken(reference))

    def _tell(self, click: Click, message: Message) -> None:
        """Say what went wrong, in a task of its own: the acknowledgement need not wait for it."""

        async def say() -> None:
            await self.replies.say(click.response_url, message, to=click.slack_user_id)

        self.tasks.start(say(), click.name)
