"""Handles interactions: reads, acknowledges, identifies the person, does the work, and replies.

If a listener acknowledges a request and immediately raises an exception, Bolt drops the
acknowledgement. Bolt also doesn't wait for listeners at shutdown. So `receive` starts a task that
catches all exceptions, and the program waits for the task before stopping.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck
from slack_bolt.response import BoltResponse

from bot.app import Gatehouse
from bot.errors import GatehouseError, NotFound, Replayed, TooManyCommands, UsageError
from bot.ops.current_delivery import delivery_id, following_again, new_delivery_id
from bot.permissions import Permission, Person
from bot.slack.messages import help as help_ui
from bot.slack.messages import replies
from bot.slack.messages.block_kit import Message
from bot.slack.replies import TRIES, DirectReplies, Replies
from handlers.listeners import (
    Body,
    Check,
    Context,
    Interaction,
    Listener,
    Place,
    find,
    read,
    require,
    surface_of,
)

log = structlog.get_logger(__name__)

# Slack waits three seconds for an acknowledgement, or for a type-ahead's options. People who see a
# timeout click again, even though the first click might still be in progress.
STORE_SECONDS = 1.5
SUGGEST_SECONDS = 2.0
# An event is acknowledged after this time even if it isn't stored yet, because many events can
# arrive at once.
EVENT_SECONDS = 0.05
PATIENCE_SECONDS = 0.5
# The time limit at shutdown for telling people that the program has stopped.
STOPPED_SECONDS = 0.5


async def receive(bot: Gatehouse, ack: AsyncAck, body: Body) -> BoltResponse:
    """Acknowledge Slack's request and answer it in a background task."""
    surface, interaction = surface_of(body), read(body)
    if surface is None or not interaction.name:
        return BoltResponse(status=404)
    listener = find(surface, interaction.name)
    if listener is None:
        return await (ack(options=[]) if surface == "options" else ack())
    answering = Answering(bot, listener, interaction, bot.replies)
    if surface == "options":
        return await ack(options=await answering.options())
    if listener.check is not None:
        wrong = answering.problems(listener.check)
        if wrong:
            return await ack(response_action="errors", errors=dict(wrong))
    task = bot.tasks.start(answering.run(), listener.name)
    if listener.is_stored:
        is_event = surface == "event"
        await asyncio.wait({task}, timeout=EVENT_SECONDS if is_event else STORE_SECONDS)
        if is_event and task.done() and task.result() != "ok":
            # Slack will redeliver the event.
            return BoltResponse(status=503)
    return await ack()


@dataclass(frozen=True)
class Answering:
    """Answers one interaction by running its listener."""

    bot: Gatehouse
    listener: Listener
    interaction: Interaction
    replies: Replies | DirectReplies

    async def options(self) -> list[dict[str, Any]]:
        """Return a type-ahead's options, or [] if an error occurs, because Slack can't show it."""
        try:
            async with asyncio.timeout(SUGGEST_SECONDS):
                found: list[dict[str, Any]] = await self._work()
        except (GatehouseError, TimeoutError) as error:
            log.info("options.none", outcome=getattr(error, "outcome", "timeout"))
            return []
        except Exception:
            log.exception("options.broken", name=self.listener.name)
            return []
        return found

    def problems(self, check: Check) -> Mapping[str, str]:
        """Return error messages keyed by block ID. A rate limit error goes to the first input."""
        try:
            self.bot.pace.require(self.interaction.slack_user_id, "clicks")
        except TooManyCommands as error:
            self.bot.metrics.count_command(self.listener.name, error.outcome)
            return {self.interaction.first_input: error.sentence}
        return check(self._context())

    async def run(self) -> str:
        """Answer the interaction without raising errors, and return an outcome such as `ok`."""
        name = self.listener.name
        reference = delivery_id() or new_delivery_id()
        with following_again(reference):
            started = self.bot.clock.monotonic()
            try:
                outcome = await self._work_and_show(reference)
            except Exception:
                log.exception("answer.not_shown", name=name)
                outcome = "broken"
            is_later = self.listener.place is Place.LATER
            if not is_later:
                seconds = round(self.bot.clock.monotonic() - started, 3)
                log.info("answered", name=name, outcome=outcome, seconds=seconds)
            if outcome != "ok" or not is_later:
                self.bot.metrics.count_command(name, outcome)
        return outcome

    async def _work_and_show(self, reference: str) -> str:
        work, place = asyncio.ensure_future(self._outcome(reference)), self.listener.place
        # True while "Working on it" is shown where the answer will appear.
        stands = False
        try:
            await asyncio.wait({work}, timeout=PATIENCE_SECONDS)
            if not work.done() and place in {Place.NEW, Place.CLICKED, Place.BELOW}:
                is_clicked = place is Place.CLICKED
                said = await self._say(replies.WORKING, replace=is_clicked, tries=1)
                stands = said and place is not Place.BELOW
            message, outcome = await work
        except asyncio.CancelledError:
            # The program is stopping, so tell the person not to wait for an answer.
            if stands:
                with suppress(TimeoutError):
                    async with asyncio.timeout(STOPPED_SECONDS):
                        await self._say(replies.STOPPED, replace=True)
            raise
        finally:
            # If the wait is canceled, cancel the work too.
            work.cancel()
        is_clicked, typed = place is Place.CLICKED, self.listener.typed
        if message is None and stands and not is_clicked:
            message = replies.DONE
        if message is not None and is_clicked and stands and outcome != "ok":
            # The clicked message has already been replaced, so add a button to repeat the click.
            message = replies.with_retry(message, self.interaction.name, self.interaction.value)
        if message is not None and typed is not None and outcome != "ok":
            message = replies.with_form(message, typed(self._context()))
        if message is not None and place is not Place.NOWHERE:
            # An error leaves the clicked message in place.
            await self._say(message, replace=stands or (is_clicked and outcome == "ok"))
        return outcome

    async def _say(self, message: Message, *, replace: bool, tries: int = TRIES) -> bool:
        url, asker = self.interaction.response_url, self.interaction.slack_user_id
        return await self.replies.say(url, message, to=asker, replace=replace, tries=tries)

    async def _outcome(self, reference: str) -> tuple[Message | None, str]:
        interaction = self.interaction
        try:
            return await self._work(), "ok"
        except Replayed as error:
            return None, error.outcome
        except GatehouseError as error:
            first = next(iter(interaction.text.split()), "")
            if first and not error.closest and isinstance(error, UsageError | NotFound):
                meant = help_ui.meant_subcommand(interaction.name, first)
                if meant:
                    error.suggesting(first, {meant: ""})
            command = f"{interaction.name} {interaction.text}".strip()
            message = replies.sorry(error)
            if command.startswith("/"):
                message = replies.with_next_steps(message, error, command)
            return message, error.outcome
        except Exception:
            log.exception("answer.broken", name=interaction.name, reference=reference)
            return replies.broken(reference), "broken"

    async def _work(self) -> Any:  # noqa: ANN401 - depends on the listener
        listener = self.listener
        if listener.check is None and listener.surface not in {"event", "options"}:
            kind = "commands" if listener.surface == "command" else "clicks"
            self.bot.pace.require(self.interaction.slack_user_id, kind)
        if listener.is_stored:
            return await listener.answer(self._context())
        people, interaction = self.bot.people, self.interaction
        person = await people.find(interaction.slack_user_id, interaction.team_ids)
        # People who aren't allowed to see the help don't see usage errors either.
        await people.require(person, Permission.ASK_FOR_HELP)
        context = Context(self.bot, person, interaction)
        if listener.permission is not None and not listener.requires_itself:
            acts = listener.place is not Place.FORM
            await require(context, listener.permission, acts=acts)
        return await listener.answer(context)

    def _context(self) -> Context:
        user = self.interaction.slack_user_id
        return Context(self.bot, Person(user, user), self.interaction)
