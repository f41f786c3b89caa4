"""What all listeners do: acknowledge, check who may do this, and answer in a task.

The program keeps these tasks, and waits for them before it stops. There are no other places for an
answer than those in `AnswerAt`, because a response_url can edit only one message.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, TypeVar

import structlog
from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncAck

from bot.app import Gatehouse
from bot.commands import COMMANDS, HELP, Command
from bot.errors import DatabaseUnavailable, GatehouseError, NotFound, Replayed, Unsent, UsageError
from bot.home.publishing import MOMENT
from bot.ops.logs import delivery_id
from bot.permissions import ACTING, Permission, Person
from bot.slack.messages import replies
from bot.slack.messages.block_kit import OUTDATED, Message
from handlers.payloads import Payload

log = structlog.get_logger(__name__)

# Slack waits three seconds for an acknowledgement, or for a type-ahead's options. People who see a
# timeout click again, even though the first click might still be in progress.
STORE_SECONDS = 1.5
SUGGEST_SECONDS = 2.0
# An event is acknowledged after this time even if it isn't stored yet, because many events can
# arrive at once.
EVENT_SECONDS = 0.05
# "Working on it" is shown after this time.
PATIENCE_SECONDS = 0.5
# The time limit at shutdown for telling people that the program has stopped.
STOPPED_SECONDS = 0.5

Work = Callable[[Gatehouse, Any, Payload], Awaitable[Any]]
"""Gets the bot, the person (None if the listener needs no permission), and Slack's payload.

Returns the message to show, or None.
"""
T = TypeVar("T")
AnswerCommand = Callable[[Gatehouse, Person, T, Payload], Awaitable[Message | None]]
"""Gets the bot, the person, the parsed command, and Slack's payload."""
Listener = Callable[..., Awaitable[Any]]
"""A listener of Bolt, which calls it with `ack` and `body`."""
Respond = Callable[..., Awaitable[bool]]
"""Sends a message as `Replies.say` does, to the person who gets the answer."""
Answer = tuple[Message | None, str]
"""The message that a listener or its error results in, if any, and an outcome such as `ok`."""


class AnswerAt(Enum):
    """Where an answer appears."""

    # In a new message below the clicked message, which stays unchanged. "Working on it" isn't shown
    # there, because nothing could replace it.
    BELOW = auto()
    # In a new message, which replaces "Working on it".
    NEW_MESSAGE = auto()
    # In place of the clicked message. An error leaves the clicked message there.
    CLICKED = auto()
    # Nobody waits for the answer to an event.
    NOWHERE = auto()


@dataclass(frozen=True)
class Needs:
    """A listener's permission, the place of its answer, and what its acknowledgement waits for.

    Attributes:
        permission: None if the person isn't identified, because a job does that or nobody acted.
        place: Where the answer appears.
        pace: The limit that applies, "commands" or "clicks", or "" if none does.
        check: Returns error messages by block ID for a submitted view. With any, the form stays
            open, and no work is done.
        filled_form: Returns what opens a submitted form again after an error.
        ack_seconds: How long the acknowledgement waits for the work, at most.
        is_counted: False if the job that answers a stored click counts it.
    """

    permission: Permission | None
    place: AnswerAt = AnswerAt.BELOW
    pace: str = "clicks"
    check: Callable[[Gatehouse, Payload], Mapping[str, str]] | None = None
    filled_form: Callable[[Payload], Unsent] | None = None
    ack_seconds: float = 0
    is_counted: bool = True


# Each form of a command has a permission of its own, which `Listening.command` checks.
COMMAND = Needs(Permission.ASK_FOR_HELP, AnswerAt.NEW_MESSAGE, pace="commands")
# A button that shows another page in place of the clicked one.
TURN = Needs(Permission.READ, AnswerAt.CLICKED)
EVENT = Needs(None, AnswerAt.NOWHERE, pace="", ack_seconds=EVENT_SECONDS)
# A job identifies the person and answers the click, which is only stored before.
STORED_CLICK = Needs(None, ack_seconds=STORE_SECONDS, is_counted=False)


class Listening:
    """Makes listeners. This is the one place that turns an error into its sentence.

    `needs` has the needs of each listener, and `commands` what answers each command, such as
    `/orgs`.
    """

    def __init__(self, bot: Gatehouse) -> None:
        self._bot = bot
        self.needs: dict[Listener, Needs] = {}
        self.commands: dict[str, Work] = {}

    def listener(self, work: Work, needs: Needs) -> Listener:
        """Return a listener that starts the work as a task, and acknowledges.

        If an event couldn't be stored, it responds with 503, so that Slack delivers it again.
        """

        async def listen(ack: AsyncAck, body: dict[str, Any]) -> BoltResponse:
            payload = Payload(body)
            if needs.check and (errors := needs.check(self._bot, payload.part("view"))):
                return await ack(response_action="errors", errors=dict(errors))
            task = self._bot.tasks.start(self.answer(work, needs, payload), payload.name)
            if needs.ack_seconds:
                await asyncio.wait({task}, timeout=needs.ack_seconds)
                if needs.place is AnswerAt.NOWHERE and task.done() and task.result() != "ok":
                    return BoltResponse(status=503)
            return await ack()

        self.needs[listen] = needs
        return listen

    def suggest(self, work: Work, needs: Needs) -> Listener:
        """Return a listener with a type-ahead's options, or [], as Slack shows no errors."""

        async def listen(ack: AsyncAck, body: dict[str, Any]) -> BoltResponse:
            options: list[dict[str, Any]] = []
            try:
                async with asyncio.timeout(SUGGEST_SECONDS):
                    options = await self._permitted(work, needs, Payload(body))
            except (GatehouseError, TimeoutError):
                log.info("options.none")
            except Exception:
                log.exception("options.broken")
            return await ack(options=options)

        self.needs[listen] = needs
        return listen

    def command(
        self, described: Command, parse: Callable[[str], T], answer: AnswerCommand[T]
    ) -> Listener:
        """Return a listener that parses the text, checks the permission, and answers.

        What `parse` returns has the `kind` of one of the command's forms, or `help`, as `form`.
        """

        async def work(bot: Gatehouse, person: Person, payload: Payload) -> Message | None:
            try:
                typed: Any = parse(payload.text("text"))
            except UsageError as error:
                if error.kind is not None:
                    await bot.slack.people.require(person, described.permission(error.kind))
                raise
            await self._require(person, described.permission(typed.form))
            if typed.form == HELP:
                return await self.help(person, partial(replies.help_of, described))
            return await answer(bot, person, typed, payload)

        self.commands[described.name] = work
        return self.listener(work, COMMAND)

    async def run(self, command: str, person: Person, payload: Payload) -> Message | None:
        """Answer a command such as `/orgs show 7`. Each of its forms requires a permission.

        Raises:
            NotFound: There is no such command.
            UsageError: The text can't be parsed.
            Refused: The person lacks the permission.
        """
        name, _, text = command.partition(" ")
        if name not in self.commands:
            raise NotFound(OUTDATED)
        message: Message | None = await self.commands[name](
            self._bot, person, Payload(payload, text=text)
        )
        return message

    async def help(self, person: Person, show: Callable[[replies.May], Message]) -> Message:
        """Return the message from `show` or, if the person has no access, a message saying so."""
        people = self._bot.slack.people
        if without_access := await people.lacks_access(person):
            return replies.said(without_access)
        return show(partial(people.may, person))

    async def answer(
        self, work: Work, needs: Needs, payload: Payload, respond: Respond | None = None
    ) -> str:
        """Do the work and show its answer or error. Return an outcome such as `ok`."""
        name = payload.name
        user_id = payload.user_id
        view = payload.part("view")
        place = AnswerAt.BELOW if view.hidden("below") else needs.place
        if respond is None:
            respond = partial(self._bot.slack.replies.say, payload.response_url, to=user_id)
        started = self._bot.clock.monotonic()
        try:
            outcome = await show(self._answer(work, needs, payload), place, respond, payload)
        except Exception:
            log.exception("answer.not_shown", name=name)
            outcome = "broken"
        if outcome == "ok" and not needs.is_counted:
            return outcome
        seconds = round(self._bot.clock.monotonic() - started, 3)
        log.info("answered", name=name, outcome=outcome, seconds=seconds)
        self._bot.metrics.count_command(name, outcome)
        # The form of a request may have been opened from the Home tab.
        if view:
            with suppress(DatabaseUnavailable):
                await self._bot.home.open(user_id, MOMENT)
        return outcome

    async def _answer(self, work: Work, needs: Needs, payload: Payload) -> Answer:
        try:
            return await self._permitted(work, needs, payload), "ok"
        except Replayed as error:
            return None, error.outcome
        except GatehouseError as error:
            message, outcome = _sentence(error, payload), error.outcome
        except Exception:
            reference = delivery_id()
            log.exception("answer.broken", name=payload.name, reference=reference)
            message, outcome = replies.broken(reference), "broken"
        if needs.filled_form is not None:
            filled = needs.filled_form(payload.part("view"))
            message = replies.with_unsent(message, filled, "Try again")
        return message, outcome

    async def _permitted(self, work: Work, needs: Needs, payload: Payload) -> Any:  # noqa: ANN401 - a message or options
        """Check the pace and the permission, and do the work."""
        slack = self._bot.slack
        person = None
        if needs.pace:
            slack.pace.require(payload.user_id, needs.pace)
        if needs.permission is not None:
            # This can take a call to Slack.
            person = await slack.people.find(payload.user_id, payload.team_ids)
            await self._require(person, needs.permission)
        return await work(self._bot, person, payload)

    async def _require(self, person: Person, permission: Permission) -> None:
        """Check the permission and, if it is for lasting changes, that the request isn't a repeat.

        Raises:
            Refused: The person lacks the permission.
            Replayed: The Slack request has already been handled.
        """
        await self._bot.slack.people.require(person, permission)
        if permission in ACTING and not await self._bot.slack.received.take():
            raise Replayed


async def show(
    work: Coroutine[Any, Any, Answer], place: AnswerAt, respond: Respond, payload: Payload
) -> str:
    """Show the answer, and say "Working on it" if that takes longer than half a second.

    If the program stops before there is an answer, tell the person. Return the outcome.
    """
    answering = asyncio.create_task(work)
    is_clicked = place is AnswerAt.CLICKED
    # True while "Working on it" is shown where the answer will appear.
    stands = False
    try:
        await asyncio.wait({answering}, timeout=PATIENCE_SECONDS)
        if not answering.done() and (is_clicked or place is AnswerAt.NEW_MESSAGE):
            stands = await respond(replies.WORKING, replace=is_clicked, tries=1)
        message, outcome = await answering
    except asyncio.CancelledError:
        answering.cancel()
        if stands:
            with suppress(TimeoutError):
                async with asyncio.timeout(STOPPED_SECONDS):
                    await respond(replies.STOPPED, replace=True)
        raise
    is_ok = outcome == "ok"
    if message is None:
        message = replies.DONE if stands else None
    elif stands and is_clicked and not is_ok:
        action_id = payload.clicked.text("action_id")
        message = replies.with_retry(message, action_id, payload.value)
    if message is not None and place is not AnswerAt.NOWHERE:
        await respond(message, replace=stands or (is_clicked and is_ok))
    return outcome


def _sentence(error: GatehouseError, payload: Payload) -> Message:
    name = payload.text("command")
    typed = payload.text("text")
    words = typed.split()
    if isinstance(error, UsageError | NotFound) and not error.closest and words:
        for command in COMMANDS:
            if command.name == name and (meant := command.meant(words)):
                error.suggesting(words[0], {meant: ""})
    message = replies.sorry(error)
    if name.startswith("/"):
        message = replies.with_next_steps(message, error, f"{name} {typed}".strip())
    if error.unsent:
        message = replies.with_unsent(message, error.unsent, "Open the form")
    return message
